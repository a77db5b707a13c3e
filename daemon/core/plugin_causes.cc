#include "core/plugin_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace culprit::core {
namespace {

// A cause is seen some time before or after its effect: plugins look every few seconds to a minute.
constexpr TimeNs kNear = 120 * kNsPerSecond;
constexpr double kMost = 0.97;  // two witnesses may share an error

bool is_of_network(Component c) { return c == Component::kNetwork || c == Component::kNvlink; }

bool fits(Component cause, Component effect) {
  if (cause == Component::kPcie || effect == Component::kUnknown) return true;
  return is_of_network(cause) == is_of_network(effect);
}

bool same_place(const FindingSubject& cause, const FindingSubject& effect) {
  const bool host = cause.host && (effect.host == cause.host || effect.peer == cause.host);
  if (cause.rank && effect.rank && !cause.device) return cause.rank == effect.rank;
  if (!host) return false;
  if (cause.device && effect.device) return cause.device == effect.device;
  return !cause.device || !effect.rank || cause.rank == effect.rank;
}

bool same_time(const Finding& cause, const Finding& effect) {
  if (cause.first_ns == kNoTime || effect.first_ns == kNoTime) return true;
  const TimeNs end = std::max(effect.first_ns, effect.last_ns);
  if (cause.last_ns != kNoTime && cause.last_ns + kNear < effect.first_ns) return false;
  return cause.first_ns <= end + kNear;
}

// Whether the finding of a plugin and the other are about one place at one time. A claim proves nothing.
bool meets(const Finding& cause, const Finding& effect) {
  if (cause.detector != DetectorKind::kPlugin || effect.detector == DetectorKind::kPlugin) return false;
  if (!cause.said_by.uids.empty() || !cause.said_by.hosts.empty()) return false;
  if (effect.kind != FindingKind::kFault || effect.by_no_device) return false;
  if (cause.subjects.empty() || cause.confidence <= 0 || cause.subjects[0].strength <= 0) return false;
  const auto of_it = [&](const FindingSubject& s) { return same_place(cause.subjects[0], s); };
  return std::ranges::any_of(effect.subjects, of_it) && same_time(cause, effect);
}

bool explains(const Finding& cause, const Finding& effect) {
  const bool measured = effect.symptom == Symptom::kSlowdown || effect.symptom == Symptom::kHang ||
                        effect.symptom == Symptom::kNumeric;
  return measured && effect.rule.empty() && cause.symptom == effect.symptom &&
         fits(cause.component, effect.component) && meets(cause, effect);
}

// A rule read in a log what the plugin saw on the machine.
bool confirms(const Finding& cause, const Finding& effect) {
  return !effect.rule.empty() && effect.role == FindingRole::kRoot &&
         cause.component != Component::kUnknown && cause.component == effect.component &&
         meets(cause, effect);
}

// The action that takes most out of service: isolate before check before the others.
ActionKind stronger(ActionKind a, ActionKind b) {
  for (const ActionKind kind : {ActionKind::kIsolate, ActionKind::kCheck})
    if (a == kind || b == kind) return kind;
  return a == ActionKind::kNone ? b : a;
}

void add_evidence(Finding&& cause, Finding& effect) {
  effect.action = stronger(effect.action, cause.action);
  effect.confidence = std::min(kMost, 1 - (1 - effect.confidence) * (1 - cause.confidence));
  effect.lines += cause.lines;
  std::ranges::move(cause.evidence, std::back_inserter(effect.evidence));
  // The daemon's own plugin confirms the fault: it no longer rests on a user's word.
  effect.said_by = {};
}

// The rule says what the fault is; the plugin supports it.
void join_confirming(Finding&& cause, Finding& effect) {
  std::ranges::move(cause.why, std::back_inserter(effect.why));
  effect.fatal = effect.fatal || cause.fatal;
  add_evidence(std::move(cause), effect);
}

void join_explaining(Finding&& cause, Finding& effect) {
  effect.why.insert(effect.why.begin(), std::make_move_iterator(cause.why.begin()),
                    std::make_move_iterator(cause.why.end()));
  effect.why.insert(effect.why.begin() + static_cast<std::ptrdiff_t>(cause.why.size()), effect.title);
  effect.title = fmt::format("{}: {}", cause.title, effect.title);
  effect.detector = DetectorKind::kPlugin;
  effect.plugin = std::move(cause.plugin);
  effect.category = cause.category;
  effect.component = cause.component;
  if (!cause.remedy.empty()) effect.remedy = std::move(cause.remedy);
  effect.fatal = effect.fatal || cause.fatal;
  add_evidence(std::move(cause), effect);
}

// Several warnings about a host are often one trouble seen from several sides.
void weigh_warnings(std::vector<Finding>& findings) {
  std::map<std::string, FindingSubject*> strongest;
  for (Finding& f : findings) {
    if (f.detector != DetectorKind::kPlugin || f.kind != FindingKind::kSupport) continue;
    for (FindingSubject& s : f.subjects) {
      FindingSubject*& best = strongest[s.host.value_or("")];
      if (best == nullptr) {
        best = &s;
        continue;
      }
      FindingSubject* const less = s.strength > best->strength ? std::exchange(best, &s) : &s;
      less->strength = 0;
    }
  }
}

}  // namespace

void join_plugins(std::vector<Finding>& findings) {
  std::vector<size_t> joined;
  for (Finding& effect : findings) {
    // The most certain cause explains it; others remain.
    std::optional<size_t> best;
    for (size_t i = 0; i < findings.size(); ++i) {
      const bool spent = std::ranges::find(joined, i) != joined.end();
      if (spent || (!explains(findings[i], effect) && !confirms(findings[i], effect))) continue;
      if (!best || findings[i].confidence > findings[*best].confidence) best = i;
    }
    if (!best) continue;
    Finding& cause = findings[*best];
    explains(cause, effect) ? join_explaining(std::move(cause), effect)
                            : join_confirming(std::move(cause), effect);
    joined.push_back(*best);
  }
  std::ranges::sort(joined, std::greater());
  for (const size_t i : joined) findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(i));
  weigh_warnings(findings);
}

}  // namespace culprit::core
