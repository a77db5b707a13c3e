// Compares values that are bit-identical on all replicas: digests, and metrics that were equal in many
// consecutive steps. Equality selects these metrics, not their names. A rank that differs from the majority
// is odd. Also checks that the local gradients of replicas sum to the reduced gradient. Owned by one
// detector; one thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/detect/numerics/window.h"

namespace culprit::numerics {

// Slots with wrong parameters ("astray"). They have no vote until they are equal again.
using Marks = std::vector<uint8_t>;  // by slot

class ReplicaCheck {
 public:
  struct Odd {
    std::vector<uint32_t> slots;  // ascending; on a tie, all slots
    bool tie = false;             // equally many ranks on both sides: no rank can be named
    std::vector<uint32_t> columns, digests;
    double apart = 0;  // largest relative difference of a metric; infinite if a value is not finite
  };
  // Differences at this step between slots that are not `astray`. `healed`: slots that were astray and are
  // equal again.
  struct ReplicaDiffs {
    std::optional<Odd> odd;
    std::vector<uint32_t> healed;
  };
  ReplicaDiffs step(const Frame& frame, const Window& window, std::span<const uint32_t> slots,
                    const Marks& astray);

  // Last step at which all digests were equal; without digests, all equal metrics.
  std::optional<int64_t> equal_step() const { return digest_step_ ? digest_step_ : metric_step_; }

 private:
  struct Column {
    uint32_t run = 0;  // consecutive equal steps, each with a new value
    double last = kAbsent;
    bool is_held = false;  // equal for enough steps, so a difference is an error
  };
  struct Team {
    std::span<const uint32_t> slots;
    const Marks& astray;
  };
  template <class Value, class Reported>
  bool compare(const Team& team, Value value, Reported reported);
  void compare_digests(const Frame& frame, const Team& team, Odd& odd);
  void compare_metrics(const Frame& frame, const Window& window, const Team& team, Odd& odd);
  void count(Odd& odd);

  std::vector<Column> columns_, digests_;
  std::optional<int64_t> digest_step_, metric_step_;
  std::vector<uint8_t> alike_;  // by slot astray: consecutive steps in which it is equal again
  // Of the column compared last.
  std::vector<uint32_t> odd_, back_;
  std::optional<uint32_t> leader_;  // a rank with the majority's value
  size_t voters_ = 0;
  // Of this step.
  std::vector<uint8_t> odd_now_;  // by slot
  std::vector<uint32_t> again_;   // by slot astray: number of columns in which it is equal
  uint32_t compared_ = 0;
  bool has_digest_ = false, has_metric_ = false;
};

// Checks that the mean over replicas of |g| cos(g, reduced) equals |reduced|, within the precision of
// six-digit values.
class Sum {
 public:
  struct Wrong {
    double expected = 0, reported = 0;
    bool overflowed = false;  // the sum is not finite although each part is
  };
  std::optional<Wrong> step(const Frame& frame, const Window& window, std::span<const uint32_t> slots);

 private:
  uint32_t run_ = 0;     // consecutive steps in which the equation held
  double worst_ = 0;     // largest relative error in these steps
  double usual_ = 0;     // largest norm of the parts, as a decaying maximum
  uint32_t finite_ = 0;  // steps with finite parts and sum
};

}  // namespace culprit::numerics
