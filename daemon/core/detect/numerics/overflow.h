// Numbers that stop being finite on most ranks at once: nobody's in particular, and nothing that is computed
// from them is worth anything. A loss, parameters or an update are told at once. Gradients alone overflow by
// plan under a scaled loss (told or not): the step is skipped and the scale halved, so they have to go on for
// longer than the usual first scale, 2^16, can be halved. Owned by one detector; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/equal.h"
#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

class Overflow {
 public:
  // At each step while it lasts; of the metrics what went first stands first.
  std::optional<Alarm> step(const Frame& frame, const Window& window, const Marks& astray);

 private:
  struct Column {
    Marks sound;                   // by slot: was finite once
    std::optional<int64_t> since;  // not finite on most ranks
  };
  // Ranks that tell a metric, and of those the ones whose value is not finite.
  struct Count {
    size_t told = 0, lost = 0;
  };
  Count count(const std::vector<double>& cells, const Marks& astray, Marks& sound) const;

  std::vector<Column> columns_;
  uint32_t skipped_ = 0;  // steps in a row with gradients alone
  bool first_ = true;     // nothing was told before
  std::string why_;       // of the spell; empty: there is none
};

}  // namespace culprit::core::numerics
