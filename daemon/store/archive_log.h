// One log of an archive in memory: its streams, and its changes since the last commit. Used by Archive on
// its thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/archive.h"
#include "store/record.h"

namespace culprit::store {

struct ArchivedStream {
  StreamInfo info;
  uint64_t size = 0, first = 0;
  uint64_t skips = 0;  // of the log, at its last piece
  bool ended = false;
  bool begun = false;     // it has a piece
  bool in_index = false;  // it has a row
  bool touched = false;   // changed since the last commit
  Extent extent;          // in its latest segment; segment 0: none since the last commit
};

struct ArchivedLog {
  LogOrigin origin;
  int64_t row = 0;
  uint64_t sequence = 0, committed = 0;
  uint64_t declared_in = 0;  // the segment whose origin frame declares it
  bool in_index = false;
  bool loaded = false;  // its streams are in memory
  bool touched = false;
  uint64_t skips = 0;
  std::string skip_reason;  // the last
  std::map<StreamId, ArchivedStream> streams;
  size_t text_bytes = 0;  // of their names
  // Since the last commit:
  std::vector<StreamId> touched_streams;
  std::map<uint64_t, uint64_t> parts;  // bytes by segment
  struct StreamExtent {
    StreamId stream;
    Extent extent;
  };
  std::vector<StreamExtent> left_extents;  // in finished segments
  struct StreamHole {
    StreamId stream;
    Hole hole;
  };
  std::vector<StreamHole> new_holes;
  std::vector<SkippedFrames> new_skips;
};

struct FramePlace {
  uint64_t segment = 0, at = 0;
};

// Applies the records of a frame that its kind allows: positions in checkpoints, origins and skips in the
// archive's own frames. `taken` may be null.
class LogTaker : public RecordSink {
 public:
  struct Into {
    ArchivedLog& log;
    ArchiveStats& stats;
    PieceBatch* taken = nullptr;
  };
  LogTaker(const Into& into, FramePlace place, FrameKind kind)
      : log_(into.log), stats_(into.stats), taken_(into.taken), place_(place), kind_(kind) {}
  void on_stream(const StreamInfo& info) override;
  void on_piece(const Piece& piece, std::string_view bytes) override;
  void on_position(StreamId id, const Position& position) override;
  void on_origin(const OriginRecord& origin) override;
  void on_skipped(const SkippedRecord& skipped) override;
  // Call for data frame number `sequence`: the frames between the previous one and this one are unreadable.
  void note_lost(uint64_t sequence, TimeNs now);

 private:
  void touch(ArchivedStream& stream);
  Gap hole(ArchivedStream& stream, uint64_t bytes);
  void extend(ArchivedStream& stream, uint64_t from);
  void skip(const SkippedRecord& skipped);

  ArchivedLog& log_;
  ArchiveStats& stats_;
  PieceBatch* const taken_;
  const FramePlace place_;
  const FrameKind kind_;
};

// Reason of missing bytes if no peer gave one.
constexpr std::string_view kNotSent = "the host did not send it";

}  // namespace culprit::store
