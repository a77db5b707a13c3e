// Wait before the next attempt: exponential backoff with full jitter, so that agents that lost their
// collector at the same time spread their reconnects over the whole wait. A value; time and randomness are
// arguments.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/hash.h"
#include "base/time.h"

namespace culprit::forward {

class Backoff {
 public:
  static constexpr TimeNs kFirstNs = kNsPerSecond, kMostNs = 60 * kNsPerSecond;
  // Smallest bound: short enough to go unnoticed, long enough to prevent a storm of refused attempts.
  static constexpr TimeNs kLeastNs = 50 * kNsPerMs;

  explicit Backoff(uint64_t seed) : seed_(seed) {}
  // Random between (nearly) 0 and a bound that doubles with each consecutive failure.
  TimeNs next() {
    const TimeNs bound = std::min(kMostNs, kFirstNs << std::min<uint64_t>(failures_++, 6));
    const double share = static_cast<double>(mix64(seed_, drawn_++) >> 11) * 0x1.0p-53;
    return std::max(kLeastNs, static_cast<TimeNs>(static_cast<double>(bound) * share));
  }
  // Call after a permanent refusal, which ends only when a person changes something.
  void hopeless() { failures_ = std::max<uint64_t>(failures_, 6); }
  void settled() { failures_ = 0; }

 private:
  const uint64_t seed_;
  uint64_t failures_ = 0, drawn_ = 0;
};

}  // namespace culprit::forward
