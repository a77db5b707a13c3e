// Bounds of dumps that processes leave (Flight Recorder), each with its reason; the others are in limits.h.
// What goes beyond one is cut or dropped, counted and told.
#pragma once

#include <cstddef>

namespace culprit::limits {

// The recorder's buffer has 2,000 entries by default, of some 500 bytes each, 20 KB with the frames of C++:
// hundred times the usual. A value takes 16 bytes, a member of a list or table 4.
constexpr size_t kDumpBytes = 256 << 20;
constexpr size_t kDumpValues = 8 << 20;
constexpr size_t kDumpHeld = 64 << 20;  // members, and bytes of texts that had to be copied
constexpr size_t kDumpNesting = 256;    // a size within sizes within an entry is six deep
constexpr size_t kDumpOps = 1 << 18;    // of one dump
constexpr size_t kDumpFrames = 32;      // of a stack that is kept
constexpr size_t kDumpGroups = 65'536;  // of one dump
// Operations over all dumps of a job, 48 bytes each: 65,536 ranks with a hundred that wait, or 4,000 with
// full buffers.
constexpr size_t kFlightOps = 8 << 20;

}  // namespace culprit::limits
