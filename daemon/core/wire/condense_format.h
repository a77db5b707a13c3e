// Layout of a block of condensed lines; only for condense.cc and expand.cc.
//
// Numbers of one kind form a column: similar numbers give long runs of equal bytes, which compress well. For
// each section (the lines of one source) `meta` has the number of entries in each other column. Both sides
// predict forms and writers from the same state; a column contains only the deviations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/limits.h"
#include "core/logs/batch.h"

namespace culprit::wire::condensed {

enum Column : size_t {
  kMeta,
  kFormCodes,
  kWriterCodes,
  kFlagCodes,
  kTimes,
  kNumbers,
  kTextSizes,
  kHits,
  kText
};
constexpr size_t kColumns = kText + 1;

// Flags of a line.
constexpr uint8_t kIndented = 1, kOwnTime = 2, kSkipped = 4, kNumbered = 8, kCounted = 16, kRenamed = 32;
constexpr uint8_t kFlags = 63;

// Values in the column of forms. kPredicted: the form that last followed the writer's previous form. kBlank:
// no form. Other values: the form's number plus kFirst.
constexpr uint64_t kPredicted = 0, kBlank = 1, kFirst = 2;

// Bytes of a line's text in a block: enough to decide its form, and longer than a report's quotations.
constexpr size_t kTextBytes = limits::kMessageBytes + 1;
static_assert(kTextBytes > limits::kEvidenceText);
constexpr uint64_t kHolesMax = 64;  // per hit; no hand-written regex has more groups
// Rules per session, over all rule reloads of an agent.
constexpr size_t kRulesMax = 1 << 16;
// Later times are dropped, so that the difference of two times does not overflow.
constexpr TimeNs kTimeMax = TimeNs{1} << 62;
constexpr TimeNs kUnits[] = {1, 1'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
constexpr const char* kFoldedText = "<*> <*> (folded)";

// The last number that a form counted.
struct Count {
  int64_t value = 0, total = 0;
  uint32_t name = 0;
  bool bar = false;
};

// State of a form and of a writer, equal on both sides.
struct FormMemory {
  uint8_t flags = kOwnTime;
  logs::Level level = logs::Level::kNone;
  uint32_t next = 0;               // the form that followed this one last time
  uint32_t count = logs::kNoForm;  // index of its Count, if any
};
struct WriterMemory {
  uint32_t form = logs::kNoForm;  // the latest form
  uint32_t next = 0;              // the writer that followed this one last time in its source
};
struct SourceMemory {
  TimeNs time = kNoTime;
  uint32_t writer = 0;
};

inline TimeNs plus(TimeNs time, uint64_t difference) {
  return static_cast<TimeNs>(static_cast<uint64_t>(time) + difference);
}
inline TimeNs start(TimeNs time) { return time == kNoTime ? 0 : time; }

}  // namespace culprit::wire::condensed
