// Numbers that stop being finite on most ranks at once: nobody's in particular, and nothing that is computed
// from them is worth anything. A loss, parameters or an update are told at once. Gradients alone overflow by
// plan under a scaled loss (told or not): the step is skipped and the scale halved, so they have to go on for
// longer than the usual first scale, 2^16, can be halved. Owned by one detector; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/detect/numerics/equal.h"
#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

class Overflow {
 public:
  struct Alarm {
    int64_t since = 0;                 // the first step
    std::vector<std::string> metrics;  // what is not finite now; what went first stands first
    std::string why;
  };
  // At each step while it lasts.
  std::optional<Alarm> step(const Frame& frame, const Window& window, const Marks& astray);

 private:
  struct Column {
    Marks sound;                   // by slot: was finite once
    std::optional<int64_t> since;  // not finite on most ranks
  };
  bool is_lost(const Frame& frame, uint32_t number, const Marks& astray, bool first);

  std::vector<Column> columns_;
  size_t bad_ = 0, told_ = 0;  // ranks, of the column that was looked at last
  uint32_t skipped_ = 0;       // steps in a row with gradients alone
  bool first_ = true;
  std::string why_;  // of the spell; empty: there is none
};

}  // namespace culprit::core::numerics
