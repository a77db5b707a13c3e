// The load on the cores of the ranks' hosts, from the ranks' metrics host/* (FORMATS.md section 4). It
// separates a rank that loses its core to other work from one whose device is slow. Keeps the last samples of
// each rank, about 2 KB, for at most kRanks ranks. Owned by the engine, one thread, pure.
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
  double pressure = -1;  // percent of the time in which a task of its host waited for a core
  double runnable = -1;  // tasks of its host that run or want to, per core
  double switches = -1;  // times a second that the kernel took a core from the process
  double others = -1;    // the same of the job's other ranks
  bool contended() const;
  std::string sentence() const;  // empty: nothing is known
};

class HostLoad {
 public:
  static constexpr size_t kSamples = 64, kRanks = 1 << 14;

  void take(const MetricRow& row);
  CoreUse of(uint32_t rank) const;

 private:
  struct Sample {
    TimeNs time_ns = kNoTime;
    double pressure = -1, runnable = -1, switches = -1;
  };
  static double rate(const std::deque<Sample>& samples);

  std::unordered_map<uint32_t, std::deque<Sample>> samples_;  // by rank
};

}  // namespace culprit::comm
