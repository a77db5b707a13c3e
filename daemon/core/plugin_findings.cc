#include "core/plugin_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "model/report.h"

namespace culprit::core {
namespace {

constexpr size_t kEvidence = 4;
constexpr size_t kTimes = 64;  // rules count a few occurrences
constexpr size_t kTitleBytes = 200, kRemedyBytes = 1000;
// Number of a user's findings per job that are quoted in full: a person reads no more. A user may name 64
// jobs with 256 subjects each.
constexpr size_t kWholeTextsOfUser = 16;
constexpr size_t kShortTextBytes = 160;
// Length of a user's sentence in a report, which other diagnoses repeat as a reason against the host. The
// evidence quotes the text.
constexpr size_t kSentenceBytes = 200;
// Below this confidence, a plugin's finding accuses nothing.
constexpr double kLikely = 0.5;
// A cause is observed some time before or after the job's first and last lines: plugins sample every few
// seconds to a minute. A stopped job is silent until NCCL's time-out, 10 minutes by default.
constexpr TimeNs kBeforeJob = 120 * kNsPerSecond, kAfterJob = 600 * kNsPerSecond;
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

// The observation, with the part of the host or device.
std::string observed(const PluginFinding& f) {
  std::string text = f.text.empty() ? f.title : f.text;
  if (!f.part.empty() && text.find(f.part) == std::string::npos) text = fmt::format("{}: {}", f.part, text);
  return text;
}

void shorten_to(std::string& text, size_t bytes) {
  if (text.size() > bytes) text = shorten(text, bytes);
}

// The fault and its place in a user's wording.
void shorten_names(PluginFinding& f) {
  for (std::string PluginFinding::*const text : kPluginFindingTexts)
    if (text != &PluginFinding::text && text != &PluginFinding::remedy)
      shorten_to(f.*text, limits::kNameBytes);
}

std::string quoted(const PluginFinding& f) {
  std::string text = observed(f);
  for (size_t i = 0; i < f.values.size(); ++i)
    text += fmt::format("{}{}={}", i == 0 ? " (" : ", ", f.values[i].first, f.values[i].second);
  if (!f.values.empty()) text += ")";
  return shorten(text, limits::kEvidenceText);
}

std::string sentence(const PluginFinding& f, uint64_t count) {
  std::string out = fmt::format("plugin {}: {}", f.plugin, observed(f));
  if (count > 1) out += fmt::format(" ({} times)", count);
  return out;
}

// The rank of each device of a host, if exactly one log has the device.
class RanksOfDevices {
 public:
  RanksOfDevices(const detect::View& view, const JobFile& job) : job_(job) {
    for (const detect::Unit& rank : view.ranks) {
      if (rank.host == detect::kNowhere || rank.ranks.size() != 1 || rank.devices.size() != 1) continue;
      const auto [at, fresh] =
          ranks_.try_emplace({view.hosts[rank.host].name, rank.devices[0]}, rank.ranks[0]);
      if (!fresh) at->second.reset();
    }
  }
  // From job.toml, else from the logs.
  std::optional<uint32_t> of(const std::string& host, uint32_t device) const {
    if (const auto known = rank_of_local(job_, host, device)) return known;
    const auto at = ranks_.find({host, device});
    return at == ranks_.end() ? std::nullopt : at->second;
  }

 private:
  const JobFile& job_;
  std::map<std::pair<std::string, uint32_t>, std::optional<uint32_t>> ranks_;
};

bool in_time(const Finding& f, const JobScope& scope) {
  if (f.first_ns == kNoTime || scope.first_ns() == kNoTime) return true;
  if (f.last_ns != kNoTime && f.last_ns + kBeforeJob < scope.first_ns()) return false;
  return f.first_ns <= scope.last_ns() + kAfterJob;
}

}  // namespace

bool is_about_culprit(const PluginFinding& finding) { return finding.id.starts_with("culprit."); }

bool forgets(const PluginFinding& finding) { return finding.id == kPluginForgot; }

// A user may fill neither other users' share nor the memory.
bool PluginFindings::may_keep(std::optional<Principal> user) {
  if (retained_.size() < limits::kPluginSubjects &&
      (!user || of_user_[*user] < limits::kPluginSubjectsOfUser)) {
    if (user) ++of_user_[*user];
    return true;
  }
  ++dropped_;
  return false;
}

void PluginFindings::forget(FindingInput input) {
  PluginFinding& f = input.finding;
  if (input.user) shorten_names(f);
  for (auto& [key, retained] : retained_) {
    const bool its = retained.first.plugin == f.plugin && retained.first.host == f.host &&
                     retained.user == input.user && retained.agent == input.agent;
    if (!its || !retained.is_active) continue;
    retained.is_active = false;
    retained.last_ns = std::max(retained.last_ns, f.time_ns);
  }
}

std::optional<Finding> PluginFindings::add(FindingInput input) {
  PluginFinding& f = input.finding;
  if (input.user) shorten_names(f);
  const Key key(f.plugin, f.id, f.host, f.peer, f.part, f.rank, f.device, input.user, input.agent);
  const auto known = retained_.find(key);
  if (f.state == PluginState::kCleared) {
    if (known == retained_.end()) return std::nullopt;
    known->second.is_active = false;
    known->second.cleared = true;
    known->second.last_ns = std::max(known->second.last_ns, f.time_ns);
    return std::nullopt;
  }
  if (known == retained_.end() && !may_keep(input.user)) return std::nullopt;
  if (input.user && of_user_[*input.user] > kWholeTextsOfUser) {
    shorten_to(f.text, kShortTextBytes);
    shorten_to(f.remedy, kShortTextBytes);
    f.values.clear();
  }
  RetainedFinding& retained = known == retained_.end() ? retained_[key] : known->second;
  ++retained.count;
  retained.is_active = f.state == PluginState::kRaised;
  retained.cleared = false;
  retained.last_ns = std::max(retained.last_ns, f.time_ns);
  if (retained.times.size() == kTimes) retained.times.erase(retained.times.begin());
  retained.times.push_back(f.time_ns);
  if (retained.evidence.size() < kEvidence) {
    Evidence e;
    if (!f.host.empty()) e.host = f.host;
    e.file = std::move(input.file);
    e.offset = input.offset;
    e.text = quoted(f);
    e.time_ns = f.time_ns;
    e.rank = f.rank;
    e.uid = input.user;
    retained.evidence.push_back(std::move(e));
  }
  if (retained.count > 1) return std::nullopt;
  retained.first_ns = f.time_ns;
  retained.user = input.user;
  retained.agent = std::move(input.agent);
  retained.first = std::move(f);
  retained.first.values.clear();  // they are in the evidence
  shorten_to(retained.first.title, kTitleBytes);
  shorten_to(retained.first.remedy, kRemedyBytes);
  Finding found = finding_of(retained, false);
  return found.kind == FindingKind::kFault ? std::optional(std::move(found)) : std::nullopt;
}

Finding PluginFindings::finding_of(const RetainedFinding& retained, bool over) {
  const PluginFinding& reported = retained.first;
  Finding f;
  f.detector = DetectorKind::kPlugin;
  f.plugin = reported.plugin;
  f.id = reported.id;
  f.times = retained.times;
  // An ended state did not stop the job; it may explain measurements of its time.
  const bool fault = reported.severity >= PluginSeverity::kError && reported.confidence >= kLikely && !over;
  f.kind = fault ? FindingKind::kFault : FindingKind::kSupport;
  f.fatal = fault && reported.severity == PluginSeverity::kFatal;
  // A job may continue with such a fault, so a measured stop or slowdown has priority.
  f.general = fault && !f.fatal;
  f.confidence = reported.confidence;
  f.title = reported.title;
  f.category = from_word<Category>(reported.category).value_or(Category::kUnknown);
  f.component = from_word<Component>(reported.component).value_or(Component::kUnknown);
  f.symptom = from_word<Symptom>(reported.symptom).value_or(Symptom::kOther);
  f.action = from_word<ActionKind>(reported.action).value_or(ActionKind::kNone);
  if (f.component == Component::kHostMemory && f.symptom == Symptom::kCrash) f.ends = ProcessEnd::kKilled;
  f.restart = from_word<Restart>(reported.restart);
  f.remedy = reported.remedy;
  f.first_ns = retained.first_ns;
  f.last_ns = retained.is_active ? kNoTime : retained.last_ns;
  f.lines = retained.count;
  f.evidence = retained.evidence;
  f.why.push_back(sentence(reported, retained.count));
  if (retained.user) shorten_to(f.why.back(), kSentenceBytes);
  if (over && retained.last_ns > retained.first_ns)
    f.why.back() +=
        fmt::format("; it was over after {}", format_duration(retained.last_ns - retained.first_ns));
  if (retained.user) f.said_by.uids.push_back(*retained.user);
  const bool hearsay = !retained.agent.empty() && !reported.host.empty() && reported.host != retained.agent;
  if (hearsay) f.said_by.hosts.push_back(retained.agent);
  if (!reported.host.empty() || reported.rank) {
    FindingSubject subject;
    if (!reported.host.empty()) subject.host = reported.host;
    if (!reported.peer.empty() && !retained.user) subject.peer = reported.peer;
    subject.rank = reported.rank;
    subject.device = reported.device;
    const double weight =
        fault ? weight_of(reported.severity) : std::min(kWarning, weight_of(reported.severity));
    const bool claim = retained.user || hearsay;  // a claim below a fault has no weight
    subject.strength = claim && !fault ? 0 : weight * reported.confidence;
    f.subjects.push_back(std::move(subject));
  }
  return f;
}

std::vector<Finding> PluginFindings::findings(const detect::View& view, const JobFile& job,
                                              const JobScope& scope) const {
  const RanksOfDevices ranks(view, job);
  std::vector<Finding> out;
  for (const auto& [key, retained] : retained_) {
    const bool of_job = scope.has(retained.first.host) || retained.first.host == retained.agent;
    if (!of_job) continue;
    // A state that ended after the job lasted until the job's end.
    const bool after = scope.last_ns() != kNoTime && retained.last_ns > scope.last_ns();
    Finding f = finding_of(retained, retained.cleared && !after);
    if (!in_time(f, scope)) continue;
    for (FindingSubject& s : f.subjects)
      if (s.host && s.device && !s.rank) s.rank = ranks.of(*s.host, *s.device);
    if (f.first_ns != kNoTime)
      if (const int64_t at = view.log->iterations().iteration_at(f.first_ns, 0, 0); at >= 0) f.iteration = at;
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace culprit::core
