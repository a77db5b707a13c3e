// Rules with source `finding`: they match the detectors' findings.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/diagnose/signs.h"

namespace culprit::diagnose {
namespace {

// A finding's text for rules: "detector: text", with the title of a fault or the first reason of another
// finding; for a plugin "NAME ID: text", with its observation.
std::string text_for_rules(const Finding& f) {
  if (f.detector == DetectorKind::kPlugin)
    return fmt::format("{} {}: {}", f.plugin, f.id, f.evidence.empty() ? f.title : f.evidence[0].text);
  const std::string& what = f.title.empty() && !f.why.empty() ? f.why[0] : f.title;
  return fmt::format("{}: {}", to_string(f.detector), what);
}

Finding fault_of(const rules::Rule& rule, const logs::RuleLine& line, const Finding& f) {
  Finding fault = describe(rule, line);
  fault.detector = f.detector;
  fault.plugin = f.plugin;
  fault.said_by = f.said_by;
  if (!fault.by_no_device) fault.subjects = f.subjects;
  fault.first_ns = f.first_ns;
  fault.last_ns = f.last_ns;
  fault.iteration = f.iteration;
  fault.evidence = f.evidence;
  fault.lines = f.lines;
  fault.why.push_back(fmt::format("rule {}: {}", rule.id, line.text));
  return fault;
}

// The rule input from one finding, and its place.
rules::RuleHit hit_of_finding(const Finding& f) {
  rules::RuleHit hit;
  hit.time_ns = f.first_ns;
  hit.until_ns = f.last_ns;
  hit.source = rules::TextSource::kFinding;
  hit.text = text_for_rules(f);
  if (!f.subjects.empty()) {
    hit.host = f.subjects[0].host.value_or("");
    hit.rank = f.subjects[0].rank;
    hit.device = f.subjects[0].device;
  }
  if (f.iteration) hit.step = *f.iteration;
  return hit;
}

// Whether any user may have caused the finding by writing data. Findings from traces and dumps carry their
// user instead.
bool is_users_word(const Finding& f) {
  const bool of_logs = f.detector != DetectorKind::kComm && f.detector != DetectorKind::kNumerics &&
                       f.detector != DetectorKind::kFlight && f.detector != DetectorKind::kStacks;
  return of_logs && (!f.said_by.uids.empty() || !f.said_by.hosts.empty());
}

// Whether rules read the finding: if the job ended well, only measurements.
bool is_read(const Finding& f, bool ended_well) {
  const bool measured = f.detector == DetectorKind::kComm || f.detector == DetectorKind::kNumerics;
  return f.rule.empty() && (!ended_well || measured);
}

// A match of a rule with source `finding`.
struct FindingMatch {
  size_t finding = 0;
  rules::RuleHit hit;
};

// The matches in time order; matches of rules that depend on other rules come last.
std::vector<FindingMatch> match_findings(const std::vector<Finding>& findings, bool ended_well,
                                         const rules::Ruleset& set) {
  std::vector<FindingMatch> out;
  rules::Scanner scanner(set.matcher());
  for (size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    if (!is_read(f, ended_well) || is_users_word(f)) continue;
    const rules::RuleHit hit = hit_of_finding(f);
    scanner.begin(hit.text);
    for (const rules::RuleMatch& m :
         scanner.match(0, hit.text.size(), hit.text, rules::TextSource::kFinding)) {
      out.push_back({i, hit});
      out.back().hit.rule = m.rule;
      for (const std::string_view hole : m.holes) out.back().hit.holes.emplace_back(hole);
    }
  }
  const auto place = [&](const FindingMatch& m) {
    const auto& window = set.rules()[m.hit.rule].window;
    return std::pair(window && !window->with.empty(), m.hit.time_ns);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const FindingMatch& a, const FindingMatch& b) { return place(a) < place(b); });
  return out;
}

}  // namespace

void apply_rules_to_findings(rules::RuleRun& run, bool ended_well, std::vector<Finding>& findings) {
  std::vector<Finding> faults;
  for (FindingMatch& m : match_findings(findings, ended_well, run.ruleset())) {
    Finding& f = findings[m.finding];
    const rules::Rule& rule = run.ruleset().rules()[m.hit.rule];
    logs::RuleLine line;
    line.rule = m.hit.rule;
    line.text = m.hit.text;
    line.holes = m.hit.holes;
    bool fires = f.times.empty() && run.add(m.hit);
    for (const TimeNs time : f.times) {
      m.hit.time_ns = time;
      fires = run.add(m.hit).has_value() || fires;
    }
    if (!fires || rule.severity < Severity::kError) continue;
    faults.push_back(fault_of(rule, line, f));
    if (f.detector == DetectorKind::kPlugin) continue;
    // The rule names the fault that the detector saw: one diagnosis, with the detector's reasons.
    std::ranges::copy(f.why, std::back_inserter(faults.back().why));
    f.kind = FindingKind::kSupport;
  }
  std::ranges::move(faults, std::back_inserter(findings));
}

std::vector<SeenFinding> seen_findings(const std::vector<Finding>& findings, bool ended_well) {
  std::vector<const Finding*> retained;
  for (const Finding& f : findings)
    if (is_read(f, ended_well) && f.kind != FindingKind::kIteration) retained.push_back(&f);
  // Beyond the limit, findings that state a fault have priority.
  std::ranges::stable_partition(retained, [](const Finding* f) { return f->kind == FindingKind::kFault; });
  if (retained.size() > limits::kSeenFindings) retained.resize(limits::kSeenFindings);
  std::vector<SeenFinding> out;
  for (const Finding* finding : retained) {
    const Finding& f = *finding;
    const rules::RuleHit hit = hit_of_finding(f);
    SeenFinding seen{
        shorten(hit.text, limits::kEvidenceText), {}, hit.rank, hit.device, f.first_ns, f.last_ns};
    if (!hit.host.empty()) seen.host = hit.host;
    out.push_back(std::move(seen));
  }
  return out;
}

}  // namespace culprit::diagnose
