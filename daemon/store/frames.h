// Frames of a spool as they stand in its files, for a peer that keeps them as they are: read in order, while
// the spool is written. Any thread, one call at a time; it keeps its place from call to call and owns nothing
// of the Spool's. It never writes, never decompresses, and gives only frames whose checksums hold.
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
  std::string bytes;  // header and what it stores
};

struct FrameQuery {
  uint64_t after = 0;  // the last sequence that is not wanted
  uint64_t until = 0;  // the last one that is: Spool::synced_sequence()
  size_t bytes = 1 << 20;
};

class FrameReader {
 public:
  FrameReader(io::Files& files, std::string folder, uint64_t epoch)
      : files_(files), folder_(std::move(folder)), epoch_(epoch) {}

  // The data frames behind `after`, at least one where there is one, and no more than `bytes` of them. A jump
  // in their sequences is what was dropped or is damaged; where nothing comes, nothing is left up to `until`.
  Result<std::vector<VerbatimFrame>> read(const FrameQuery& query);
  // What the segment that holds frame `after` + 1, or the next one that is there, begins with: with these the
  // streams are known to somebody who begins to read behind `sequence`, that of the last frame before them.
  // Frames between it and `after` may tell more. Empty where there is none.
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
  uint64_t sequence_ = 0;  // of the last frame that it passed
};

// The sequence of the last frame before the segment, as its first sound frame tells; nothing where none does.
Result<std::optional<uint64_t>> sequence_before(SegmentReader& reader, uint64_t epoch);

}  // namespace culprit::store
