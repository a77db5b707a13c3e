// Reads the files of a spool or an archive, while they are written: to rebuild engines after a restart, and
// to return the original bytes of a source. Any thread, one call at a time. Borrows nothing of the Spool
// and never writes. Returns only frames with correct checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/segment.h"
#include "store/spool.h"

namespace culprit::store {

// Reason of missing bytes.
constexpr std::string_view kDamaged = "a part of the store is damaged";
constexpr std::string_view kDropped = "the oldest evidence was dropped to keep the store within its size";

// Damage found while reading; all counts are 0 if everything was read.
struct ReadDamage {
  uint64_t frames = 0, bytes = 0;  // damaged, skipped
  uint64_t unreadable_segments = 0;
  std::string first;  // a sentence about the first
};

// Receives streams and pieces in the order of the spool, up to the frame `until` (Spool::last_sequence()).
// Each stream comes before its first piece. A first piece may begin after offset 0, with a gap that has the
// reason. Bytes of a piece are borrowed for the call. Return false to end.
struct ReplayVisitor {
  std::function<bool(const StreamInfo&)> wanted;  // other pieces are left out
  std::function<bool(const Piece&)> piece;
};
Result<ReadDamage> replay(io::Files& files, const std::string& folder, uint64_t until,
                          const ReplayVisitor& visitor);

// Replay in parts, while the spool grows: each call continues after the previous one. One thread at a time.
class Replay {
 public:
  Replay(io::Files& files, std::string folder);
  ~Replay();
  // Call before reading: skips frames up to `sequence`. Starts with the segment of that frame; earlier
  // bytes are not reported as a gap.
  void begin_behind(uint64_t sequence);
  // Reads to the frame `until`, or about `bytes_most` bytes of pieces. Returns whether it reached `until`. An
  // error (the folder cannot be listed) changes nothing.
  Result<bool> advance(uint64_t until, uint64_t bytes_most, const ReplayVisitor& visitor);
  ReadDamage damage() const;  // so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Bytes [from, to) of one source. The source's streams are concatenated in order of their ids, each with
// its size in `state`; offsets count from the beginning of the first stream.
struct EvidenceRange {
  std::vector<StoredStream> streams;  // Spool::streams_of(job, path), or Archive::kept() of one host
  uint64_t from = 0, to = UINT64_MAX;
  // Opens an object of the bucket by the number in its extents; where it is set, extents of a stream are in
  // order and do not overlap, though frames of one may have bytes of another (bucket/merge.h).
  std::function<Result<SegmentReader>(uint64_t object)> open_object = {};
};
// A range of missing bytes; `offset` counts as in EvidenceRange. Deleted bytes occupy offsets, and
// `in_range` of them are in the requested range. Bytes that never came occupy none.
struct EvidenceGap {
  uint64_t offset = 0;
  uint64_t in_range = 0;
  Gap gap;
};
struct EvidenceSink {
  std::function<bool(std::string_view)> bytes;  // borrowed for the call; false ends the copy
  std::function<void(const EvidenceGap&)> gap;  // may be empty
};

class EvidenceReader {
 public:
  EvidenceReader(io::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}
  // An error only if the folder cannot be listed.
  Result<ReadDamage> read(const EvidenceRange& range, const EvidenceSink& sink) const;

 private:
  io::Files& files_;
  std::string folder_;
};

}  // namespace culprit::store
