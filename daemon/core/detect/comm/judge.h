// The judgement over all steps: which rank, host or part of the network was slow again and again, and at what
// cost; which steps were irregular for nobody's fault. Works on results of steps alone. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/detect/comm/announced.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

struct Culprit {
  std::string kind;             // a word of FORMATS.md: gpu host nic link nvlink switch
  std::vector<uint32_t> ranks;  // indices; of a link and of hosts: those that run there
  std::vector<uint32_t> hosts;  // indices
  double evidence = 0;          // log likelihood ratio at its highest
  double bar = 0;               // what chance alone reaches once in a hundred jobs
  double confidence = 0;        // 0..1
  double cost_ms = 0;           // a step, on the average of its steps
  double excess_ms = 0;         // the same, of a rank: all that it took beyond its peers
  double share = 0;             // of a rank: the same, of the step, on the average
  double ratio = 1;             // of its own time, or its network's, to what is usual
  bool nobody = false;          // one of many parts of the network: it cannot be told which
  bool pause = false;           // a rank that stood still once
  bool lasting = false;         // of a rank: in a lasting share of the steps
  bool stalls = false;          // of a rank that comes and goes: at few places of its steps
  size_t events = 0;            // independent ones, where it was not lasting
  size_t period = 0;            // steps from one to the next, where there is one
  bool hidden = false;          // it cost nothing only because another cost more
  size_t seen = 0;              // steps in which it was slow, whether it cost anything or not
  uint32_t peers = 0;           // that a rank was compared with
  uint64_t comm = 0;            // of the network: in which it cost most
  std::vector<uint32_t> steps;  // indices into the results, ascending
  std::vector<double> costs;    // ms, beside `steps`
};

struct Judgement {
  std::vector<Culprit> culprits;  // the costliest first
  std::vector<Culprit> cheap;     // as sure, and they cost a step less than jobs differ by: to be stated
  std::vector<uint32_t> odd;      // steps that took long for nobody's fault: indices, ascending
};

// `live`: more steps will come, so the judge may wait for them. `phases`: announced by ranks; null: none.
Judgement judge(const Cluster& cluster, const std::deque<StepResult>& steps, bool live = false,
                const Announced* phases = nullptr);

}  // namespace culprit::comm
