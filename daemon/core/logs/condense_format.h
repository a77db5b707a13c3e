// How a block of condensed lines is laid out; between condense.cc and expand.cc alone.
//
// Numbers of one kind stand together, in columns, since those resemble each other: a compressor sees long
// runs of the same. For each section (the lines of one source) `meta` tells how many entries of the other
// columns are its own. What both sides remember of forms and writers is foretold alike on both: a column
// tells what comes otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/limits.h"
#include "core/logs/batch.h"

namespace culprit::logs::condensed {

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

// Of a line.
constexpr uint8_t kIndented = 1, kOwnTime = 2, kSkipped = 4, kNumbered = 8, kCounted = 16, kRenamed = 32;
constexpr uint8_t kFlags = 63;

// In the column of forms: the one that followed the writer's last form when that was seen last; none; else
// the form's number and kFirst.
constexpr uint64_t kForetold = 0, kBlank = 1, kFirst = 2;

// Bytes of a line's text that are told: all that decides its form, and more than is quoted.
constexpr size_t kTextBytes = limits::kMessageBytes + 1;
static_assert(kTextBytes > limits::kEvidenceText);
constexpr uint64_t kHolesMax = 64;  // of a hit; a regex with more groups is none that a person wrote
// Rules of a session, over all reloads of an agent's.
constexpr size_t kRulesMax = 1 << 16;
// Times beyond are taken as not told: a difference of two must fit.
constexpr TimeNs kTimeMax = TimeNs{1} << 62;
constexpr TimeNs kUnits[] = {1, 1'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
constexpr const char* kFoldedText = "<*> <*> (folded)";

// The number that a form counted last.
struct Count {
  int64_t value = 0, total = 0;
  uint32_t name = 0;
  bool bar = false;
};

// What both sides remember of a form and a writer.
struct FormMemory {
  uint8_t flags = kOwnTime;
  Level level = Level::kNone;
  uint32_t next = 0;         // the form that followed it
  uint32_t count = kNoForm;  // index of its Count, where it has one
};
struct WriterMemory {
  uint32_t form = kNoForm;  // its last one
  uint32_t next = 0;        // the writer that followed it in its source
};
struct SourceMemory {
  TimeNs time = kNoTime;
  uint32_t writer = 0;
};

inline TimeNs plus(TimeNs time, uint64_t difference) {
  return static_cast<TimeNs>(static_cast<uint64_t>(time) + difference);
}
inline TimeNs start(TimeNs time) { return time == kNoTime ? 0 : time; }

}  // namespace culprit::logs::condensed
