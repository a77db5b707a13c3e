// What a report without a fault may claim: that a job is well needs a proof, its progress or a stated good
// end. Pure.
#pragma once

#include "core/detect/analysis.h"
#include "model/report.h"

namespace culprit::diagnose {

// What speaks for a job's health beside its lines.
struct Proof {
  bool ended_well = false;
  bool progress = false;
  bool traces =
      false;  // records of communication, numbers of the loop, dumps: they were judged by themselves
};

// Where nothing was found and nothing proves that all is well, says in `missing` what would.
void ask_for_proof(const Proof& proof, Report& report);

}  // namespace culprit::diagnose
