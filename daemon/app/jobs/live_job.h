// One run of one job: its engine, its sources, and its last report, so that each change is emitted once. One
// thread: the engine's worker. Time is an argument.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/jobs/capture_times.h"
#include "app/jobs/effective_time.h"
#include "app/jobs/job_agents.h"
#include "app/jobs/job_counters.h"
#include "app/jobs/job_inputs.h"
#include "app/jobs/job_router.h"
#include "app/jobs/job_shares.h"
#include "app/jobs/judgement.h"
#include "app/jobs/live_jobs.h"
#include "app/jobs/metered_engine.h"
#include "app/jobs/normal_pools.h"
#include "app/jobs/pool_owner.h"
#include "app/jobs/run_events.h"
#include "core/engine.h"
#include "model/report_json.h"

namespace culprit::app {

class LiveJob final : public RoutedJob {
 public:
  // Objects that a LiveJob borrows; they outlive the job.
  struct Parts {
    const LiveOptions& options;
    LiveParsing& parsing;
    NormalPools& pools;
  };
  LiveJob(std::string id, uint32_t run, const Parts& parts);

  // `now` is the time at which the piece was read.
  void ingest(const LiveStream& stream, const Piece& piece, TimeNs now) override;
  // Reads dumps whose files no longer grow, closes metric rows that can get no more values by `now`, and
  // settles quiet files that end in an error. A complete dump or an error at a file's end requests an urgent
  // report.
  void settle(TimeNs now);
  void ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) override;
  void keep_out(Principal user, const LiveStream& stream, const Piece& piece) override;
  const JobInputs& inputs() const override { return sources_; }
  void ingest_host_lines(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now);
  // Inputs from agents of other hosts. open_remote() returns the number of a source; nothing if the limit of
  // sources is reached. Inputs use the agent's clock; `now` is the collector's.
  std::optional<SourceId> open_remote(const std::string& host, SourceInfo info, TimeNs at);
  void ingest_remote(const std::string& host, core::Input input, TimeNs at);
  // An agent reports that this user writes the job's sources; nothing: several or unknown users.
  void add_remote_owner(std::optional<Principal> uid);
  void add_remote_bytes(uint64_t bytes) { summary_.bytes += bytes; }
  void remote_ends(bool failed, TimeNs at, TimeNs now);
  void on_agent_report(const std::string& host, TimeNs until, TimeNs now, bool active);
  JobHosts& hosts() { return agents_.hosts(); }
  // The connection to the host's agent: lost since `since` (the collector's clock); kNoTime: restored.
  void agent_away(const std::string& host, TimeNs since);
  bool is_local() const { return local_ns_ != kNoTime; }
  // Whether the run may be on this host: a process of the run was seen here, or no other host is known to run
  // the job. A collector may read a log of a job that runs elsewhere.
  bool runs_here() const { return due.lived || (is_local() && agents_.hosts().empty()); }
  // Arrival of the run's last data, on the collector's clock.
  TimeNs silent_since() const;
  // Whether all hosts have reported up to the end event.
  bool end_is_known(TimeNs now) const { return agents_.hosts().have_reported(end_reported_ns_, now); }

  // Appends rule findings since the last call as events. Returns whether one of them was new.
  bool emit_findings(TimeNs now, std::vector<LiveEvent>& out);

  struct ReportOptions {
    bool hangs = false;    // silence may be a hang
    bool at_once = false;  // see Announcer::At
    bool last = false;     // of the run
  };
  // Makes a report and emits its changes.
  void make_report(TimeNs now, ReportOptions options, std::vector<LiveEvent>& out);
  // Appends a request for stacks if one is due: the job hangs, slowed down, or a person asked.
  void ask_for_stacks(TimeNs now, std::vector<LiveEvent>& out);
  // A person requests stacks: appends the first request. Errors: kNotFound, kDenied, kBusy, kTooSoon.
  Result<CaptureOrder> order_capture(uint32_t rounds, TimeNs now, std::vector<LiveEvent>& out);
  void judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out);
  RunEvents& events() { return events_; }
  // Makes the last report and frees the engine. A job that ended well teaches its owner's pool.
  void end(TimeNs now, std::vector<LiveEvent>& out);
  // Selects the normal pools again: pools of the owner and trusted pools, from similar jobs.
  void choose_pool();
  // Ends the run early with its last report and frees the engine. `why`: a sentence for the report.
  void give_way(TimeNs now, const std::string& why, std::vector<LiveEvent>& out);
  void replace_rules(const std::shared_ptr<rules::Ruleset>& rules);
  void set_hang(const detect::StallOptions& hang);
  void overran(const std::string& rule);

  const std::string& id() const { return summary_.id; }
  std::optional<std::string> pool_owner() const { return pool_owner_.name(); }
  // Whether root or the daemon's user writes for the job, here or on another host.
  bool hears_root() const { return pool_owner_.hears_root(); }
  // The user whose share of the thread's time pays for the job's reports: the only user who writes, else the
  // user who claims the job.
  std::string payer() const { return pool_owner_.name().value_or(claim.owner); }
  uint32_t run() const { return summary_.run; }
  bool running() const { return engine_ != nullptr; }
  bool dirty() const { return dirty_; }
  bool may_stall(TimeNs now) const { return engine_ && engine_->read().may_stall(agents_.known_until(now)); }
  bool ended_well() const { return engine_ && engine_->read().ended_well(); }
  bool reported_end() const { return reported_end_; }
  const JobStreams& streams() const { return streams_; }
  const Report& report() const { return report_; }
  LiveJobSummary summary() const;
  // Called after each input: stores how far the run has come by then.
  void note_step(TimeNs at);
  JobCounters counters(TimeNs now) const;
  uint64_t lines() const { return running() ? engine_->read().log().lines() : summary_.lines; }
  uint64_t refused() const { return sources_.refused(); }
  TimeNs last_ns() const { return summary_.last_ns; }
  std::map<StreamId, uint64_t> lines_of_streams() const;
  // Memory of the engine, and of data that the engine has not received yet.
  uint64_t memory_bytes() const { return engine_ ? engine_->bytes() + sources_.unread_bytes() : 0; }
  uint64_t report_bytes() const { return engine_ ? engine_->report_bytes() : 0; }

  // claim to the engine by the best-known sender of data
  JobClaim claim;

  // Time between the end event and the end: processes still write while they exit.
  static constexpr TimeNs kLastWords = 5 * kNsPerSecond;
  // A second capture within this time is refused because one is under way.
  static constexpr TimeNs kCaptureAnswer = 5 * kNsPerSecond;
  // Schedule of LiveJobs for this run, kept between calls.
  struct Due {
    TimeNs report_ns = kNoTime;    // next regular report
    TimeNs hurried_ns = kNoTime;   // last urgent report
    TimeNs reported_ns = kNoTime;  // last report
    bool urgent = false;           // an error was found
    TimeNs asked_alive_ns = kNoTime, asked_stall_ns = kNoTime;
    TimeNs stalled_ns = kNoTime;  // first sight of the stall
    TimeNs written_ns = kNoTime;  // time at which the last data was written
    bool fresh = false;           // the job wrote data while it was watched
    std::optional<bool> alive;
    bool lived = false;                   // processes of the job were seen
    TimeNs looked_ns = kNoTime;           // start of the scan behind `alive`
    TimeNs end_ns = kNoTime;              // announced time of the end
    std::optional<JobAttempts> attempts;  // the latest; nothing: the job does not run again
    bool hung_before = false;  // an earlier process announced a hang, and no report could tell since
  } due;

 private:
  void note(const LiveStream& stream, const Piece& piece, TimeNs now);
  void close(TimeNs now, std::vector<LiveEvent>& out);
  void on_owner(const std::optional<std::string>& before);
  void use_kinds(std::vector<uint64_t> kinds);
  std::string why_healthy(bool named) const;
  std::optional<double> effective_time(TimeNs now) const;
  void teach(bool named, TimeNs now, std::vector<LiveEvent>& out);

  LiveJobSummary summary_;
  const LiveOptions& options_;
  NormalPools& pools_;
  PoolOwner pool_owner_;
  std::vector<uint64_t> kinds_;  // kinds in the engine's pool
  uint64_t pools_version_ = 0;   // NormalPools::version() at the last choice of pools
  bool vouched_ = false;         // root or the daemon's user reported a successful end
  std::unique_ptr<MeteredEngine> engine_;
  EngineSink sink_;
  JobInputs sources_;
  Report report_;
  JobAgents agents_;  // agents of other hosts
  RunEvents events_;
  TimeNs local_ns_ = kNoTime;         // last data from a source of this host
  TimeNs end_reported_ns_ = kNoTime;  // agent's clock: time at which an agent reported the end
  bool dirty_ = false, reported_end_ = false, reported_failure_ = false, reported_success_ = false;
  JobStreams streams_;
  CaptureTimes captures_;
  Judgements judgements_;
  StepTrack steps_;
  TimeNs progressed_ns_ = kNoTime;  // last sign of progress
};

}  // namespace culprit::app
