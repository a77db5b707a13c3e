// Reads the frames of a spool verbatim and in order, for a peer that stores them, while the spool is
// written. Any thread, one call at a time. A reader keeps its position between calls and borrows nothing of
// the Spool. Never writes and never decompresses; returns only frames with correct checksums.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/files.h"
#include "store/segment.h"

namespace culprit::store {

struct VerbatimFrame {
  FrameHeader header;
  std::string bytes;  // header and stored bytes
};

struct FrameQuery {
  uint64_t after = 0;  // the last sequence before the requested ones
  uint64_t until = 0;  // last requested sequence: Spool::synced_sequence()
  size_t bytes = 1 << 20;
};

class FrameReader {
 public:
  FrameReader(io::Files& files, std::string folder, uint64_t epoch)
      : files_(files), folder_(std::move(folder)), epoch_(epoch) {}

  // Returns data frames after `after`: as many as fit `bytes`, but at least one if any exists. A jump of
  // the sequence means deleted or damaged frames. Empty: no frame up to `until` is left.
  Result<std::vector<VerbatimFrame>> read(const FrameQuery& query);
  // The checkpoint of the segment that contains frame `after` + 1, or else the next existing frame. It
  // declares all streams for a reader that starts after `sequence`, the last frame before the segment.
  // Frames between `sequence` and `after` may declare more. Empty if no such segment exists.
  struct Checkpoint {
    uint64_t sequence = 0;
    std::vector<VerbatimFrame> frames;
  };
  Result<Checkpoint> checkpoint(uint64_t after);

 private:
  Result<std::optional<uint64_t>> segment_of(uint64_t after);
  Status enter(uint64_t number);
  Result<bool> next(const FrameQuery& query);

  io::Files& files_;
  const std::string folder_;
  const uint64_t epoch_;
  std::optional<SegmentReader> reader_;
  uint64_t number_ = 0;    // of its segment
  uint64_t sequence_ = 0;  // of the last frame read
};

// Sequence of the last frame before the segment, read from the segment's first sound frame; nothing if
// there is none.
Result<std::optional<uint64_t>> sequence_before(SegmentReader& reader, uint64_t epoch);

}  // namespace culprit::store
