// The agent of a played job. It condenses lines like a real agent (JobForwarder) but stores frames only in
// memory until they are acknowledged, without a spool, disk or sources. A collector that loses acknowledged
// frames cannot get them again.
//
// Threads: condense() on a worker, one call at a time; the rest on the loop's. Owned by the Player.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/jobs/job_forwarder.h"
#include "app/offline/job_slices.h"
#include "forward/frame_source.h"
#include "io/files.h"

namespace culprit::app {

struct PlayAgentOptions {
  std::string host, job, root;  // `root`: the folder of the job's files
  bool evidence = false;        // also send the lines' bytes
  std::shared_ptr<rules::Ruleset> rules;
};

class PlayAgent final : public forward::FrameSource {
 public:
  explicit PlayAgent(PlayAgentOptions options);

  struct Made {
    std::array<std::vector<forward::SourceFrame>, peer::kLogs.size()> frames;  // by peer::Log
    uint64_t log_bytes = 0, lines = 0;                                         // so far
    Status read;  // first error of reading a file
  };
  // The host's lines of one step. `flush`: writes everything ingested; `last`: the host's processes end.
  struct Step {
    const std::vector<JobSlice>* slices = nullptr;  // null: no lines
    bool flush = false, last = false;
    TimeNs now = 0;
  };
  Made condense(const SlicedJob& job, const Step& step);

  // Adds results of condense(), in order.
  void add(Made made);
  // bytes of unacknowledged frames
  uint64_t waiting_bytes() const { return logs_[0].bytes + logs_[1].bytes; }
  bool all_given() const;  // whether the forwarder has all frames
  bool all_acknowledged() const;
  std::function<void(uint64_t frames)> on_acknowledged;

  peer::LogBounds bounds(peer::Log log) const override;
  void read(forward::ReadRequest request, Done done) override;
  void acknowledged(peer::Log log, uint64_t sequence) override;
  // Played jobs send no records of steps, only summaries.
  void steps_wanted(const std::string&, const std::vector<int64_t>&) override {}
  void stacks_wanted(const peer::StacksWanted&) override {}
  void end_tasks(const peer::EndTasks&) override {}
  void fell_behind(peer::Log, uint64_t) override {}

 private:
  struct PendingLog {
    uint64_t epoch = 0, next = 1;
    uint64_t given = 0;  // last frame passed to the forwarder
    uint64_t bytes = 0;
    std::deque<forward::SourceFrame> frames;
  };
  // A started file; worker only.
  struct Stream {
    StreamId id = kNoStream;
    uint64_t taken = 0;
  };
  struct Packing {
    uint64_t epoch = 0, sequence = 0;
  };
  Status ingest(const SlicedJob& job, const JobSlice& slice, TimeNs now, Made& made);
  void emit(PieceBatch&& batch, TimeNs now, Made& made);
  void pack(peer::Log log, const PieceBatch& batch, TimeNs now, Made& made);

  const PlayAgentOptions options_;
  StreamId next_id_ = 1;  // next stream of the condensed log
  std::array<Packing, peer::kLogs.size()> packing_;
  std::unordered_map<uint32_t, Stream> streams_;  // by file
  std::unique_ptr<JobForwarder> feed_;
  std::array<PendingLog, peer::kLogs.size()> logs_;
};

}  // namespace culprit::app
