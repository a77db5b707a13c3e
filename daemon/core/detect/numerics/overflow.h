// Detects NaN/Inf on most ranks at once: no single rank is at fault, and later results are invalid. A loss,
// parameters or an update raise an alarm at once. With loss scaling, which may be unreported, occasional
// overflows of gradients alone are expected: the step is skipped and the scale halved. So gradients must
// overflow in more steps than halvings of the usual initial scale, 2^16, can take. Owned by one detector; one
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/replica_check.h"
#include "core/detect/numerics/window.h"

namespace culprit::numerics {

class Overflow {
 public:
  // The alarm of this step, repeated while the fault lasts. The first failed metric leads.
  std::optional<Alarm> step(const Frame& frame, const Window& window, const Marks& astray);

 private:
  struct Column {
    Marks sound;                   // by slot: whether it was ever finite
    std::optional<int64_t> since;  // not finite on most ranks since this step
  };
  // Ranks that report a metric, and those whose value is not finite.
  struct Count {
    size_t reported = 0, lost = 0;
  };
  Count count(const std::vector<double>& cells, const Marks& astray, Marks& sound) const;

  std::vector<Column> columns_;
  uint32_t skipped_ = 0;  // consecutive steps in which only gradients overflow
  bool first_ = true;     // no metric was reported before
  std::string why_;       // reason of the current spell; empty: no spell
};

}  // namespace culprit::numerics
