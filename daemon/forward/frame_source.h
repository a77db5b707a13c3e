// The forwarder's view of an agent's logs: an interface that app implements over the spools, which work on
// the store's thread.
//
// Thread: the loop's, for calls and answers. The source outlives its forwarder. An answer after the forwarder
// ended has no effect.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/peer.h"

namespace culprit::forward {

// Selects the frames that are read with their bytes. Frames that declare streams are always selected: later
// frames depend on them.
struct Selection {
  struct Span {
    TimeNs from_ns = 0, to_ns = 0;  // both included
  };
  bool all = true;
  std::vector<Span> spans;  // unless all: packed within one of these
  TimeNs until_ns = 0;      // reading stops before the first unselected frame that is newer than this time
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
  // Starts with the checkpoint of the first segment, because the peer does not have earlier declarations.
  bool with_checkpoint = false;
  // Up to here the peer needs no more than the declarations: the checkpoint is that of the segment with the
  // next frame, or else of the one after `after`, if it is not before `after`; of frames up to here only
  // those that declare have bytes.
  uint64_t declares_until = 0;
  // Limit for frames with bytes; one larger frame is permitted; checkpoints do not count.
  size_t max_bytes = 0;
  size_t max_frames = 0;  // with or without bytes
  Selection selection;
};

class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // `next` counts only frames synced to disk. If a power loss removed a frame that the collector has,
  // another frame would get its number, and the collector would drop it as a duplicate.
  virtual peer::LogBounds bounds(peer::Log log) const = 0;

  // Reads data frames after `after`, in order, up to `next` of bounds(). The first one is later than after
  // + 1 if that frame was deleted; unreadable frames leave holes. After an error, the forwarder retries a
  // second later. Calls `done` once, possibly from within read().
  using Done = std::function<void(Result<std::vector<SourceFrame>>)>;
  virtual void read(ReadRequest request, Done done) = 0;

  // The collector has committed all frames up to `sequence`: these may be deleted, later ones must not be.
  // A smaller value than before has no effect: the collector lost data.
  virtual void acknowledged(peer::Log log, uint64_t sequence) = 0;

  // After each Welcome, before acknowledged(), and whenever it grows: up to `sequence` the log is in object
  // storage. Acknowledged frames after it must not be deleted, unless room is needed: a collector that is
  // lost with its disk loses them. Nothing: the collector puts none of the log there, and what it
  // acknowledged may be deleted. Returns the highest sequence that any collector said, also before a
  // restart. Default: the log is freed at each acknowledgement.
  virtual uint64_t archived(peer::Log, std::optional<uint64_t> /*sequence*/) { return 0; }

  // The collector requests records of these steps of a job. They are sent in the condensed log, if
  // available.
  virtual void steps_wanted(const std::string& job, const std::vector<int64_t>& steps) = 0;

  // The collector requests the stacks of a job's processes on this host.
  virtual void stacks_wanted(const peer::StacksWanted& wanted) = 0;

  // The collector requests the end of a job's processes on this host.
  virtual void end_tasks(const peer::EndTasks& request) = 0;

  // CheckHost, AlignHost or AlignJudged from the collector; answers go to Forwarder::send(). Default: no
  // answer.
  virtual void check_host(const peer::Message&) {}

  // The collector advises a job on this host. Default: nothing.
  virtual void advise(const peer::Advise&) {}

  // The collector has frames of this epoch beyond the end of our log: our disk lost synced frames. The log
  // is not sent until it has a new epoch (and reopened() was called).
  virtual void fell_behind(peer::Log log, uint64_t committed) = 0;
};

}  // namespace culprit::forward
