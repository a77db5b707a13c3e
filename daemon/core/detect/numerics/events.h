// Checks that a training loop made itself, read from the fields of an event (docs/formats.md section 4).
//
//   {"kind":"event","name":"replay","step":120,"rank":13,"where":"same","equal":false}
//     Step 120 of rank 13 was recomputed on its device ("same") or on another ("elsewhere"); "equal" tells
//     whether the result was the same. "undone":true if the optimiser did not take a wrong one.
//   {"kind":"event","name":"audit","step":120,"rank":13,"by":14,"equal":false,"odd":13}
//     Rank 14 recomputed the micro-batch of rank 13. If they differ and a third rank was asked, "odd" is the
//     rank that differs from the third.
//
// Pure.
#pragma once

#include <optional>

#include "base/status.h"
#include "model/metric.h"

namespace culprit::numerics {

struct Check {
  enum class Kind { kReplaySame, kReplayElsewhere, kAudit };
  Kind kind = Kind::kAudit;
  int64_t step = 0;
  uint32_t rank = 0;
  uint32_t by = 0;  // for audits
  bool equal = false;
  bool undone = false;          // for replays: no wrong result was taken
  std::optional<uint32_t> odd;  // for audits
};

// Empty for events of another name; an error names the missing field.
std::optional<Result<Check>> check_of(const LoopEvent& event);

}  // namespace culprit::numerics
