// The faults of a job's numbers as they are found: each one entry, however many steps show it. Owned by one
// detector; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/time.h"

namespace culprit::core::numerics {

enum class Cause : uint8_t {
  kReplica,    // a replica differs from its peers in what they hold alike
  kSum,        // the reduced gradient is not the mean of what went into it
  kNotFinite,  // one rank's numbers are not finite, its peers' are
  kApart,      // one rank's local numbers stand apart, in a part of the model and not as its samples' would
  kAudit,      // the same computed elsewhere gave something else
  kBatch,      // samples of some ranks
  kAllBatch,   // samples of all
  kUnstable,   // the optimiser
  kOverflow,   // numbers of most ranks are not finite, whatever it is due to
  kPlanned,    // a change that the loop announced or made itself
};
constexpr bool is_corruption(Cause cause) { return cause <= Cause::kAudit; }

// Steps computed again, which gave the same.
struct Agreed {
  uint64_t times = 0;
  int64_t first = 0, last = 0;  // steps
};

struct Case {
  Cause cause = Cause::kReplica;
  int64_t step = 0, detected_at = 0, last_step = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::vector<uint32_t> slots;  // ascending; empty: nobody is known, or all
  bool proved = false;          // by a check of the device
  bool shared = false;          // one of the slots, unknown which
  std::vector<std::string> metrics;
  double confidence = 0;
  std::optional<int64_t> equal_step;  // when replicas were alike for the last time
  std::vector<std::string> why;
  Agreed same, elsewhere;  // on the suspected device, on another
  bool open = true;
};

class Cases {
 public:
  // The open case of this cause and these slots, or none.
  Case* open(Cause cause, const std::vector<uint32_t>& slots) {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      if (at->open && at->cause == cause && at->slots == slots) return &*at;
    }
    return nullptr;
  }
  // Where a check proved it before the numbers showed it, that case becomes this one.
  Case* add(Case made) {
    for (Case& known : all_) {
      if (!known.open || known.cause != Cause::kAudit || !is_corruption(made.cause)) continue;
      if (made.cause == Cause::kAudit || made.slots.size() != 1) continue;
      if (std::find(known.slots.begin(), known.slots.end(), made.slots[0]) == known.slots.end()) continue;
      made.step = std::min(made.step, known.step);
      made.detected_at = known.detected_at;
      made.last_step = std::max(made.last_step, known.last_step);
      made.first_ns = known.first_ns;
      made.proved = known.proved;
      made.confidence = std::max(made.confidence, known.confidence);
      made.why.insert(made.why.begin(), known.why.begin(), known.why.end());
      made.same = known.same;
      made.elsewhere = known.elsewhere;
      known = std::move(made);
      return &known;
    }
    if (all_.size() >= limits::kNumericFaults) {
      ++refused_;
      return nullptr;
    }
    all_.push_back(std::move(made));
    return &all_.back();
  }
  std::vector<Case>& all() { return all_; }
  const std::vector<Case>& all() const { return all_; }
  uint64_t refused() const { return refused_; }

 private:
  std::vector<Case> all_;
  uint64_t refused_ = 0;
};

}  // namespace culprit::core::numerics
