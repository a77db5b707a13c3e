// Suspects: what all findings together say against each host, or against each rank where hosts are unknown.
// Strengths add up, whichever detector they come from. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/detect/view.h"
#include "model/finding.h"

namespace culprit::diagnose {

struct Blame {
  uint32_t unit = detect::kNowhere;  // index into View::hosts; kNowhere: its logs are not here
  std::string name;                  // "node-3", "rank 13"
  double weight = 0;                 // sum of strengths
  TimeNs onset_ns = kNoTime;         // of the first finding against it
  std::optional<int64_t> iteration;  // then under way, where that finding tells
  bool silent = false;               // it stopped writing before its peers
  Suspect suspect;
};

// Best first; only those against whom there is something.
std::vector<Blame> blame(const detect::View& view, const std::vector<Finding>& findings);

}  // namespace culprit::diagnose
