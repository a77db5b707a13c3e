#include "core/diagnose/own_process.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "core/diagnose/subject.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kShortName = 3;    // a shorter name occurs inside too many words
constexpr size_t kKernelName = 15;  // the kernel truncates names to this length

// Kernel names of framework processes and threads: interpreters, and the thread names of PyTorch, CUDA and
// Ray.
constexpr std::array<std::string_view, 7> kFrameworks = {"python", "pypy", "pt_", "torch",
                                                         "cuda",   "ray",  "nccl"};

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether the name occurs in the text as a word; a name truncated by the kernel may continue.
bool mentions(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !is_word_byte(text[at - 1]);
    const size_t end = at + name.size();
    if (begins && (end == text.size() || !is_word_byte(text[end]) || name.size() >= kKernelName)) return true;
  }
  return false;
}

// Job schedulers put the jobs' control groups below their own units.
bool is_unit_of_system(std::string_view group) {
  constexpr std::string_view kSlice = "/system.slice/", kService = ".service";
  return group.starts_with(kSlice) && group.ends_with(kService) &&
         group.find('/', kSlice.size()) == group.npos;
}

}  // namespace

OwnProcesses::Kin OwnProcesses::of(const logs::RuleLine& line) {
  if (line.service != logs::Service::kNone)
    return is_foreign(line) || is_of_other_job(line.text) ? Kin::kOther : Kin::kOwn;
  const rules::Rule& rule = rules_.rules()[line.rule];
  const std::string_view name = hole_of(rule, line, "process");
  if (!line.kernel || name.size() < kShortName || name.starts_with('<')) return Kin::kOwn;
  if (!collected_) collect();
  const std::string_view pid = hole_of(rule, line, "pid");
  if (of_units_.contains({line.place.source, std::string(pid)})) return Kin::kOther;
  const auto is_framework = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::ranges::any_of(kFrameworks, is_framework) || pids_.contains(pid)) return Kin::kOwn;
  return is_mentioned(name) ? Kin::kOwn : Kin::kUnknown;
}

bool OwnProcesses::is_aside(const logs::RuleLine& line) {
  const rules::Rule& rule = rules_.rules()[line.rule];
  const bool part = rule.component == Component::kStorage || rule.component == Component::kNetwork;
  const bool service = line.service != logs::Service::kNone;
  if (!part && (!service || rule.category == Category::kHardware)) return false;
  return (line.kernel || service) && !names_own(line);
}

// Whether the job's own logs name the subject of the line.
bool OwnProcesses::names_own(const logs::RuleLine& line) {
  if (!collected_) collect();
  return std::ranges::any_of(line.holes, [&](const std::string& value) {
    return value.size() >= kShortName && std::ranges::any_of(value, is_letter) && is_mentioned(value);
  });
}

// Other services explain nothing about the job, except for hardware faults that they met. If the job itself
// writes to the system log, its program may have any tag.
bool OwnProcesses::is_foreign(const logs::RuleLine& line) {
  return line.service == logs::Service::kForeign &&
         rules_.rules()[line.rule].category != Category::kHardware && has_own_logs() && !names_own(line);
}

// Whether a source without system log lines has progress or an exception of the job.
bool OwnProcesses::has_own_logs() {
  if (own_logs_) return *own_logs_;
  if (!collected_) collect();
  const auto own = [&](uint32_t source) { return !system_sources_.contains(source); };
  own_logs_ =
      std::ranges::any_of(log_.last_progress(),
                          [&](const auto& sample) { return own(sample.place.source); }) ||
      std::ranges::any_of(log_.uncaught(), [&](const auto& line) { return own(line.place.source); }) ||
      std::ranges::any_of(log_.rule_lines(), [&](const auto& line) {
        return (line.exception || line.death) && own(line.place.source);
      });
  return *own_logs_;
}

// Whether the text names job numbers, and none is this job's. If the job's own number is unknown, no number
// counts as another job's.
bool OwnProcesses::is_of_other_job(std::string_view text) {
  if (!log_.job().id) return false;
  static const re2::RE2 kNumber(R"((?i)\bjob(?:[ _]?id)?[ =:#]{1,2}(\d{2,})\b)");
  re2::StringPiece rest(text.data(), text.size()), number;
  bool other = false;
  if (!collected_) collect();
  while (re2::RE2::FindAndConsume(&rest, kNumber, &number)) {
    const std::string_view digits(number.data(), number.size());
    if (mentions(*log_.job().id, digits) || is_mentioned(digits)) return false;
    other = true;
  }
  return other;
}

void OwnProcesses::collect() {
  collected_ = true;
  for (const logs::RuleLine& line : log_.rule_lines()) {
    const rules::Rule& rule = rules_.rules()[line.rule];
    const std::string_view pid = hole_of(rule, line, "pid");
    if (line.kernel || line.service != logs::Service::kNone) system_sources_.insert(line.place.source);
    if (!line.kernel && !pid.empty()) pids_.emplace(pid);
    if (line.kernel && is_unit_of_system(hole_of(rule, line, "cgroup")))
      of_units_.emplace(line.place.source, pid);
  }
}

// According to the job's own logs.
bool OwnProcesses::is_mentioned(std::string_view name) {
  if (const auto known = mentioned_.find(name); known != mentioned_.end()) return known->second;
  const bool found = std::ranges::any_of(log_.templates(), [&](const logs::TemplateStats& stats) {
    return std::ranges::any_of(stats.samples, [&](const logs::LogSample& sample) {
      return !system_sources_.contains(sample.place.source) && mentions(sample.text, name);
    });
  });
  mentioned_.emplace(name, found);
  return found;
}

}  // namespace culprit::diagnose
