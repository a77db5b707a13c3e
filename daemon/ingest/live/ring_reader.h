// Drains the shared-memory rings of formats.md section 3: rings appear in a folder that everybody may write
// to, and vanish after their processes. Each ring is a source of kind kRing under the ring's path; its
// evidence is its records, 64 bytes each, as they came; a rank or device that they leave unknown is the
// ring's.
//
// What is durable. A piece carries a FilePlace whose `offset` is the number of the next record since the
// ring's creation and whose `fingerprint` is how many dropped records were told (device and inode are the
// ring file's, fingerprint_bytes is 0): the store keeps it in the frame that holds the bytes. The ring's own
// `read` counter only tells the producer which room is free, and moves in committed(), when the bytes are
// safe. Killed between the two, the daemon finds records in the ring that are stored already: the known
// place, not the counter, says where to go on. The other way round, a counter beyond the place, happens only
// where somebody else wrote it, or the store lost its end: the records between are a gap.
//
// Nothing in a ring is believed. It is read with pread and never mapped (its owner may truncate it); a
// symbolic link, a pipe, a hard link, a size that does not fit its capacity are refused; counts that make no
// sense cost a gap, and memory and time are bounded whatever they say. Whoever lives is asked of the kernel:
// a producer holds a lock on its file (ring.h), and one that holds none is looked up by the pid in the name.
//
// Thread: one at a time (rounds block on the file system); stats() from any. Owns the descriptors of the
// rings.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"
#include "model/piece.h"

namespace culprit::ingest {

// Who writes a ring, for the caller to say which job it belongs to.
struct RingOwner {
  std::string path;
  std::string header_job;       // as the ring claims: any text of at most 48 bytes, made valid UTF-8
  uint32_t uid = 0;             // of the file
  std::optional<uint32_t> pid;  // in the daemon's pid namespace, where the kernel tells
};

struct RingOptions {
  std::string folder;
  std::function<StreamId()> allocate;                   // numbers of streams
  std::function<std::string(const RingOwner&)> job_of;  // empty: what the ring claims
  size_t files_max = limits::kRingFiles;
  size_t files_of_uid_max = limits::kRingFilesOfUid;
  std::string proc = "/proc";
};

struct RingStats {
  std::atomic<uint64_t> rings{0};    // open now
  std::atomic<uint64_t> records{0};  // read
  std::atomic<uint64_t> dropped{0};  // by producers whose ring was full
  std::atomic<uint64_t> lost{0};     // overwritten or skipped: the ring's counts were not those of a ring
  std::atomic<uint64_t> refused{0};  // files that are no rings
  std::atomic<uint64_t> unread{0};   // more than may be open, now
  std::atomic<uint64_t> removed{0};  // files of dead processes
};

class RingReader {
 public:
  // `known`: sources of earlier runs; those of other kinds are ignored.
  RingReader(RingOptions options, std::span<const StreamState> known);
  ~RingReader();
  RingReader(const RingReader&) = delete;

  struct Round {
    TimeNs now = 0, now_mono = 0;  // wall clock for the pieces, monotonic for intervals
    size_t budget_bytes = 1 << 20;
  };
  struct Outcome {
    PieceBatch batch;
    bool more = false;            // the budget ran out: another round at once
    TimeNs next_ns = 0;           // monotonic: when to look again
    std::vector<Error> problems;  // each told when it appears, not in each round
  };
  Outcome round(const Round& round);

  // The store has the stream's evidence up to here for good: room for the producer, and a ring whose process
  // is gone and whose end is stored is removed. Call it from the thread of round().
  void committed(StreamId stream, uint64_t evidence_offset);

  const RingStats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::ingest
