#include "app/run/chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kPathBytes = 4096;
constexpr uint32_t kNumberMost = 1'000'000;

std::string digest(const std::vector<std::string>& command) {
  return hex64(hash64(fmt::format("{}", fmt::join(command, "\n"))));
}

}  // namespace

std::vector<std::string> handover_variables(const Handover& handover,
                                            const std::vector<std::string>& command) {
  return {fmt::format("{}={}:{}", kSuccessorVariable, handover.run, digest(command)),
          fmt::format("{}={}", kAttemptVariable, handover.number),
          fmt::format("{}={}", kResumeVariable, handover.resume)};
}

std::optional<Handover> handover_of(const std::vector<std::string>& command, const Lookup& variable) {
  const std::string value = variable(kSuccessorVariable).value_or("");
  const size_t colon = value.rfind(':');
  if (colon == value.npos || value.substr(colon + 1) != digest(command)) return std::nullopt;
  Handover out;
  out.run = value.substr(0, colon);
  if (!check_run_name(out.run).empty()) return std::nullopt;
  const std::string count = variable(kAttemptVariable).value_or("");
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), out.number);
  if (error != std::errc() || end != count.data() + count.size() || out.number > kNumberMost)
    return std::nullopt;
  out.resume = variable(kResumeVariable).value_or("");
  if (out.resume.size() > kPathBytes) out.resume.clear();
  return out;
}

bool goes_on(const std::vector<Attempt>& attempts, std::string_view id) {
  if (attempts.empty() || id.empty()) return false;
  const Attempt& last = attempts.back();
  return last.status != 0 && (last.successor == id || (last.successor.empty() && last.job == id));
}

std::vector<std::string> excluded_by(const std::vector<Attempt>& attempts) {
  std::vector<std::string> out;
  for (const Attempt& attempt : attempts)
    for (const std::string& node : attempt.leaves_out)
      if (std::ranges::find(out, node) == out.end()) out.push_back(node);
  return out;
}

}  // namespace culprit::app
