// Reads the condensed log (core/wire/inputs.h) of one agent and one job, block by block, and feeds the job's
// run. An agent has no notion of runs: when the next run begins, sources continue and open in it with their
// first data.
//
// One thread: the engine's worker. Owns its reader; looks up jobs and borrows them for the call. Blocks are
// untrusted: an unreadable block is reported once in the job's report and skipped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/jobs/live_job.h"
#include "core/wire/inputs.h"
#include "model/piece.h"

namespace culprit::app {

class RemoteStream : private wire::InputSink {
 public:
  // `shapes` is borrowed and outlives this object.
  RemoteStream(std::string host, StreamInfo info, wire::LineExpander::FindRule find,
               wire::FormShapes& shapes);

  // The run that ingests data of this time; null: none. `begins`: the data may begin a run.
  using JobOf = std::function<LiveJob*(const std::string& job, TimeNs at, bool begins)>;
  struct At {
    TimeNs known_until_ns;     // the agent's clock, at the block's end
    TimeNs now;                // the collector's clock
    bool passes_over = false;  // of lines, metrics and communication only what later blocks need is read
  };
  // Ingests one block. Returns the run that ingested part of it, if any.
  LiveJob* ingest(const Piece& piece, At at, const JobOf& job_of);
  void set_rules(wire::LineExpander::FindRule find);

  const std::string& host() const { return host_; }
  const StreamInfo& info() const { return info_; }
  const std::string& job() const { return job_; }
  uint64_t blocks_lost() const { return blocks_lost_; }
  // Whether the last block had data that was passed over.
  bool passed_over() const { return passed_over_; }

 private:
  struct RemoteSource {
    SourceInfo info;
    uint64_t lines = 0;  // lines of this source, over all runs
    const LiveJob* of = nullptr;
    uint32_t run = 0;
    std::optional<SourceId> here;  // the source's number in that run; nothing: too many sources
  };
  SourceId open(SourceInfo info, TimeNs now) override;
  void on_input(core::Input input, TimeNs now) override;
  void ends(bool failed, TimeNs now) override;
  void alive(bool alive, TimeNs now) override;
  LiveJob* job_for(bool begins);
  std::optional<SourceId> source_here(LiveJob& job, RemoteSource& source, TimeNs now);
  void feed_received(LiveJob& job, TimeNs now);
  void note_owner(LiveJob& job);
  void report(const std::string& what);
  void report_troubles();

  const std::string host_;
  const StreamInfo info_;
  const std::string job_;
  wire::LineExpander::FindRule find_;
  wire::FormShapes* shapes_;
  std::unique_ptr<wire::InputReader> reader_;
  std::vector<RemoteSource> sources_;
  std::vector<core::ReceivedTraceCount> received_;  // counts of this session
  size_t received_fed_ = 0;                         // number of these counts that the run has
  std::pair<const LiveJob*, uint32_t> received_by_ = {};
  std::string unreported_;          // problem for the report of the next run that ingests data
  bool reported_troubles_ = false;  // true after a report in this session
  uint64_t broken_session_ = 0, blocks_lost_ = 0;
  // Set during ingest():
  const JobOf* job_of_ = nullptr;
  At at_ = {};
  LiveJob* took_ = nullptr;
  bool passed_over_ = false;
  const LiveJob* owner_of_ = nullptr;  // the run that has the owner, with owner_run_
  uint32_t owner_run_ = 0;
};

}  // namespace culprit::app
