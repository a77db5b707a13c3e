#include "core/fuse/merge_findings.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

namespace culprit::core::fuse {

void join_stall(std::vector<Finding>& findings) {
  const auto hangs = [](const Finding& f, DetectorKind detector) {
    return f.kind == FindingKind::kFault && f.symptom == Symptom::kHang && f.detector == detector;
  };
  const auto stall = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) {
    return f.rule.empty() && hangs(f, DetectorKind::kSilence);
  });
  const auto known = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& f) { return hangs(f, DetectorKind::kComm); });
  if (stall == findings.end() || known == findings.end()) return;
  if (!known->iteration) known->iteration = stall->iteration;
  std::move(stall->why.begin(), stall->why.end(), std::back_inserter(known->why));
  std::move(stall->evidence.begin(), stall->evidence.end(), std::back_inserter(known->evidence));
  known->lines += stall->lines;
  findings.erase(stall);
}

void join_left_out(comm::RankLeftOut left_out, std::vector<Finding>& findings) {
  constexpr int64_t kNear = 1;  // steps: a step's numbers may be logged in the next step
  Finding& fault = left_out.finding;
  const auto follows = [&](const Finding& f) {
    if (f.detector != DetectorKind::kNumerics || !f.iteration ||
        std::abs(*f.iteration - *fault.iteration) > kNear)
      return false;
    return std::any_of(f.subjects.begin(), f.subjects.end(),
                       [&](const FindingSubject& s) { return s.rank == fault.subjects[0].rank; });
  };
  for (const Finding& f : findings) {
    if (!follows(f)) continue;
    if (!left_out.stopped) fault.symptom = Symptom::kNumeric;
    if (fault.first_ns == kNoTime) fault.first_ns = fault.last_ns = f.first_ns;
    fault.why.push_back(f.title);
    fault.why.insert(fault.why.end(), f.why.begin(), f.why.end());
  }
  const bool agreed = std::erase_if(findings, follows) > 0;
  if (agreed || left_out.stopped) findings.push_back(std::move(fault));
}

void join_mismatch(std::vector<Finding>& findings) {
  const auto is_reported = [](const Finding& f) { return f.observes == Observes::kSizes; };
  const auto known = std::find_if(findings.begin(), findings.end(), [](const Finding& f) {
    return f.kind == FindingKind::kFault && f.detector == DetectorKind::kComm &&
           f.category == Category::kUser;
  });
  if (known == findings.end()) return;
  for (Finding& f : findings) {
    if (!is_reported(f)) continue;
    known->confidence = std::max(known->confidence, f.confidence);
    known->why.push_back(f.title);
    std::move(f.evidence.begin(), f.evidence.end(), std::back_inserter(known->evidence));
    known->lines += f.lines;
  }
  std::erase_if(findings, is_reported);
}

void join_lost(detect::LostNumbers lost, detect::Analysis& analysis, Report& report) {
  const auto is_numeric = [](const Finding& f) {
    return f.kind == FindingKind::kFault && f.symptom == Symptom::kNumeric;
  };
  auto& all = analysis.findings;
  const auto metric = std::find_if(all.begin(), all.end(), [&](const Finding& f) {
    return is_numeric(f) && f.rule.empty() && f.detector == DetectorKind::kNumerics;
  });
  if (metric != all.end()) {
    std::move(lost.finding.evidence.begin(), lost.finding.evidence.end(),
              std::back_inserter(metric->evidence));
    metric->lines += lost.finding.lines;
    return;
  }
  Finding& finding = lost.finding;
  for (Finding& f : all) {
    if (!is_numeric(f) || f.rule.empty()) continue;
    if (finding.rule.empty()) take_rule(f, finding);
    finding.fatal |= f.fatal;
    finding.confidence = std::max(finding.confidence, f.confidence);
    std::move(f.why.begin(), f.why.end(), std::back_inserter(finding.why));
    std::move(f.evidence.begin(), f.evidence.end(), std::back_inserter(finding.evidence));
    finding.lines += f.lines;
    finding.last_ns = std::max(finding.last_ns, f.last_ns);
  }
  std::erase_if(all, [&](const Finding& f) { return is_numeric(f) && !f.rule.empty(); });
  report.numerics.push_back(std::move(lost.fault));
  all.push_back(std::move(finding));
}

void put_slowness_behind(std::vector<Finding>& findings) {
  const auto is_worse = [](const Finding& f) {
    const bool fault = f.kind == FindingKind::kFault && f.role == FindingRole::kRoot;
    return fault && f.symptom != Symptom::kSlowdown && f.symptom != Symptom::kOther &&
           (f.fatal || f.confidence >= 0.5);
  };
  double worst = 0;
  for (const Finding& f : findings)
    if (is_worse(f)) worst = std::max(worst, f.confidence);
  if (worst <= 0) return;
  for (Finding& f : findings) {
    const bool measured =
        f.detector == DetectorKind::kComm || f.detector == DetectorKind::kPlugin || !f.found_by.empty();
    if (f.kind != FindingKind::kFault || !measured || f.symptom != Symptom::kSlowdown) continue;
    f.general = true;
    f.confidence = std::min(f.confidence, worst);
  }
}

}  // namespace culprit::core::fuse
