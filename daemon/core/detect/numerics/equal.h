// What replicas of a model hold alike to the last bit: digests, and those metrics that were alike in step
// after step, found by themselves and not by their names. Who differs from the most is odd. And what
// replicas' local gradients must add up to: the reduced one. Owned by one detector; one thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

// Slots whose parameters went astray do not vote until they are alike again.
using Marks = std::vector<uint8_t>;  // by slot

class Equal {
 public:
  struct Odd {
    std::vector<uint32_t> slots;  // ascending; of a tie all of it
    bool tie = false;             // as many hold the one as the other: nobody can tell who is wrong
    std::vector<uint32_t> columns, digests;
    double apart = 0;  // the largest relative difference of a metric; infinite where one is not finite
  };
  // What differs at this step, of slots that are not `astray` yet; `healed` are those that were and are
  // alike.
  struct Seen {
    std::optional<Odd> odd;
    std::vector<uint32_t> healed;
  };
  Seen step(const Frame& frame, const Window& window, std::span<const uint32_t> slots, const Marks& astray);

  // The last step at which all digests, or where there are none all equal metrics, were alike.
  std::optional<int64_t> equal_step() const { return digest_step_ ? digest_step_ : metric_step_; }

 private:
  struct Column {
    uint32_t run = 0;  // steps alike, one after another, of another value than the one before
    double last = kAbsent;
    bool is_held = false;  // was alike for long enough: it is to be so
  };
  struct Team {
    std::span<const uint32_t> slots;
    const Marks& astray;
  };
  template <class Value, class Told>
  bool compare(const Team& team, Value value, Told told);
  void compare_digests(const Frame& frame, const Team& team, Odd& odd);
  void compare_metrics(const Frame& frame, const Window& window, const Team& team, Odd& odd);
  void count(Odd& odd);

  std::vector<Column> columns_, digests_;
  std::optional<int64_t> digest_step_, metric_step_;
  std::vector<uint8_t> alike_;  // by slot astray: steps alike again
  // Of the column compared last.
  std::vector<uint32_t> odd_, back_;
  std::optional<uint32_t> leader_;  // who has what most have
  size_t voters_ = 0;
  // Of this step.
  std::vector<uint8_t> odd_now_;  // by slot
  std::vector<uint32_t> again_;   // by slot astray: columns in which it is alike
  uint32_t compared_ = 0;
  bool has_digest_ = false, has_metric_ = false;
};

// mean over replicas of |g| cos(g, reduced) = |reduced|, with what numbers of six digits leave of it.
class Sum {
 public:
  struct Wrong {
    double expected = 0, told = 0;
    bool overflowed = false;  // the sum is not finite though every part of it is
  };
  std::optional<Wrong> step(const Frame& frame, const Window& window, std::span<const uint32_t> slots);

 private:
  uint32_t run_ = 0;     // steps in which it held
  double worst_ = 0;     // relative error of those
  double usual_ = 0;     // of parts, the largest norm as a decaying maximum
  uint32_t finite_ = 0;  // steps with finite parts and sum
};

}  // namespace culprit::core::numerics
