// What two members of a sweep measured between their hosts. Members count from 0 to their number - 1.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace culprit::sweep {

constexpr uint32_t kMembersMost = 2048;

// Bytes in one direction, as the receiver counted them.
struct Flow {
  bool measured = false;   // false: too few bytes arrived for a rate
  bool disturbed = false;  // a member waited for a processor for a good part of the time
  double rate = 0;         // bytes per second
  double most = 0;         // the same without the waits for a processor: what the network may give
  uint64_t bytes = 0;
  uint64_t wrong = 0;  // bytes that differ from what was sent
};

enum class PairAnswer : uint8_t {
  kMeasured,    // the members exchanged bytes, or began to
  kNotReached,  // both members answered the coordinator, and not each other
  kNoReport,    // a member did not answer the coordinator: says nothing about the network
};

struct PairRun {
  uint32_t a = 0, b = 0;  // a < b
  uint32_t round = 0;
  bool follow_up = false;  // few other pairs ran at the same time
  PairAnswer answer = PairAnswer::kNoReport;
  Flow to_b, to_a;
  TimeNs latency_ns = kNoTime;  // of the fastest round trip
};

using Pair = std::pair<uint32_t, uint32_t>;  // first < second
using Round = std::vector<Pair>;             // each member at most once

}  // namespace culprit::sweep
