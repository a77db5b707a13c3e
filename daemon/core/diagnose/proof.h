// What a report without a fault may claim: "nothing wrong" requires proof, such as progress or a stated good
// end. Pure.
#pragma once

#include "core/detect/logs/analysis.h"
#include "model/report.h"

namespace culprit::diagnose {

// Evidence of a job's health.
struct Proof {
  bool ended_well = false;
  bool progress = false;
  // Communication records, loop metrics: their own detectors checked them.
  bool traces = false;
  // Offline: where a log ends before its announced end, "iteration 11 of 1000"; empty: no such log.
  std::string cut_short;
};

// If nothing was found and nothing proves health, adds the missing proof to `missing`.
void request_proof(const Proof& proof, Report& report);

}  // namespace culprit::diagnose
