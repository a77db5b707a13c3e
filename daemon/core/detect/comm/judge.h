// Judgement over all steps: which rank, host or network part was slow repeatedly, and its cost. Also lists
// irregular steps without a culprit. Works only on results of steps. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/detect/comm/announced.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"
#include "model/report.h"

namespace culprit::comm {

struct Culprit {
  SlowPart kind = SlowPart::kGpu;
  std::vector<uint32_t> ranks;  // indices; for links and hosts: the ranks that run there
  std::vector<uint32_t> hosts;  // indices
  double evidence = 0;          // maximum of the log likelihood ratio
  double bar = 0;               // level that chance reaches in one of a hundred jobs
  double confidence = 0;        // 0..1
  double cost_ms = 0;           // cost per step, mean over its slow steps
  double excess_ms = 0;         // for ranks: mean excess per step, with or without cost
  double share = 0;             // for ranks: mean share of the excess in the step
  double ratio = 1;             // own time (or network time) relative to the usual time
  bool ambiguous = false;       // several network parts explain the slowdown equally well
  bool pause = false;           // a rank that paused once
  bool listed = false;          // explains single steps; no finding (odd_steps.h)
  bool lasting = false;         // for ranks: slow in a lasting share of the steps
  bool stalls = false;          // for intermittently slow ranks: slow at few places of the step
  size_t events = 0;            // number of independent events, if not lasting
  size_t period = 0;            // steps between events, if periodic
  bool likely = false;          // beyond chance among the ranks of its host, not among all
  bool hidden = false;          // has no cost only because another culprit costs more
  size_t seen = 0;              // number of slow steps, with or without cost
  uint32_t peers = 0;           // number of ranks that the rank was compared with
  uint64_t comm = 0;            // for network parts: the communicator with the highest cost
  std::vector<uint32_t> steps;  // indices into the results, ascending
  std::vector<double> costs;    // ms, parallel to `steps`
};

struct Judgement {
  std::vector<Culprit> culprits;  // highest cost first
  // Equally certain, but their cost per step is below the variation between jobs; reported without
  // accusation.
  std::vector<Culprit> cheap;
  // Ranks that stall, used only if other evidence identifies their host; not reported alone.
  std::vector<Culprit> likely;
  std::vector<Culprit> listed;  // suspects for single steps; no findings
  std::vector<uint32_t> odd;    // irregular steps without a culprit: indices, ascending
};

// `live`: more steps will come, so the judge may wait. `phases`: announced by ranks; null: none.
Judgement judge(const Cluster& cluster, const std::deque<StepResult>& steps, bool live = false,
                const Announced* phases = nullptr);

}  // namespace culprit::comm
