// The evidence of a host: every byte of its sources, compressed and with checksums, in segment files of one
// folder (README.md has the format). A frame has pieces and the positions of their sources after them, so
// bytes and positions become durable together: after kill -9 the sources continue from streams().
//
// Batches are appended to the current frame. A full frame is written at once; commit() writes the rest.
// Committed data survives the process, synced data survives the machine. Above max_bytes, and on a full
// disk, the oldest segments are deleted, never the one being written; or with `fair`, segments are rewritten
// without the oldest evidence of the owner that has most. Removed bytes become a gap with a reason. If a peer
// keeps a copy, unacknowledged frames are never deleted; if nothing else can make room, append() takes
// nothing. Frames that the peer received and that are retained all the same are given up before that.
//
// One thread, the store's worker, owns a Spool; allocate() may be called from any thread. It never reads a
// clock, waits only for the disk, and never deletes data that it cannot read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/frame_packer.h"
#include "store/record.h"
#include "store/segment.h"
#include "store/spool_pins.h"
#include "store/spool_segments.h"
#include "store/spool_shares.h"
#include "store/spool_streams.h"
#include "store/stored_streams.h"

namespace culprit::store {

struct SpoolOptions {
  std::string folder;
  uint64_t max_bytes = uint64_t{4} << 30;
  // Segment size: the unit of deletion (a 64th of max_bytes' default), and the part that a start reads
  // again (.3 s).
  uint64_t segment_bytes = 64 << 20;
  int level = 1;  // zstd; level 3 costs 1.6 times as much and compresses no better
  // A peer receives the frames: a start retains those that were unacknowledged when the newest segment
  // began.
  bool hold = false;
  // Deletes evidence of the last week by owner: of the user with most bytes, first that of the user's
  // largest job.
  bool fair = false;
  // Epoch of a new spool; 0: random. Simulations set it, to be repeatable.
  uint64_t new_epoch = 0;
};

struct SpoolStats {
  uint64_t bytes = 0;         // of all segments on the disk
  uint64_t raw_bytes = 0;     // appended by this process: bytes of pieces
  uint64_t stored_bytes = 0;  // size of these on disk
  uint64_t segments = 0, frames = 0;
  uint64_t pending_bytes = 0;   // appended and not written yet
  uint64_t cut_bytes = 0;       // at the start: torn or unreadable bytes after the last sound frame
  uint64_t damaged_frames = 0;  // at the start: skipped in the read segments
  uint64_t dropped_segments = 0, dropped_bytes = 0;
  uint64_t dropped_for_disk = 0;  // of these bytes: because the disk was full
  // With `fair`: bytes that were removed since a user had most, and the last such user.
  uint64_t evicted_bytes = 0;
  std::string evicted_from;
  uint64_t forgotten_streams = 0;  // ended ones beyond the limit of streams
  // Bytes of frames that the peer has not acknowledged: whole unacknowledged segments, and the
  // unacknowledged share of the partly acknowledged one.
  uint64_t waiting_bytes = 0;
  // Bytes of frames that the peer received and that are retained all the same.
  uint64_t received_bytes = 0;
  uint64_t given_up_bytes = 0;  // of these, deleted for room; part of dropped_bytes
  bool full = false;  // unacknowledged segments fill the spool: no writes until some are acknowledged
  uint64_t failures = 0;
  TimeNs failing_since_ns = kNoTime;  // since when writes fail; kNoTime: they work
  std::string last_error;
};

// Limit of one batch: it may wait in memory as one frame while the disk fails.
constexpr size_t kBatchBytes = 6 << 20;

class Spool {
 public:
  // Creates the folder or recovers its content: cuts the torn tail of the newest segment, skips and counts
  // damaged frames. An error if the folder cannot be read or written, or if a newer version of the program
  // wrote it; nothing is changed then.
  static Result<std::unique_ptr<Spool>> open(io::Files& files, SpoolOptions options, TimeNs now);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // The stored sources by id, as of the last commit. Ended sources are included while evidence of them
  // exists.
  std::vector<StoredStream> streams() const { return streams_.stored(); }
  // The committed and the uncommitted streams, at their positions after append(): this process's sources
  // continue there.
  std::vector<StreamState> appended() const { return streams_.appended(); }
  // Streams of a job, or of one `path` of it if given. Includes streams that may belong to any job: the
  // kernel's, and dumps without a job.
  std::vector<StoredStream> streams_of(const std::string& job, const std::string& path = {}) const {
    return streams_.stored_of(job, path);
  }
  // Returns an id that no stream of this spool has had. Any thread.
  StreamId allocate() { return streams_.allocate(); }

  // Accepts the whole batch or, on an error, nothing: retry later. Permanent errors (kInvalid): a piece
  // that does not begin at the end of its stream, a piece of an undeclared stream, a batch above
  // kBatchBytes.
  Status append(const PieceBatch& batch, TimeNs now);
  // Writes the appended data. On an error the data stays in memory, and the next call retries. Returns the
  // streams whose position advanced since the last successful commit.
  Result<std::vector<CommittedOffset>> commit(TimeNs now);
  // A job was diagnosed: evidence of [from, to] is deleted last. All such intervals together protect up to
  // a quarter of max_bytes.
  void pin(const std::string& job, TimeNs from, TimeNs to) { pins_.add(streams_.uid_of(job), from, to); }
  // Syncs the segment and the folder to disk.
  Status sync();

  SpoolStats stats() const;
  // Wall-clock time before which an earlier process has stored every source that it saw; streams() has
  // these sources. It is the time of the last frame at least 10 minutes older than the newest: a process
  // killed soon after its start may have stored a frame of one source and none of another. Without such a
  // frame it is the creation time of the folder. kNoTime: the folder is new.
  TimeNs stored_until_ns() const { return stored_until_ns_; }
  // Number of the last committed frame. At a start, replay() up to this number returns the earlier content.
  uint64_t last_sequence() const { return written_sequence_; }

  // Identity of this spool, for a peer that stores copies of the frames (frames.h).
  uint64_t epoch() const { return epoch_; }
  // Number of the first stored data frame; the last number plus one if there is none.
  uint64_t first_sequence() const;
  // Last frame that survives a power loss. Later frames must not be sent: after a power loss, other bytes
  // would get their numbers.
  uint64_t synced_sequence() const { return synced_sequence_; }
  // From now on, frames after `acknowledged` are retained; earlier ones may be deleted. The value only
  // increases. To retain none, call it with last_sequence() after each change.
  // The peer has frames up to `received`: those that are retained are deleted if nothing else makes room, the
  // oldest first. It only increases too, and is not stored.
  void retain_after(uint64_t acknowledged, uint64_t received = 0);
  uint64_t acknowledged() const { return acknowledged_; }
  // Call if a peer has frames up to `sequence` that this spool lost, for example on a disk that did not
  // sync. The next frame gets a higher number.
  void raise_sequence(uint64_t sequence);

 private:
  class Recovery;

  Spool(io::Files& files, SpoolOptions options);
  // spool_recover.cc
  Status recover(TimeNs now);
  Status note_earlier_life();
  void note_stored_until();
  Status look_at_segments();
  Status read_segment(Recovery& recovery, size_t which);
  Status note_sequences();
  void note_first_offsets();
  Status note_shares();
  // spool_room.cc
  Status room_for(uint64_t needed, TimeNs now);
  bool make_room_on_disk(uint64_t needed, TimeNs now);
  bool evict(TimeNs now, bool at_once);
  bool clean(const Victim& victim, const std::set<uint64_t>& pinned);
  bool drop_whole(size_t which);
  bool drop_oldest() { return !is_held(0) && drop_whole(0); }
  bool is_held(size_t which) const;
  bool is_stale(size_t which, TimeNs now) const;
  // spool.cc
  void add_to_frame(const PieceBatch& batch, TimeNs now);
  Status write_pending(TimeNs now);
  Status pack_pending(TimeNs now);
  Status write_ready(TimeNs now);
  Status try_write_ready(TimeNs now);
  void ready_is_valid();
  Status ensure_segment(TimeNs now);
  Status begin_segment(TimeNs now);
  Result<std::string> checkpoint(uint64_t number, TimeNs now);
  void choose_segment_bytes();
  Status note(Status status, TimeNs now);

  io::Files& files_;
  const SpoolOptions options_;
  FramePacker packer_;
  SpoolStreams streams_;
  SpoolSegments segments_;
  SpoolShares shares_;  // with options_.fair
  SpoolPins pins_;

  uint64_t epoch_ = 0;
  TimeNs stored_until_ns_ = kNoTime;
  std::vector<TimeNs> frame_times_;  // during the recovery
  uint64_t segment_bytes_ = 0;       // as in options_, or less on a small disk
  uint64_t checkpoint_end_ = 0;      // in the segment being written

  uint64_t sequence_ = 0, written_sequence_ = 0;  // of the last packed frame, and of the last written one
  uint64_t synced_sequence_ = 0, acknowledged_ = 0, received_ = 0;
  std::string raw_;  // the current frame
  uint64_t raw_mask_ = 0;
  bool raw_declares_ = false;
  // A packed frame. Retries write the same bytes, so that a duplicate on disk after a failed write has the
  // same number.
  std::string ready_;
  FrameHeader ready_header_;
  std::vector<SpoolStreams::Mark> ready_marks_;  // positions after it
  SpoolStats stats_;
  ThreadOwner owner_;
};

}  // namespace culprit::store
