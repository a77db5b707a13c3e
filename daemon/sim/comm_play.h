// Runs the communication of a simulated job step by step, with its faults and without each: durations of
// steps, and records. Deterministic; one thread.
#pragma once

#include <vector>

#include "base/status.h"
#include "sim/comm_fault.h"
#include "sim/comm_file.h"

namespace culprit::sim {

struct CommPlay {
  std::vector<double> with_ms, without_ms;        // by step
  std::vector<std::vector<double>> without_each;  // by fault
  bool stuck = false;
};

// Chooses a visible severity for a fault; a step takes at most `most` times as long.
void choose_severity(const CommSite& site, CommFault& fault, Random random, double least = 1.08,
                     double most = 2.5);

// `files`: null: no records are written.
Result<CommPlay> play_comm(const CommSite& site, const std::vector<CommFault>& faults, CommFiles* files);

}  // namespace culprit::sim
