// The training's own numbers in one line: keys with a value, as in the progress lines of all frameworks.
//
//   iter 200: loss nan, time 12.3ms        | lm loss: 1.2E+01 | loss scale: 1.0 | grad norm: nan |
//   {'loss': 2.1, 'grad_norm': inf, 'learning_rate': 5e-05}        epoch: 1 step: 10, loss is nan
//
// Only the training's own loss counts: NaN in an evaluation or in an auxiliary term of the loss is weak
// evidence. Pure, any thread.
#pragma once

#include <optional>
#include <string_view>

namespace culprit::logs {

struct LineValues {
  std::optional<double> loss, norm, rate, scale;  // NaN and infinity are values
  bool skipped = false;                           // the line reports a step skipped for an overflow

  bool any() const { return loss || norm || scale || skipped; }
};

LineValues values_of(std::string_view message);

}  // namespace culprit::logs
