// A rank that ended or stands still without a report: all peers report that they lost it or waited for it,
// and the rank itself reports nothing. A kill -9 and a stuck rank both look like that. Pure.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/detect/logs/view.h"
#include "model/finding.h"

namespace culprit::diagnose {

// The lines of rules that count as a rank's own report of trouble.
struct RankReports {
  std::set<uint32_t> any;                       // ranks with a line of any fault
  std::vector<const logs::RuleLine*> of_peers;  // that a peer is gone or late
  Symptom symptom = Symptom::kCrash;            // that these lines report
  TimeNs first_cause_ns = kNoTime;              // the first line of a fault that is no effect of another
};

// Empty as well if a cause was reported before the first peer lost the rank: its end is an effect.
std::optional<Finding> find_quiet_rank(const detect::View& view, const RankReports& reports);

}  // namespace culprit::diagnose
