// The sources whose evidence a JobForwarder condenses, and a mark for each: the condensed log contains
// everything before the mark. The mark of the whole evidence tells which frames need no replay.
//
// Owner: JobForwarder. One thread: the uplink's worker. No clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/jobs/flush_parts.h"
#include "app/jobs/job_inputs.h"
#include "model/piece.h"

namespace culprit::app {

// Flag of a mark's place: the mark is the position in a shared source (the kernel log) that one job's blocks
// reach.
constexpr uint64_t kOfOneJob = 4;

struct ForwardedStream {
  LiveStream live;
  uint64_t end = 0;               // ingested up to here
  uint64_t mark = 0;              // all complete lines before this offset are condensed
  uint64_t lines = 0;             // that end before the mark
  uint64_t since = 0;             // frames up to this one contain no data after the mark
  uint64_t reported_at_mark = 0;  // flags: the gap or the end at the mark is already forwarded
  uint64_t resume = 0;            // a previous process condensed everything before this offset
  uint64_t resume_reported = 0;
  bool resumes = false;
  bool moved = false;  // since the last flush
  StreamId mark_stream = kNoStream;

  // Removes the part of a piece that the previous process condensed; false: the whole piece was condensed.
  bool cut(Piece& piece);
  // Moves the mark to the end of the last complete line. `sequence`: see JobForwarder::ingest. `pending`: the
  // dump is not complete yet. Returns whether the mark needs to be written.
  bool advance(const Piece& piece, uint64_t sequence, bool pending);
};

class ForwardedStreams {
 public:
  // Restores a mark of the condensed spool, before any batch. False: the mark belongs to one job or is
  // unknown.
  bool resume(const StreamState& state);
  uint64_t behind() const { return behind_; }  // restored mark of the whole evidence

  void open(const StreamInfo& info, uint64_t sequence);
  ForwardedStream* find(StreamId id);
  bool contains(StreamId id) const { return streams_.contains(id); }
  size_t size() const { return streams_.size(); }
  std::unordered_map<StreamId, ForwardedStream>& all() { return streams_; }

  // The piece is ingested; `sequence` and `pending` as in ForwardedStream::advance.
  void advance(ForwardedStream& stream, const Piece& piece, uint64_t sequence, bool pending);
  // A dump is condensed as a whole.
  void complete_dump(ForwardedStream& stream);
  // The stream's last line was ingested without a newline.
  void complete_line(StreamId id);

  bool any_moved() const;  // a flush would write marks
  bool full() const;       // the next frame has no room for more marks
  // Streams with unwritten marks, by job. Kernel logs are left out: each job has a separate mark for them.
  std::map<std::string_view, std::vector<ForwardedStream*>> moved();
  void write(ForwardedStream& stream, FlushParts& out);
  // Writes the remaining marks, and finally the mark of the whole evidence, which is in frames up to
  // `sequence`.
  void write_rest(uint64_t sequence, FlushParts& out);
  // The spool rejected marks: `lost` resets the stream of such a mark and returns true.
  using Lost = std::function<bool(StreamId& mark)>;
  void refused(const Lost& lost);
  // Forgets sources that ended and whose evidence is gone. `end`: called with the stream of each mark.
  void keep_only(const std::set<StreamId>& known, const std::function<void(StreamId mark)>& end);

 private:
  void move(ForwardedStream& stream);

  std::unordered_map<StreamId, ForwardedStream> streams_;
  std::unordered_map<StreamId, StreamState> known_marks_;  // marks of unopened sources, by evidence stream
  StreamId all_stream_ = kNoStream;                        // the mark of the whole evidence
  uint64_t behind_ = 0;
  size_t mark_bytes_ = 0;  // size of the marks for the next flush
};

}  // namespace culprit::app
