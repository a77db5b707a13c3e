// What a loop tells of checks that it made itself (events of FORMATS.md section 4), read from an event's
// fields.
//
//   {"kind":"event","name":"replay","step":120,"rank":13,"where":"same","equal":false}
//     step 120 of rank 13 was computed again, on its device ("same") or on another ("elsewhere"), and gave
//     the same or not.
//   {"kind":"event","name":"audit","step":120,"rank":13,"by":14,"equal":false,"odd":13}
//     the micro-batch of rank 13 was computed again by rank 14; where they differ, "odd" is who differs from
//     a third, when one was asked.
//
// Pure.
#pragma once

#include <optional>

#include "base/status.h"
#include "model/metric.h"

namespace culprit::core::numerics {

struct Check {
  enum class Kind { kReplaySame, kReplayElsewhere, kAudit };
  Kind kind = Kind::kAudit;
  int64_t step = 0;
  uint32_t rank = 0;
  uint32_t by = 0;  // of an audit
  bool equal = false;
  std::optional<uint32_t> odd;  // of an audit
};

// Nothing for an event of another name; an error names what is missing.
std::optional<Result<Check>> check_of(const LoopEvent& event);

}  // namespace culprit::core::numerics
