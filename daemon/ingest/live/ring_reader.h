// Drains the shared-memory rings of formats.md section 3. Rings appear in a world-writable folder and are
// removed after their processes. Each ring is a source of kind kRing under its path. Its evidence is its
// records, 64 bytes each, unchanged, except that an unknown rank or device becomes the ring's.
//
// Durable state. A piece has a RingPlace: the next record since the ring's creation, and the reported drops.
// The store keeps it in the frame with the bytes. The ring's own `read` counter only shows the producer its
// free room; committed() advances it when the bytes are durable. After a kill in between, the ring has
// records that are stored already: the stored place decides, not the counter. If the counter is beyond the
// place, another program wrote it or the store lost its end: the records in between are a gap.
//
// Rings are untrusted. They are read with pread and never mapped (their owner may truncate them). Symbolic
// links, pipes, hard links and wrong sizes are refused. Impossible counts cost a gap; memory and time are
// bounded for any content. The kernel shows whether a producer is alive: it holds a lock on its file
// (ring.h); without a lock, the pid in the name is checked.
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

// The writer of a ring; the caller derives its job.
struct RingOwner {
  std::string path;
  std::string header_job;       // claimed by the ring: at most 48 bytes, made valid UTF-8
  uint32_t uid = 0;             // of the file
  std::optional<uint32_t> pid;  // in the daemon's pid namespace, if the kernel reports it
};

struct RingOptions {
  std::string folder;
  std::function<StreamId()> allocate;                   // numbers of streams
  std::function<std::string(const RingOwner&)> job_of;  // empty: use the ring's claim
  size_t files_max = limits::kRingFiles;
  size_t files_of_uid_max = limits::kRingFilesOfUid;
  std::string proc = "/proc";
};

struct RingStats {
  std::atomic<uint64_t> rings{0};    // currently open
  std::atomic<uint64_t> records{0};  // read
  std::atomic<uint64_t> dropped{0};  // by producers with a full ring
  std::atomic<uint64_t> lost{0};     // overwritten or skipped: impossible counts
  std::atomic<uint64_t> refused{0};  // files that are not rings
  std::atomic<uint64_t> unread{0};   // currently unread for lack of descriptors
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
    bool watched = false;  // a change of the folder calls for a round at once
  };
  struct RingRead {
    PieceBatch batch;
    bool more = false;   // the budget is used up: call another round at once
    TimeNs next_ns = 0;  // monotonic: time of the next round
    bool local = false;  // no ring, and the folder is local: it may be watched, as no call for it can hang
    std::vector<Error> problems;  // each reported once, when it appears
  };
  RingRead round(const Round& round);

  // Reports that the stream's evidence is durable up to this offset. Frees room for the producer, and removes
  // a completely stored ring of a dead process. Call it from the thread of round().
  void committed(StreamId stream, uint64_t evidence_offset);

  const RingStats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::ingest
