// A rank that exited or hangs without a report: all peers report that they lost it or waited for it. A kill
// -9 and a hung rank both look like this. Pure.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/detect/logs/view.h"
#include "model/finding.h"

namespace culprit::diagnose {

// Rule lines that count as a rank's own failure report.
struct RankReports {
  std::set<uint32_t> any;                       // ranks with a fault line of any kind
  std::vector<const logs::RuleLine*> of_peers;  // lines that report a lost or late peer
  Symptom symptom = Symptom::kCrash;            // the symptom in these lines
  TimeNs first_cause_ns = kNoTime;              // the first fault line that is not the effect of another
};

// Also empty if a cause was reported before the first peer lost the rank: then the rank's end is an effect.
std::optional<Finding> find_quiet_rank(const detect::View& view, const RankReports& reports);

}  // namespace culprit::diagnose
