#include "core/fuse/hang_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <string_view>

#include "core/fuse/correlate.h"

namespace culprit::core::fuse {
namespace {

// The kernel's log has whole seconds, host clocks differ, and operations posted early start to wait before
// the fault.
constexpr TimeNs kAfter = 60 * kNsPerSecond;
constexpr TimeNs kBefore = 600 * kNsPerSecond;  // a process waits for a lost link until it times out
constexpr size_t kLinesOfAnswer = 4;

std::set<std::string> hosts_of(const Finding& f) {
  std::set<std::string> out;
  for (const FindingSubject& s : f.subjects)
    if (s.host) out.insert(*s.host);
  if (out.empty())
    for (const Evidence& e : f.evidence)
      if (e.host) out.insert(*e.host);
  return out;
}

bool is_device_fault(const Finding& f) {
  switch (f.component) {
    case Component::kGpu:
    case Component::kGpuMemory:
    case Component::kNvlink:
    case Component::kPcie:
    case Component::kNetwork:
    case Component::kDriver:
      return f.category == Category::kHardware || f.category == Category::kPlatform;
    default:
      return false;
  }
}

bool names_number(std::string_view text, uint32_t number) {
  const std::string digits = std::to_string(number);
  const auto is_digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (size_t at = text.find(digits); at != text.npos; at = text.find(digits, at + 1))
    if ((at == 0 || !is_digit(at - 1)) && !is_digit(at + digits.size())) return true;
  return false;
}

bool names_process(const Finding& f, const std::set<uint32_t>& processes) {
  return std::ranges::any_of(f.evidence, [&](const Evidence& e) {
    return std::ranges::any_of(processes, [&](uint32_t pid) { return names_number(e.text, pid); });
  });
}

bool fits(const Standstill& still, const Finding& f) {
  const bool root = f.kind == FindingKind::kFault && f.role == FindingRole::kRoot && !f.rule.empty();
  // A claim of a user, or of one host about another, proves nothing.
  if (!root || !f.said_by.hosts.empty() || !f.said_by.uids.empty()) return false;
  if (!is_in_time(f, still.since_ns)) return false;
  const std::set<std::string> hosts = hosts_of(f);
  const bool there =
      !hosts.empty() && !still.hosts.empty() &&
      std::ranges::includes(hosts.size() == 1 ? still.hosts : hosts, hosts.size() == 1 ? hosts : still.hosts);
  switch (still.answer) {
    case HangAnswer::kUnfinished:
      if (!is_device_fault(f) || f.general) return false;
      return still.hosts.empty() ? hosts.size() == 1 : there;
    case HangAnswer::kLeft:
      // In a container, a process has another pid than in the kernel's log.
      return takes_process(f) && there && (names_process(f, still.processes) || f.as_kernel);
    case HangAnswer::kNoSingle:
      return f.component == Component::kStorage;
    case HangAnswer::kUnknown:
      // One unresponsive mount may be a fault of its host; a server that several hosts miss blocks all of
      // them.
      return f.component == Component::kStorage && f.symptom == Symptom::kHang && hosts.size() > 1;
    case HangAnswer::kMissing:
    case HangAnswer::kMismatch:
      return false;
  }
  return false;
}

}  // namespace

bool is_in_time(const Finding& f, TimeNs since) {
  if (f.first_ns == kNoTime || since == kNoTime) return true;
  return f.first_ns <= since + kAfter && f.last_ns >= since - kBefore;
}

std::optional<size_t> cause_of(const Standstill& still, std::span<const Finding> findings) {
  std::optional<size_t> out;
  for (size_t i = 0; i < findings.size(); ++i) {
    if (!fits(still, findings[i])) continue;
    if (!out) {
      out = i;
      continue;
    }
    const Finding& known = findings[*out];
    // Faults on several hosts explain a common wait equally well.
    if (still.answer == HangAnswer::kUnfinished && still.hosts.empty() &&
        hosts_of(known) != hosts_of(findings[i]))
      return std::nullopt;
    const bool exact = names_process(findings[i], still.processes);
    const bool was_exact = names_process(known, still.processes);
    const bool earlier = findings[i].first_ns != kNoTime && findings[i].first_ns < known.first_ns;
    if (exact != was_exact ? exact : findings[i].fatal != known.fatal ? findings[i].fatal : earlier) out = i;
  }
  return out;
}

Finding with_cause(const Finding& answer, const Finding& cause) {
  constexpr double kAgree = 0.05, kMost = 0.95;
  Finding out = answer;
  out.found_by = joined_names(answer, cause);
  take_rule(cause, out);
  out.category = cause.category;
  out.component = cause.component;
  out.action = cause.action;
  out.remedy = cause.remedy;
  out.general = false;
  out.said_by = cause.said_by;
  out.as_kernel = cause.as_kernel;
  const std::string_view stem = std::string_view(out.title).substr(0, out.title.rfind(": "));
  out.title = out.title.empty() ? cause.title : fmt::format("{}: {}", stem, cause.title);
  std::vector<std::string> why = cause.why;
  std::ranges::move(out.why, std::back_inserter(why));
  out.why = std::move(why);
  out.lines += cause.lines;
  std::vector<Evidence> evidence = cause.evidence;
  for (size_t i = 0; i < std::min(out.evidence.size(), kLinesOfAnswer); ++i)
    evidence.push_back(std::move(out.evidence[i]));
  out.evidence = std::move(evidence);
  if (out.first_ns == kNoTime || (cause.first_ns != kNoTime && cause.first_ns < out.first_ns))
    out.first_ns = cause.first_ns;
  if (!out.iteration) out.iteration = cause.iteration;
  if (out.subjects.empty() && !cause.by_no_device) {
    out.subjects = cause.subjects;
    out.by_no_device = cause.subjects.empty();
  }
  // An unresponsive server is no fault of the hosts that wait for it.
  if (cause.component == Component::kStorage && hosts_of(cause).size() > 1) {
    out.subjects.clear();
    out.by_no_device = true;
  }
  out.confidence = std::min(kMost, std::max(out.confidence, cause.confidence) + kAgree);
  return out;
}

}  // namespace culprit::core::fuse
