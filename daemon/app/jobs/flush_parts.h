// Output of one flush of a JobForwarder: blocks, marks and ends of streams, in batches of at most one frame.
//
// Owner: the flush. One thread: the uplink's worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/jobs/job_forwarder.h"
#include "model/piece.h"

namespace culprit::app {

// A mark: its stream in the condensed log and its value. kNoStream: no stream yet; the flush sets it.
struct ForwardMark {
  StreamId& stream;
  std::string job, path;
  MarkPlace place;  // without the epoch
};

// The last piece of a stream.
Piece end_of(StreamId stream, uint64_t offset = 0);

class FlushParts {
 public:
  // `options` is borrowed. `now`: the time of all pieces.
  FlushParts(const JobForwarderOptions& options, TimeNs now) : options_(options), now_(now), parts_(1) {}

  // Maximum overhead of a record in addition to its bytes and names.
  static constexpr size_t kRecordBytes = 128;

  TimeNs now() const { return now_; }
  // Opens a stream of the condensed log.
  // `uid`: the user of all sources of a session, if there is only one.
  StreamId open(OriginKind kind, std::string job, std::string path, std::optional<Principal> uid = {});
  void add(Piece piece);
  void add(ForwardMark mark);
  // Allows a new batch before the next part.
  void may_part();
  bool has_room() const;
  std::vector<PieceBatch> finish();

 private:
  const JobForwarderOptions& options_;
  const TimeNs now_;
  std::vector<PieceBatch> parts_;
  size_t weight_ = 0;  // bytes of the last batch
};

}  // namespace culprit::app
