// Results of steps, as the judge sees them, to test judging by itself.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/hash.h"
#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit {

// Results of steps of a job with one rank on each of 16 hosts.
struct StepResults {
  static constexpr uint32_t kRanks = 16, kSteps = 100;
  const JobFile job;
  comm::Cluster cluster{&job};
  std::deque<comm::StepResult> steps;

  StepResults() {
    for (uint32_t r = 0; r < kRanks; ++r) {
      CommRecord record;
      record.rank = r;
      cluster.rank_index(record, cluster.host_index("node-" + std::to_string(r)));
    }
    cluster.settle();
    for (uint32_t s = 0; s < kSteps; ++s) {
      comm::StepResult& step = steps.emplace_back();
      step.number = s;
      step.step_ms = 100;
      for (uint32_t r = 0; r < kRanks; ++r) {
        comm::RankStep of;
        of.rank = r;
        of.peers = kRanks;
        of.gaps = 20;
        of.self = 50;
        of.excess = of.closer = 0.01f * static_cast<float>(mix64(r, s) % 21) - 0.1f;
        step.ranks.push_back(of);
      }
    }
  }

  // A rank that takes this many milliseconds longer in a step, which becomes longer by the same time.
  void slow(uint32_t rank, uint32_t step, float ms) {
    comm::RankStep& of = steps[step].ranks[rank];
    of.excess = of.closer = of.largest = of.path = ms;
    of.self += ms;
    steps[step].step_ms += double{ms};
  }

  // The same, at all places of its work.
  void slow_work(uint32_t rank, uint32_t step, float ms) {
    slow(rank, step, ms);
    steps[step].ranks[rank].largest = ms / 10;
  }

  void slow_way_out(uint32_t host, uint32_t from, uint32_t to) {
    for (uint32_t s = from; s < to; ++s)
      steps[s].network.push_back({comm::NetKind::kHost, host, 0, 2, 10, 0.9f});
  }
};

}  // namespace culprit
