// One run of one job: its engine, its sources, and its last report, so that each change is emitted once. One
// thread: the engine's worker. Time is an argument.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "app/jobs/announcer.h"
#include "app/jobs/job_hosts.h"
#include "app/jobs/job_inputs.h"
#include "app/jobs/job_router.h"
#include "app/jobs/judgement.h"
#include "app/jobs/live_jobs.h"
#include "core/engine.h"
#include "model/report_json.h"

namespace culprit::app {

class LiveJob final : public RoutedJob {
 public:
  LiveJob(std::string id, uint32_t run, const LiveOptions& options, LiveParsing& parsing);

  // `now` is the time at which the piece was read.
  void ingest(const LiveStream& stream, const Piece& piece, TimeNs now) override;
  // Closes metric rows that can get no more values by `now`.
  void settle_loop(TimeNs now) {
    if (engine_ && engine_->settle_loop(known_until(now))) dirty_ = true;
  }
  // Reads dumps whose files no longer grow; a complete dump urges a report.
  void settle_dumps(TimeNs now);
  // Settles quiet files that end in an error.
  void settle_files(TimeNs now);
  void ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) override;
  void ingest_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now);
  // Inputs from agents of other hosts. Their sources have the numbers of open_remote(), which returns nothing
  // beyond the limit of sources. Inputs use the agent's clock; `now` is the collector's.
  std::optional<SourceId> open_remote(const std::string& host, SourceInfo info, TimeNs at);
  void ingest_remote(const std::string& host, core::Input input, TimeNs at);
  void add_remote_bytes(uint64_t bytes) { summary_.bytes += bytes; }
  void remote_ends(bool failed, TimeNs at, TimeNs now);
  void remote_alive(const std::string& host, bool alive) { hosts_.alive(host, alive); }
  void on_agent_report(const std::string& host, TimeNs until, TimeNs now, bool active);
  void back(TimeNs now) { hosts_.back(now); }
  const JobHosts& hosts() const { return hosts_; }
  // The host's agent is disconnected since then (the collector's clock); kNoTime: it is back.
  void agent_away(const std::string& host, TimeNs since);
  bool is_local() const { return local_ns_ != kNoTime; }
  // Since when no data of the run has arrived, on the collector's clock.
  TimeNs silent_since() const;
  // Whether all hosts have reported up to the end event.
  bool end_is_known(TimeNs now) const { return hosts_.have_reported(end_reported_ns_, now); }

  // Appends findings of rules since the last call as events. Returns whether one of them was new.
  bool emit_findings(TimeNs now, std::vector<LiveEvent>& out);

  // Makes a report and emits its changes. `hangs`: silence may be a hang; `at_once`: see Announcer::update.
  void make_report(TimeNs now, bool hangs, bool at_once, std::vector<LiveEvent>& out);
  void judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out);
  // When a report is due because a diagnosis waits for its announcement.
  std::optional<TimeNs> announces_at() const { return announcer_.due_ns(); }
  bool settled() const { return announcer_.settled(); }
  // Makes the last report and frees the engine. Adds the job to `pool` if it ended well; returns whether.
  bool end(TimeNs now, detect::Pool& pool, std::vector<LiveEvent>& out);
  void replace_rules(const std::shared_ptr<rules::Ruleset>& rules);
  void set_hang(const detect::StallOptions& hang);
  void overran(const std::string& rule);

  const std::string& id() const { return summary_.id; }
  uint32_t run() const { return summary_.run; }
  bool running() const { return engine_ != nullptr; }
  bool dirty() const { return dirty_; }
  bool may_stall(TimeNs now) const { return engine_ && engine_->may_stall(known_until(now)); }
  bool ended_well() const { return engine_ && engine_->ended_well(); }
  bool conclusive() const { return report_.verdict.has_value(); }
  bool said_end() const { return said_end_; }
  bool streams_ended() const { return streams_.all_ended(); }
  const Report& report() const { return report_; }
  LiveJobSummary summary() const;
  std::string report_json(Charts charts) const { return culprit::to_json(report_, charts); }
  uint64_t lines() const { return running() ? engine_->log().lines() : summary_.lines; }
  uint64_t refused() const { return sources_.refused(); }
  TimeNs last_ns() const { return summary_.last_ns; }
  std::map<StreamId, uint64_t> lines_of_streams() const;
  std::vector<StreamId> streams() const { return streams_.ids(); }

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
  struct Repeat {
    TimeNs known_until_ns = kNoTime, last_ns = kNoTime;
    uint64_t more = 0;
  };

  TimeNs known_until(TimeNs now) const { return hosts_.empty() ? now : hosts_.known_until(now); }
  void note(const LiveStream& stream, const Piece& piece, TimeNs now);
  void tells_of(const std::string& agent, const std::string& host);
  void add_tellers(const std::string& host, std::vector<std::string>& out) const;
  detect::Unheard unheard(const std::map<std::string, TimeNs>& away) const;
  bool hears_progress(const std::map<std::string, TimeNs>& away) const;
  void report_away(const std::map<std::string, TimeNs>& away);
  void name_diagnoses();
  void emit_diagnoses(TimeNs now, bool at_once, std::vector<LiveEvent>& out);
  std::optional<std::string> announced_verdict() const;
  LiveEvent diagnosis_event(const Announcement& announcement, const std::string& accused, TimeNs now);
  TimeNs accused_ns(const Diagnosis& diagnosis, const std::string& host);
  std::string accused_json(const Diagnosis& diagnosis);
  LiveEvent event(LiveEventKind kind, TimeNs now) const;
  std::vector<LiveEvent::Device> corrupting(const Diagnosis& diagnosis) const;
  std::string finding_json(const Finding& finding, uint64_t repeated, TimeNs now) const;

  LiveJobSummary summary_;
  const LiveOptions& options_;
  std::unique_ptr<core::Engine> engine_;
  EngineSink sink_;
  JobInputs sources_;
  Report report_;
  JobHosts hosts_;                     // other hosts, by their agents
  std::set<std::string> progress_of_;  // hosts of hosts_ that reported progress
  // By agent, file and kind: after a restart the agent continues its sources.
  std::map<std::tuple<std::string, std::string, SourceKind>, SourceId> remote_sources_;
  std::map<std::string, std::vector<std::string>> tellers_;  // by host: other agents whose logs name it
  TimeNs local_ns_ = kNoTime;                                // last data from a source of this host
  TimeNs end_reported_ns_ = kNoTime;                         // when an agent reported the end, on its clock
  bool dirty_ = false, said_end_ = false, said_failed_ = false, said_success_ = false;
  JobStreams streams_;
  std::map<std::string, TimeNs> accused_;        // by diagnosis and host: since when, if evidence has no time
  std::map<std::string, std::string> reported_;  // JSON of each diagnosis as last emitted, by id
  std::map<std::string, Repeat> repeats_;        // findings, by rule and host
  Announcer announcer_;
  Judgements judgements_;
};

}  // namespace culprit::app
