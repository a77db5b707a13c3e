// One run of one job: its engine, its sources, and its last report, so that each change is emitted once. One
// thread: the engine's worker. Time is an argument.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/jobs/job_agents.h"
#include "app/jobs/job_inputs.h"
#include "app/jobs/job_router.h"
#include "app/jobs/judgement.h"
#include "app/jobs/live_jobs.h"
#include "app/jobs/run_events.h"
#include "core/engine.h"
#include "model/report_json.h"

namespace culprit::app {

class LiveJob final : public RoutedJob {
 public:
  LiveJob(std::string id, uint32_t run, const LiveOptions& options, LiveParsing& parsing);

  // `now` is the time at which the piece was read.
  void ingest(const LiveStream& stream, const Piece& piece, TimeNs now) override;
  // Reads dumps whose files no longer grow, closes metric rows that can get no more values by `now`, and
  // settles quiet files that end in an error. A complete dump and such an error urge a report.
  void settle(TimeNs now);
  void ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) override;
  void ingest_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now);
  // Inputs from agents of other hosts. Their sources have the numbers of open_remote(), which returns nothing
  // beyond the limit of sources. Inputs use the agent's clock; `now` is the collector's.
  std::optional<SourceId> open_remote(const std::string& host, SourceInfo info, TimeNs at);
  void ingest_remote(const std::string& host, core::Input input, TimeNs at);
  void add_remote_bytes(uint64_t bytes) { summary_.bytes += bytes; }
  void remote_ends(bool failed, TimeNs at, TimeNs now);
  void on_agent_report(const std::string& host, TimeNs until, TimeNs now, bool active);
  JobHosts& hosts() { return agents_.hosts(); }
  // The host's agent is disconnected since then (the collector's clock); kNoTime: it is back.
  void agent_away(const std::string& host, TimeNs since);
  bool is_local() const { return local_ns_ != kNoTime; }
  // Since when no data of the run has arrived, on the collector's clock.
  TimeNs silent_since() const;
  // Whether all hosts have reported up to the end event.
  bool end_is_known(TimeNs now) const { return agents_.hosts().have_reported(end_reported_ns_, now); }

  // Appends findings of rules since the last call as events. Returns whether one of them was new.
  bool emit_findings(TimeNs now, std::vector<LiveEvent>& out);

  // Makes a report and emits its changes. `hangs`: silence may be a hang; `at_once`: see Announcer::update.
  void make_report(TimeNs now, bool hangs, bool at_once, std::vector<LiveEvent>& out);
  void judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out);
  const Announcer& announcer() const { return events_.announcer(); }
  // Makes the last report and frees the engine. Adds the job to `pool` if it ended well; returns whether.
  bool end(TimeNs now, detect::Pool& pool, std::vector<LiveEvent>& out);
  void replace_rules(const std::shared_ptr<rules::Ruleset>& rules);
  void set_hang(const detect::StallOptions& hang);
  void overran(const std::string& rule);

  const std::string& id() const { return summary_.id; }
  uint32_t run() const { return summary_.run; }
  bool running() const { return engine_ != nullptr; }
  bool dirty() const { return dirty_; }
  bool may_stall(TimeNs now) const { return engine_ && engine_->may_stall(agents_.known_until(now)); }
  bool ended_well() const { return engine_ && engine_->ended_well(); }
  bool said_end() const { return said_end_; }
  const JobStreams& streams() const { return streams_; }
  const Report& report() const { return report_; }
  LiveJobSummary summary() const;
  uint64_t lines() const { return running() ? engine_->log().lines() : summary_.lines; }
  uint64_t refused() const { return sources_.refused(); }
  TimeNs last_ns() const { return summary_.last_ns; }
  std::map<StreamId, uint64_t> lines_of_streams() const;

  // Time between the end event and the end: processes still write while they exit.
  static constexpr TimeNs kLastWords = 5 * kNsPerSecond;
  // Schedule of LiveJobs for this run, kept between calls.
  struct Due {
    TimeNs report_ns = kNoTime;  // next regular report
    bool urgent = false;         // an error was found
    TimeNs asked_alive_ns = kNoTime, asked_stall_ns = kNoTime;
    TimeNs stalled_ns = kNoTime;  // first sight of the stall
    std::optional<bool> alive;
    TimeNs looked_ns = kNoTime;  // start of the scan behind `alive`
    TimeNs end_ns = kNoTime;     // announced time of the end
  } due;

 private:
  void note(const LiveStream& stream, const Piece& piece, TimeNs now);

  LiveJobSummary summary_;
  const LiveOptions& options_;
  std::unique_ptr<core::Engine> engine_;
  EngineSink sink_;
  JobInputs sources_;
  Report report_;
  JobAgents agents_;  // of other hosts
  RunEvents events_;
  TimeNs local_ns_ = kNoTime;         // last data from a source of this host
  TimeNs end_reported_ns_ = kNoTime;  // when an agent reported the end, on its clock
  bool dirty_ = false, said_end_ = false, said_failed_ = false, said_success_ = false;
  JobStreams streams_;
  Judgements judgements_;
};

}  // namespace culprit::app
