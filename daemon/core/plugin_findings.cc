#include "core/plugin_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "model/report.h"

namespace culprit::core {
namespace {

constexpr size_t kEvidence = 4;
constexpr size_t kTimes = 64;  // rules count a few occurrences
// Weight against a subject. A warning alone makes no job suspect (kSuspicious in the correlator is .4): most
// throttled devices and busy hosts finish their jobs.
constexpr double kFatal = 3, kError = 2, kWarning = 0.3;

double weight_of(PluginSeverity severity) {
  switch (severity) {
    case PluginSeverity::kFatal:
      return kFatal;
    case PluginSeverity::kError:
      return kError;
    case PluginSeverity::kWarning:
      return kWarning;
    case PluginSeverity::kInfo:
      break;
  }
  return 0;
}

std::string quoted(const PluginFinding& f) {
  std::string text = f.text.empty() ? f.title : f.text;
  for (const auto& [name, value] : f.values) text += fmt::format(" {}={}", name, value);
  return shorten(text, limits::kEvidenceText);
}

std::string sentence(const PluginFinding& f, uint64_t count) {
  std::string out = fmt::format("plugin {}: {}", f.plugin, f.text.empty() ? f.title : f.text);
  if (count > 1) out += fmt::format(" ({} times)", count);
  return out;
}

// The rank of this device of the host, by job.toml or else by the only log with this device.
std::optional<uint32_t> rank_of(const detect::View& view, const JobFile& job, const std::string& host,
                                uint32_t device) {
  if (const auto known = rank_of_local(job, host, device)) return known;
  std::optional<uint32_t> found;
  for (const detect::Unit& rank : view.ranks) {
    const bool its = rank.host != detect::kNowhere && view.hosts[rank.host].name == host &&
                     rank.ranks.size() == 1 && rank.devices.size() == 1 && rank.devices[0] == device;
    if (!its) continue;
    if (found) return std::nullopt;
    found = rank.ranks[0];
  }
  return found;
}

}  // namespace

bool is_about_culprit(const PluginFinding& finding) { return finding.id.starts_with("culprit."); }

std::optional<Finding> PluginFindings::add(FindingInput input) {
  PluginFinding& f = input.finding;
  const Key key(f.plugin, f.id, f.host, f.peer, f.part, f.rank, f.device, input.user);
  const auto known = kept_.find(key);
  if (f.state == PluginState::kCleared) {
    if (known == kept_.end()) return std::nullopt;
    known->second.stands = false;
    known->second.last_ns = std::max(known->second.last_ns, f.time_ns);
    return std::nullopt;
  }
  if (known == kept_.end() && kept_.size() >= limits::kPluginSubjects) {
    ++dropped_;
    return std::nullopt;
  }
  Kept& kept = known == kept_.end() ? kept_[key] : known->second;
  ++kept.count;
  kept.stands = f.state == PluginState::kRaised;
  kept.last_ns = std::max(kept.last_ns, f.time_ns);
  if (kept.times.size() == kTimes) kept.times.erase(kept.times.begin());
  kept.times.push_back(f.time_ns);
  if (kept.evidence.size() < kEvidence) {
    Evidence e;
    if (!f.host.empty()) e.host = f.host;
    e.file = std::move(input.file);
    e.offset = input.offset;
    e.text = quoted(f);
    e.time_ns = f.time_ns;
    e.rank = f.rank;
    e.uid = input.user;
    kept.evidence.push_back(std::move(e));
  }
  if (kept.count > 1) return std::nullopt;
  kept.first_ns = f.time_ns;
  kept.user = input.user;
  kept.first = std::move(f);
  if (kept.first.severity < PluginSeverity::kError) return std::nullopt;
  return finding_of(kept);
}

Finding PluginFindings::finding_of(const Kept& kept) {
  const PluginFinding& said = kept.first;
  Finding f;
  f.detector = DetectorKind::kPlugin;
  f.plugin = said.plugin;
  f.id = said.id;
  f.times = kept.times;
  f.kind = said.severity >= PluginSeverity::kError ? FindingKind::kFault : FindingKind::kSupport;
  f.fatal = said.severity == PluginSeverity::kFatal;
  f.confidence = said.confidence;
  f.title = said.title;
  f.category = from_word<Category>(said.category).value_or(Category::kUnknown);
  f.component = from_word<Component>(said.component).value_or(Component::kUnknown);
  f.symptom = from_word<Symptom>(said.symptom).value_or(Symptom::kOther);
  f.action = from_word<ActionKind>(said.action).value_or(ActionKind::kNone);
  f.remedy = said.remedy;
  f.first_ns = kept.first_ns;
  f.last_ns = kept.stands ? kNoTime : kept.last_ns;
  f.lines = kept.count;
  f.evidence = kept.evidence;
  f.why.push_back(sentence(said, kept.count));
  if (kept.user) f.said_by.uids.push_back(*kept.user);
  if (!said.host.empty() || said.rank) {
    FindingSubject subject;
    if (!said.host.empty()) subject.host = said.host;
    if (!said.peer.empty()) subject.peer = said.peer;
    subject.rank = said.rank;
    subject.device = said.device;
    subject.strength = weight_of(said.severity) * said.confidence;
    f.subjects.push_back(std::move(subject));
  }
  return f;
}

std::vector<Finding> PluginFindings::findings(const detect::View& view, const JobFile& job) const {
  std::vector<Finding> out;
  for (const auto& [key, kept] : kept_) {
    Finding f = finding_of(kept);
    for (FindingSubject& s : f.subjects)
      if (s.host && s.device && !s.rank) s.rank = rank_of(view, job, *s.host, *s.device);
    out.push_back(std::move(f));
  }
  return out;
}

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

bool explains(const Finding& cause, const Finding& effect) {
  if (cause.detector != DetectorKind::kPlugin || effect.detector == DetectorKind::kPlugin) return false;
  if (!cause.said_by.uids.empty()) return false;  // a claim proves no cause
  if (effect.kind != FindingKind::kFault || !effect.rule.empty() || effect.by_no_device) return false;
  const bool measured = effect.symptom == Symptom::kSlowdown || effect.symptom == Symptom::kHang ||
                        effect.symptom == Symptom::kNumeric;
  if (!measured || cause.symptom != effect.symptom || !fits(cause.component, effect.component)) return false;
  if (cause.subjects.empty() || cause.confidence <= 0 || cause.subjects[0].strength <= 0) return false;
  const auto of_it = [&](const FindingSubject& s) { return same_place(cause.subjects[0], s); };
  return std::ranges::any_of(effect.subjects, of_it) && same_time(cause, effect);
}

void join(Finding&& cause, Finding& effect) {
  effect.why.insert(effect.why.begin(), std::make_move_iterator(cause.why.begin()),
                    std::make_move_iterator(cause.why.end()));
  effect.why.insert(effect.why.begin() + static_cast<std::ptrdiff_t>(cause.why.size()), effect.title);
  effect.title = std::move(cause.title);
  effect.detector = DetectorKind::kPlugin;
  effect.plugin = std::move(cause.plugin);
  effect.category = cause.category;
  effect.component = cause.component;
  if (!cause.remedy.empty()) effect.remedy = std::move(cause.remedy);
  if (cause.action != ActionKind::kNone) effect.action = cause.action;
  effect.confidence = std::min(kMost, 1 - (1 - effect.confidence) * (1 - cause.confidence));
  effect.fatal = effect.fatal || cause.fatal;
  effect.lines += cause.lines;
  std::ranges::move(cause.evidence, std::back_inserter(effect.evidence));
  // The daemon's own plugin confirms the fault: it no longer rests on a user's word.
  effect.said_by = {};
}

}  // namespace

void join_plugins(std::vector<Finding>& findings) {
  std::vector<size_t> joined;
  for (Finding& effect : findings) {
    // The most certain cause explains it; others remain.
    std::optional<size_t> best;
    for (size_t i = 0; i < findings.size(); ++i) {
      const bool spent = std::ranges::find(joined, i) != joined.end();
      if (spent || !explains(findings[i], effect)) continue;
      if (!best || findings[i].confidence > findings[*best].confidence) best = i;
    }
    if (!best) continue;
    join(std::move(findings[*best]), effect);
    joined.push_back(*best);
  }
  std::ranges::sort(joined, std::greater());
  for (const size_t i : joined) findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace culprit::core
