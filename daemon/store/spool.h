// The evidence of a host: every byte that its sources gave, compressed, behind checksums, in segment files of
// one folder (README.md has the format). A frame holds pieces and where their sources stood behind them, so
// bytes and positions become durable together: after kill -9 the sources go on from streams().
//
// Batches are appended to the frame under way; a full one is written at once, commit() writes the rest. What
// a commit covered survives the death of the process, what sync() covered that of the machine. Above
// max_bytes, and where the disk is full, the oldest segments go (never the one being written); what they held
// is a gap with a reason in the evidence. Where a peer keeps a copy, what it has not acknowledged is held: it
// never goes, and while nothing else can make room, append() takes nothing.
//
// One thread, the store's worker, owns a Spool; allocate() alone may be called from any. It never asks for
// the time, never waits for anything but the disk, and never deletes what it cannot read.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/kept.h"
#include "store/record.h"
#include "store/segment.h"

namespace culprit::store {

struct SpoolOptions {
  std::string folder;
  uint64_t max_bytes = uint64_t{4} << 30;
  // What goes at once when room is made (a 64th of the default size), and what a start reads again (.3 s).
  uint64_t segment_bytes = 64 << 20;
  int level = 1;  // zstd; 3 costs 1.6 times as much and packs no better
  // Frames go to a peer: what it had not acknowledged when the newest segment was begun is held at the start.
  bool hold = false;
  // Of a spool that is begun anew; 0: drawn. Simulations give one, so that they can be repeated.
  uint64_t new_epoch = 0;
};

struct SpoolStats {
  uint64_t bytes = 0;         // of all segments on the disk
  uint64_t raw_bytes = 0;     // appended by this process: bytes of pieces
  uint64_t stored_bytes = 0;  // and what they were written as
  uint64_t segments = 0, frames = 0;
  uint64_t pending_bytes = 0;   // appended and not written yet
  uint64_t cut_bytes = 0;       // at the start: torn or unreadable bytes behind the last sound frame
  uint64_t damaged_frames = 0;  // at the start: skipped in the segments that were read
  uint64_t dropped_segments = 0, dropped_bytes = 0;
  uint64_t forgotten_streams = 0;  // ended ones beyond the bound of streams
  // Of frames that a peer has not acknowledged: the segments that it has nothing of, and of that within which
  // it stands the share that its frames have.
  uint64_t waiting_bytes = 0;
  bool full = false;  // of segments that stay for it: nothing more is written until some are acknowledged
  uint64_t failures = 0;
  TimeNs failing_since_ns = kNoTime;  // since when nothing could be written; kNoTime: it works
  std::string last_error;
};

struct CommittedOffset {
  StreamId stream = kNoStream;
  uint64_t offset = 0;  // of the evidence: everything before it is committed
};

// Sources that are known at a time. 100,000 files are watched at most; 200 bytes each.
constexpr size_t kStreamsMax = 131'072;
// Of one batch: it may have to wait in memory, packed into one frame, while the disk fails.
constexpr size_t kBatchBytes = 6 << 20;

class Spool {
 public:
  // Makes the folder or recovers what stands in it: the torn tail of the newest segment is cut, damaged
  // frames are skipped and counted. An error where the folder cannot be read or written, or a newer version
  // of the program wrote it; nothing is changed then.
  static Result<std::unique_ptr<Spool>> open(io::Files& files, SpoolOptions options, TimeNs now);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // The sources that are kept, by id, as of the last commit: ended ones too while evidence of them is there.
  std::vector<KeptStream> streams() const;
  // The same streams and those that wait to be committed, where append() left them: from there this process's
  // sources go on.
  std::vector<StreamState> appended() const;
  // Those of a job (and the kernel's and dumps that name none, which may be of any), or of one path of it
  // where one is given.
  std::vector<KeptStream> streams_of(const std::string& job, const std::string& path = {}) const;
  // An id that no stream of this spool had before. Any thread.
  StreamId allocate() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // All of the batch is taken, or, on an error, nothing: hand it over again later. A piece that does not
  // begin at the end of its stream, or is of none that was told, and a batch of more than kBatchBytes are
  // refused (kInvalid): that is no fault of the disk and will not mend.
  Status append(const PieceBatch& batch, TimeNs now);
  // Writes what is appended. On an error it stays appended, and the next call tries again. Gives the streams
  // that moved since the last successful commit.
  Result<std::vector<CommittedOffset>> commit(TimeNs now);
  // The segment and the folder reach the disk.
  Status sync();

  SpoolStats stats() const;
  // Number of the last committed frame: replay() up to it at a start gives what was there before.
  uint64_t last_sequence() const { return written_sequence_; }

  // For a peer that keeps a copy of the frames (frames.h gives them), known to it by this number.
  uint64_t epoch() const { return epoch_; }
  // The first data frame that is there; behind the last where none is.
  uint64_t first_sequence() const;
  // Frames up to it survive the machine. Others are not to be sent: after a loss of power their numbers would
  // be given again, to other bytes.
  uint64_t synced_sequence() const { return synced_sequence_; }
  // Frames behind `acknowledged` stay from now on; those up to it may go. It moves forward only. To hold no
  // more: last_sequence(), as often as it moves.
  void hold(uint64_t acknowledged);
  uint64_t acknowledged() const { return acknowledged_; }
  // A peer has frames of this spool up to `sequence` that are not here, as when a disk lied about a sync: the
  // next one gets a number behind it.
  void raise_sequence(uint64_t sequence);

 private:
  struct Stream {
    StreamInfo info;
    Position committed, appended;
    uint64_t first_offset = 0;
    bool declared = false;                     // in a committed frame
    bool touched = false;                      // by the frame under way
    bool moved = false;                        // stands in moved_
    uint64_t check_size = 0, check_batch = 0;  // check_pieces: where the batch's next piece has to begin
  };
  struct Segment {
    uint64_t number = 0, size = 0;
    uint64_t before = 0;  // sequence of the last frame in those before it
  };
  struct Mark {
    StreamId stream;
    Position position;
  };
  struct Packer;  // zstd's context
  class Recovery;

  Spool(io::Files& files, SpoolOptions options);
  // spool_recover.cc
  Status recover(TimeNs now);
  Status look_at_segments();
  Result<std::optional<size_t>> newest_checkpoint() const;
  Status read_segment(Recovery& recovery, size_t which);
  Status note_sequences();
  void go_on_in_newest(uint64_t sound_end);
  void note_first_offsets();
  // spool.cc
  Status declare(const PieceBatch& batch);
  Status check_pieces(const PieceBatch& batch);
  void take(const PieceBatch& batch, TimeNs now);
  Status write_pending(TimeNs now);
  Status pack(FrameHeader& header, std::string_view raw, std::string& out);
  Status pack_pending(TimeNs now);
  Status write_ready(TimeNs now);
  Status try_write_ready(TimeNs now);
  void ready_stands();
  KeptStream kept(const Stream& stream) const;
  // spool_segments.cc
  Status ensure_segment(TimeNs now);
  void mend_tail();
  Status begin_segment(TimeNs now);
  Result<std::string> checkpoint(uint64_t number, TimeNs now);
  Status append_frame();
  void make_room(uint64_t needed);
  bool make_room_on_disk(uint64_t needed);
  Status room_for(uint64_t needed);
  bool drop_oldest();
  bool oldest_is_held() const;
  Status sync_left();
  void forget_streams();
  void choose_segment_bytes();
  Status note(Status status, TimeNs now);

  io::Files& files_;
  const SpoolOptions options_;
  std::unique_ptr<Packer> packer_;
  std::atomic<StreamId> next_id_ = 0;
  std::map<StreamId, Stream> streams_;
  uint64_t batches_ = 0;

  uint64_t epoch_ = 0;
  std::vector<Segment> segments_;  // by number; the last is being written while handle_ is there
  std::unique_ptr<io::FileHandle> handle_;
  uint64_t segment_bytes_ = 0;   // as options_ have it, or less where the disk is small
  uint64_t checkpoint_end_ = 0;  // in the segment being written
  uint64_t bytes_ = 0;           // of all segments
  bool tail_unknown_ = false;    // a write failed: what stands behind the last frame is not known
  bool folder_changed_ = false;  // since the last sync

  uint64_t sequence_ = 0, written_sequence_ = 0;  // of the frame packed last, and of that written last
  uint64_t synced_sequence_ = 0, acknowledged_ = 0;
  std::vector<uint64_t> unsynced_;  // segments that were left while a sync failed
  std::string raw_;                 // the frame under way
  uint64_t raw_mask_ = 0;
  bool raw_declares_ = false;
  std::vector<StreamId> touched_;  // by it
  // A packed frame. It is written as it is until it stands, so that a copy which stood although its write
  // failed is known by its number.
  std::string ready_;
  FrameHeader ready_header_;
  std::vector<Mark> ready_marks_;  // what holds then
  std::vector<StreamId> moved_;    // committed, and not told by commit() yet
  SpoolStats stats_;
};

}  // namespace culprit::store
