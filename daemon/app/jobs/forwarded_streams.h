// The sources whose evidence a JobForwarder condenses, and the mark of each: everything before it is in the
// condensed log. The mark of the whole evidence says which frames need no replay.
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

// Flag of a mark's place: the mark says how much of a shared source (the kernel log) is in the blocks of one
// job.
constexpr uint64_t kOfOneJob = 4;

struct ForwardedStream {
  LiveStream live;
  uint64_t end = 0;               // ingested up to here
  uint64_t mark = 0;              // condensed up to here: complete lines
  uint64_t lines = 0;             // that end before the mark
  uint64_t since = 0;             // frames up to this one have nothing after the mark
  uint64_t reported_at_mark = 0;  // flags: the gap or the end at the mark is already forwarded
  uint64_t resume = 0;            // a previous process condensed everything before
  uint64_t resume_reported = 0;
  bool resumes = false;
  bool moved = false;  // since the last flush
  StreamId mark_stream = kNoStream;

  // Removes the part of a piece that the previous process condensed; false: nothing is left.
  bool cut(Piece& piece);
  // Moves the mark to the end of the last complete line. `sequence`: see JobForwarder::ingest. `pending`: the
  // dump is not complete yet. Returns whether the mark needs to be written.
  bool advance(const Piece& piece, uint64_t sequence, bool pending);
};

class ForwardedStreams {
 public:
  // Restores a mark of the condensed spool, before any batch. False: it is the mark of one job or unknown.
  bool resume(const StreamState& state);
  uint64_t behind() const { return behind_; }  // of the whole evidence, as restored

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
  // Streams with marks to write, by their job. Kernel logs are left out: each job has its own mark of them.
  std::map<std::string_view, std::vector<ForwardedStream*>> moved();
  void write(ForwardedStream& stream, FlushParts& out);
  // Writes the remaining marks, and last that of the whole evidence, which is in frames up to `sequence`.
  void write_rest(uint64_t sequence, FlushParts& out);
  // The spool rejected marks: `lost` resets the stream of such a mark and returns true.
  using Lost = std::function<bool(StreamId& mark)>;
  void refused(const Lost& lost);
  // Forgets sources that ended and whose evidence is gone. `end`: called with the stream of each mark.
  void keep_only(const std::set<StreamId>& known, const std::function<void(StreamId mark)>& end);

 private:
  void move(ForwardedStream& stream);

  std::unordered_map<StreamId, ForwardedStream> streams_;
  std::unordered_map<StreamId, StreamState> known_marks_;  // by evidence stream, of sources not opened yet
  StreamId all_stream_ = kNoStream;                        // the mark of the whole evidence
  uint64_t behind_ = 0;
  size_t mark_bytes_ = 0;  // of marks for the next flush
};

}  // namespace culprit::app
