// Load on the cores of the ranks' hosts, from the metrics host/* (docs/formats.md section 4). It
// distinguishes a rank that loses its core to other work from a rank with a slow device. Keeps the last
// samples of each rank, about 2 KB, for at most kRanks ranks. Owned by the engine; one thread; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "model/metric.h"

namespace culprit::comm {

// Means over a rank's last samples; negative: unknown.
struct CoreUse {
  double pressure = -1;  // percent of time in which some task of the host waited for a core
  double runnable = -1;  // runnable tasks of the host per core
  double switches = -1;  // involuntary context switches of the process per second
  double others = -1;    // the same, of the job's other ranks
  double waits = -1;     // share of time in which the process was ready and had no core
  double others_wait = -1;
  // Whether another process runs on the process's core, even if other cores of the host are idle.
  bool starved() const;
  bool contended() const;
  std::string sentence() const;  // empty: unknown
};

class HostLoad {
 public:
  static constexpr size_t kSamples = 64, kRanks = 1 << 14;

  void add(const MetricRow& row);
  CoreUse of(uint32_t rank) const;

 private:
  struct Sample {
    TimeNs time_ns = kNoTime;
    double pressure = -1, runnable = -1, switches = -1, waited_ms = -1;
  };
  // Growth of a counter per second; negative: unknown.
  static double rate(const std::deque<Sample>& samples, double Sample::*counter);

  std::unordered_map<uint32_t, std::deque<Sample>> samples_;  // by rank
};

}  // namespace culprit::comm
