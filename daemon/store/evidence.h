// Reads a spool by its files, while it is written: engines are rebuilt from it after a restart, and the bytes
// of a source are given back as they came; those of an archive too. Any thread, one call at a time; owns
// nothing of the Spool's. It never writes, and gives only frames whose checksums hold.
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
#include "store/spool.h"

namespace culprit::store {

// Why bytes are missing.
constexpr std::string_view kDamaged = "a part of the store is damaged";
constexpr std::string_view kDropped = "the oldest evidence was dropped to keep the store within its size";

// What went wrong on the way; all 0 where everything was read.
struct ReadDamage {
  uint64_t frames = 0, bytes = 0;  // damaged, skipped
  uint64_t unreadable_segments = 0;
  std::string first;  // a sentence on the first
};

// Streams and pieces in the order of the spool, up to the frame `until` (Spool::last_sequence()). A stream is
// told before its first piece; its piece may then begin behind 0, with a gap that tells why. Bytes of a piece
// are borrowed for the call. Return false to end.
struct ReplayVisitor {
  std::function<bool(const StreamInfo&)> wanted;  // pieces of others are left out
  std::function<bool(const Piece&)> piece;
};
Result<ReadDamage> replay(io::Files& files, const std::string& folder, uint64_t until,
                          const ReplayVisitor& visitor);

// The same in parts, while the spool grows: each call goes on behind the one before. One thread at a time.
class Replay {
 public:
  Replay(io::Files& files, std::string folder);
  ~Replay();
  // Before anything is read: no frame up to `sequence` is needed. Begins with its segment; what stands before
  // that is no gap.
  void begin_behind(uint64_t sequence);
  // To the frame `until`, or until about `bytes_most` bytes of pieces were given: whether it got to `until`.
  // An error (the folder cannot be listed) changes nothing.
  Result<bool> advance(uint64_t until, uint64_t bytes_most, const ReplayVisitor& visitor);
  ReadDamage damage() const;  // so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Bytes [from, to) of streams that are one source: one behind the other by id, numbered from the beginning of
// the first, each up to its size in `state`.
struct EvidenceRange {
  std::vector<KeptStream> streams;  // Spool::streams_of(job, path), or Archive::kept() of one host
  uint64_t from = 0, to = UINT64_MAX;
};
// Where bytes are missing. `offset` counts as the range does; bytes that were stored and are gone keep their
// numbers (`in_range` of them lie within it), those that never came have none.
struct EvidenceGap {
  uint64_t offset = 0;
  uint64_t in_range = 0;
  Gap gap;
};
struct EvidenceSink {
  std::function<bool(std::string_view)> bytes;  // borrowed for the call; false: enough
  std::function<void(const EvidenceGap&)> gap;  // may be empty
};

class EvidenceReader {
 public:
  EvidenceReader(io::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}
  // An error only where the folder cannot be listed.
  Result<ReadDamage> read(const EvidenceRange& range, const EvidenceSink& sink) const;

 private:
  io::Files& files_;
  std::string folder_;
};

}  // namespace culprit::store
