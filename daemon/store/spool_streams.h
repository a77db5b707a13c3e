// The sources of a spool and their positions: appended, in the current frame, and committed. Owned by a
// Spool; its thread, except allocate().
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/piece.h"
#include "store/record.h"
#include "store/stored_streams.h"

namespace culprit::store {

struct CommittedOffset {
  StreamId stream = kNoStream;
  uint64_t offset = 0;  // position in the evidence: all bytes before it are committed
};

// Limit of known sources. At most 100,000 files are watched; 200 bytes each.
constexpr size_t kStreamsMax = 131'072;

class SpoolStreams {
 public:
  // Returns an id that no stream of this spool has had. Any thread.
  StreamId allocate() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  StreamId next_id() const { return next_id_.load(std::memory_order_relaxed); }

  // As of the last commit.
  std::vector<StoredStream> stored() const;
  std::vector<StoredStream> stored_of(const std::string& job, const std::string& path) const;
  // Includes uncommitted streams; positions are those after append().
  std::vector<StreamState> appended() const;
  size_t size() const { return streams_.size(); }

  // Declares the streams of a batch if each piece continues its stream; else changes nothing.
  Status declare(const PieceBatch& batch);
  // Call for each part of a declared batch, in order, once it is in the current frame.
  void open(const StreamInfo& info);
  void append(const Piece& piece);
  struct Mark {
    StreamId stream;
    Position position;
  };
  // Ends the current frame. Returns the positions of its streams.
  std::vector<Mark> end_frame();
  // Call when the frame that ends at these positions was written.
  void commit(const std::vector<Mark>& marks);
  // Streams with progress since the last call.
  std::vector<CommittedOffset> drain_moved();
  // Forgets the oldest ended streams above the limit; their bytes stay until their segments are deleted.
  // Returns how many.
  uint64_t forget();

  // Call when the bytes before `position` were deleted. A stream that ended there no longer exists.
  void delete_before(StreamId id, const Position& position);
  // The stream's description; null if it is unknown.
  const StreamInfo* info(StreamId id) const;
  // Of the first stream of the job that has one.
  std::optional<Principal> uid_of(const std::string& job) const;
  // Bytes of a stream after its committed position, before `mark`.
  uint64_t uncommitted_bytes(const Mark& mark) const;
  // Calls `with`(info, position) for each committed stream, up to its first error.
  template <class With>
  Status for_each_committed(With with) const;

  // At a start: call for stored records in order, then end_recovery().
  void recover(const StreamInfo& info);
  void recover(const Piece& piece, std::string_view bytes);
  void recover(StreamId id, const Position& position);
  void recover_next_id(StreamId at_least);
  void end_recovery();

 private:
  struct Stream {
    StreamInfo info;
    Position committed, appended;
    uint64_t first_offset = 0;
    bool declared = false;                     // declared in a committed frame
    bool touched = false;                      // by the current frame
    bool moved = false;                        // is in moved_
    uint64_t check_size = 0, check_batch = 0;  // check(): required start of the batch's next piece
  };
  static StoredStream stored(const Stream& stream);
  Status check(const PieceBatch& batch);
  void touch(Stream& stream);
  void raise_next_id(StreamId at_least);

  std::atomic<StreamId> next_id_ = 0;
  std::map<StreamId, Stream> streams_;
  uint64_t batches_ = 0;
  std::vector<StreamId> touched_;  // by the current frame
  std::vector<StreamId> moved_;    // committed, not yet returned by drain_moved()
};

template <class With>
Status SpoolStreams::for_each_committed(With with) const {
  for (const auto& [id, stream] : streams_)
    if (stream.declared)
      if (Status done = with(stream.info, stream.committed); !done) return done;
  return {};
}

}  // namespace culprit::store
