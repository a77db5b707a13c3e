#include "sim/truth.h"

#include <algorithm>

#include <fmt/format.h>

namespace culprit::sim {

namespace {

std::string faulty_ranks(const FaultKind& fault, const Site& site, const Run& run) {
  const uint32_t first = run.fault_host * site.ranks_per_host;
  if (fault.scope == Scope::kEverywhere) return "";
  const bool device = fault.component == Component::kGpu || fault.component == Component::kGpuMemory ||
                      fault.component == Component::kNvlink || fault.component == Component::kPcie;
  if (fault.scope == Scope::kRank || device) return fmt::format("{}", first + run.fault_local);
  std::string out;
  for (uint32_t i = 0; i < site.ranks_per_host; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", first + i);
  return out;
}

std::string indicating(const Sink& sink) {
  std::vector<Mark> marks = sink.marks();
  std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    return a.file != b.file ? a.file < b.file : a.line < b.line;
  });
  std::string out;
  for (const Mark& mark : marks) {
    fmt::format_to(std::back_inserter(out), "{}\n    {{\"file\": \"{}\", \"line\": {}, \"role\": \"{}\"{}}}",
                   out.empty() ? "" : ",", sink.path(mark.file), mark.line,
                   mark.role == Role::kRoot ? "root" : "echo", mark.continues ? ", \"continues\": true" : "");
  }
  return out;
}

}  // namespace

std::string truth_json(const LogJobOptions& options, const FaultKind* fault, const FaultOutcome& outcome,
                       const Sink& sink, const Site& site, const Run& run) {
  std::string out;
  const auto add = [&](std::string_view key, std::string_view value) {
    fmt::format_to(std::back_inserter(out), "{}\n  \"{}\": {}", out.empty() ? "{" : ",", key, value);
  };
  const auto quoted = [](std::string_view text) { return fmt::format("\"{}\"", text); };
  const auto word_of = [&](auto value) { return fault ? quoted(to_string(value)) : std::string("null"); };
  const auto any = [&](auto holds) { return std::any_of(sink.marks().begin(), sink.marks().end(), holds); };
  add("seed", fmt::format("{}", options.seed));
  add("fault", quoted(options.fault));
  add("layout", quoted(site.layout));
  add("framework", quoted(site.framework));
  add("hosts", fmt::format("{}", site.hosts));
  add("ranks_per_host", fmt::format("{}", site.ranks_per_host));
  const FaultKind none{};
  const FaultKind& kind = fault ? *fault : none;
  add("category", word_of(kind.category));
  add("component", word_of(kind.component));
  add("symptom", word_of(kind.symptom));
  add("stage", word_of(outcome.stage));
  add("iteration", outcome.iteration ? fmt::format("{}", *outcome.iteration) : "null");
  const bool on_host = fault && fault->scope == Scope::kHost;
  add("faulty_hosts", on_host ? "[" + quoted(run.hosts[run.fault_host].name) + "]" : "[]");
  add("faulty_ranks", "[" + (fault ? faulty_ranks(*fault, site, run) : "") + "]");
  const bool error = any([](const Mark& mark) { return mark.error_word; });
  const bool root_error = any([](const Mark& mark) { return mark.error_word && mark.role == Role::kRoot; });
  add("has_error_word", error ? "true" : "false");
  add("root_has_error_word", root_error ? "true" : "false");
  add("onset_ns", fault ? fmt::format("{}", outcome.onset_ns) : "null");
  add("indicating", "[" + indicating(sink) + "]");
  return out + "\n}\n";
}

}  // namespace culprit::sim
