// What the forwarder needs of an agent's logs: an interface that app implements over the spools, whose work
// is done on the store's thread.
//
// Thread: the loop's, calls and answers. The source outlives its forwarder, and an answer that is still under
// way when the forwarder is gone does nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/peer.h"

namespace culprit::forward {

// Which frames are read with their bytes. A frame that declares streams always is: what follows needs it.
struct Selection {
  struct Span {
    TimeNs from_ns = 0, to_ns = 0;  // both included
  };
  bool all = true;
  std::vector<Span> spans;  // where not all: packed within one of these
  TimeNs until_ns = 0;      // and reading stops before the first frame behind it that is not selected
  bool selects(TimeNs packed_ns, bool declares) const;
  bool stops_at(TimeNs packed_ns, bool declares) const {
    return packed_ns > until_ns && !selects(packed_ns, declares);
  }
};

struct SourceFrame {
  peer::FrameKind kind = peer::FrameKind::kData;
  uint64_t sequence = 0;
  TimeNs packed_ns = kNoTime;
  std::string bytes;  // verbatim; empty: not selected
};

struct ReadRequest {
  peer::Log log = peer::Log::kCondensed;
  uint64_t after = 0;
  // The checkpoint of the segment where reading begins stands first: the peer does not know what came before.
  bool with_checkpoint = false;
  size_t max_bytes = 0;   // of frames with bytes, but for one frame, which may be larger; checkpoints beside
  size_t max_frames = 0;  // with or without bytes
  Selection selection;
};

class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // `next` counts frames that are synced to the disk, not merely written: a frame that the collector has and
  // a power loss takes from us would give its number to another one, which would be dropped as a copy.
  virtual peer::LogBounds bounds(peer::Log log) const = 0;

  // Data frames behind `after`, in order, up to `next` of bounds(). The first one may be later than after + 1
  // where that is not held any more, and there may be holes where frames cannot be read.
  // An error is tried again a second later. `done` is called once, also from within.
  using Done = std::function<void(Result<std::vector<SourceFrame>>)>;
  virtual void read(ReadRequest request, Done done) = 0;

  // The collector has committed everything up to `sequence`: it may be freed. Nothing behind it may.
  // A lesser one than before changes nothing: a collector was set back.
  virtual void acknowledged(peer::Log log, uint64_t sequence) = 0;

  // The collector asks for records of these steps of a job: they come in the condensed log, if at all.
  virtual void steps_wanted(const std::string& job, const std::vector<int64_t>& steps) = 0;

  // The collector has frames of this epoch that stand behind our end: the disk has lost what was synced.
  // Nothing of the log is sent until it has another epoch (and reopened() was called).
  virtual void fell_behind(peer::Log log, uint64_t committed) = 0;
};

}  // namespace culprit::forward
