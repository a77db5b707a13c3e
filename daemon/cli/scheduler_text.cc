#include "cli/scheduler_text.h"

#include <fmt/format.h>

#include <string_view>

namespace culprit::cli {
namespace {

constexpr size_t kHostsShown = 200;  // bytes of the list

// Empty: null, or not there.
std::string member_text(const Json& facts, const char* name) {
  const auto found = facts.find(name);
  if (found == facts.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_unsigned() ? found->dump() : "";
}

// "3:0", code and signal. A job that a signal ended has no code.
std::string exit_text(std::string_view code) {
  const size_t colon = code.find(':');
  if (colon == code.npos) return "";
  const std::string_view signal = code.substr(colon + 1);
  if (signal != "0") return fmt::format(", signal {}", signal);
  return fmt::format(", exit code {}", code.substr(0, colon));
}

}  // namespace

std::string scheduler_text(const Json& report) {
  if (!report.is_object() || !report.contains("scheduler") || !report["scheduler"].is_object()) return "";
  const Json& facts = report["scheduler"];
  const std::string scheduler = member_text(facts, "scheduler"), id = member_text(facts, "id");
  if (id.empty()) return "";
  std::string out = fmt::format("{}: job {}", scheduler == "slurm" ? "Slurm" : "Kubernetes", id);
  const std::string exit = member_text(facts, "exit"), reason = member_text(facts, "exit_reason");
  out += exit.empty() ? " runs" : " " + exit + exit_text(member_text(facts, "exit_code"));
  if (!reason.empty()) out += ", " + reason;
  const std::string attempt = member_text(facts, "attempt");
  if (!attempt.empty()) out += "; attempt " + attempt;
  if (const std::string hosts = member_text(facts, "hosts"); !hosts.empty())
    out += ", on " + (hosts.size() > kHostsShown ? member_text(facts, "nodes") + " nodes" : hosts);
  return out;
}

}  // namespace culprit::cli
