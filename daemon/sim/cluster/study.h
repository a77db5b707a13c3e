// Runs of the simulated cluster with and without the controller, with each rule left out, and with each
// parameter halved and doubled. Equal options give equal rows. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/cluster/controlled.h"
#include "sim/cluster/params.h"
#include "sim/cluster/world.h"

namespace culprit::sim {

struct ClusterStudy {
  ClusterParams params;
  ControlOptions control = control_defaults();
  uint64_t seed = 1;
  uint32_t runs = 1;  // seeds seed .. seed + runs - 1, added up
  bool ablation = false, sweep = false;
  // Called before each row; false stops.
  std::function<bool(const std::string& name)> proceed = {};
};

struct StudyRow {
  std::string name;                    // "requeue-and-wait", "culprit", a rule or a parameter
  std::string about;                   // empty, or what is left out
  double value = 0;                    // of the parameter
  ClusterOutcome waiting, controlled;  // of a rule: `controlled` alone
  ClusterOutcome oracle;               // of the base alone
};

struct StudyResult {
  StudyRow base;
  std::vector<StudyRow> ablation;
  std::vector<StudyRow> parameters;  // of the world; halved, doubled
  std::vector<StudyRow> thresholds;  // of the controller; halved, doubled
};

ClusterOutcome run_waiting(const ClusterParams& params, uint64_t seed, uint32_t runs);
ClusterOutcome run_controlled(const ClusterParams& params, const ControlOptions& control, uint64_t seed,
                              uint32_t runs);
// The bound: every fault is known at once.
ClusterOutcome run_oracle(const ClusterParams& params, uint64_t seed, uint32_t runs);
StudyResult run_study(const ClusterStudy& study);

}  // namespace culprit::sim
