// An agent of a job that is played: it condenses lines as a real one does (HostFeed) and has frames for the
// forwarder, but keeps them in memory until they are acknowledged: no spool, no disk, no sources of its own.
// A collector that forgets what it acknowledged gets it no more.
//
// Thread: condense() on a worker, one call at a time; all else on the loop's. Owned by the Player.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/daemon/host_feed.h"
#include "app/job_slices.h"
#include "forward/frame_source.h"
#include "io/files.h"

namespace culprit::app {

struct PlayAgentOptions {
  std::string host, job, root;  // `root`: the folder of the job's files
  bool evidence = false;        // the lines' bytes are sent too
  std::shared_ptr<rules::Ruleset> rules;
};

class PlayAgent final : public forward::FrameSource {
 public:
  explicit PlayAgent(PlayAgentOptions options);

  struct Made {
    std::array<std::vector<forward::SourceFrame>, peer::kLogs.size()> frames;  // by peer::Log
    uint64_t log_bytes = 0, lines = 0;                                         // taken so far
    Status read;                                                               // of a file
  };
  // What the host writes of a step; with `flush` all that was taken is told, with `last` its processes end.
  struct Step {
    const std::vector<JobSlice>* slices = nullptr;  // null: nothing
    bool flush = false, last = false;
    TimeNs now = 0;
  };
  Made condense(const SlicedJob& job, const Step& step);

  // What condense() made, in its order.
  void add(Made made);
  uint64_t waiting_bytes() const { return logs_[0].bytes + logs_[1].bytes; }  // not acknowledged
  bool all_given() const;                                                     // to the forwarder
  bool all_acknowledged() const;
  std::function<void(uint64_t frames)> on_acknowledged;

  peer::LogBounds bounds(peer::Log log) const override;
  void read(forward::ReadRequest request, Done done) override;
  void acknowledged(peer::Log log, uint64_t sequence) override;
  // Sums are what is shown of it.
  void steps_wanted(const std::string&, const std::vector<int64_t>&) override {}
  void fell_behind(peer::Log, uint64_t) override {}

 private:
  struct Held {
    uint64_t epoch = 0, next = 1;
    uint64_t given = 0;  // up to this frame
    uint64_t bytes = 0;
    std::deque<forward::SourceFrame> frames;
  };
  // The worker's, of a file that was begun.
  struct Stream {
    StreamId id = kNoStream;
    uint64_t taken = 0;
  };
  struct Packing {
    uint64_t epoch = 0, sequence = 0;
  };
  Status take(const SlicedJob& job, const JobSlice& slice, TimeNs now, Made& made);
  void give(PieceBatch&& batch, TimeNs now, Made& made);
  void pack(peer::Log log, const PieceBatch& batch, TimeNs now, Made& made);

  const PlayAgentOptions options_;
  StreamId next_id_ = 1;  // of the condensed log
  std::array<Packing, peer::kLogs.size()> packing_;
  std::unordered_map<uint32_t, Stream> streams_;  // by file
  std::unique_ptr<HostFeed> feed_;
  std::array<Held, peer::kLogs.size()> logs_;
};

}  // namespace culprit::app
