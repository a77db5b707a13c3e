// Suspects: the sum of all findings against each host, or against each rank if hosts are unknown. The
// strengths of all detectors are added; claims (speakers.h) together count as one. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/logs/view.h"
#include "model/finding.h"

namespace culprit::diagnose {

struct Blame {
  uint32_t unit = detect::kNowhere;  // index into View::hosts; kNowhere: no logs in the input
  std::string name;                  // "node-3", "rank 13"
  double weight = 0;                 // sum of strengths
  double claimed = 0;                // the part of `weight` from claims, before its limit
  TimeNs onset_ns = kNoTime;         // of the first finding against it
  std::optional<int64_t> iteration;  // at that time, if the finding has one
  bool silent = false;               // it stopped writing before its peers
  Suspect suspect;
};

// Best first; only units with enough weight. Findings that began on a host after the end of its ranks add no
// weight.
std::vector<Blame> blame(const detect::View& view, const std::vector<Finding>& findings,
                         const std::map<uint32_t, TimeNs>& torn_down = {});

}  // namespace culprit::diagnose
