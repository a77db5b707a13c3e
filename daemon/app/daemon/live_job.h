// One run of one job: its engine, its sources, and what its last report said, so that a change is told once.
// One thread: the engine's worker. Time is an argument.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "app/daemon/announcer.h"
#include "app/daemon/job_hosts.h"
#include "app/daemon/judgement.h"
#include "app/daemon/live_jobs.h"
#include "app/daemon/live_source.h"
#include "core/engine.h"
#include "model/report_json.h"

namespace culprit::app {

class LiveJob {
 public:
  LiveJob(std::string id, uint32_t run, const LiveOptions& options, LiveParsing& parsing);

  // Pieces. `now` is when they were read.
  void take(const LiveStream& stream, const Piece& piece, TimeNs now);
  // Metrics of which no more can come by now.
  void settle_loop(TimeNs now) {
    if (engine_ && engine_->settle_loop(known_until(now))) dirty_ = true;
  }
  // Dumps that stood still: one that is whole is news.
  void settle_dumps(TimeNs now);
  // Files that are quiet and end in an error.
  void settle_files(TimeNs now);
  void take_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now);
  void take_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now);
  // What agents of other hosts tell: inputs with the numbers that open_remote() gave (nothing: there are too
  // many sources), on their clocks; `now` is ours.
  std::optional<SourceId> open_remote(const std::string& host, SourceInfo info, TimeNs at);
  void take_remote(const std::string& host, core::Input input, TimeNs at);
  void add_remote_bytes(uint64_t bytes) { summary_.bytes += bytes; }
  void remote_ends(bool failed, TimeNs at, TimeNs now);
  void remote_alive(const std::string& host, bool alive) { hosts_.alive(host, alive); }
  void heard(const std::string& host, TimeNs until, TimeNs now, bool active);
  void back(TimeNs now) { hosts_.back(now); }
  const JobHosts& hosts() const { return hosts_; }
  // The agent of a host is away since then (our clock); kNoTime: it is back.
  void agent_away(const std::string& host, TimeNs since);
  bool is_local() const { return local_ns_ != kNoTime; }
  // Since when nothing came of it, on our clock.
  TimeNs silent_since() const;
  // What was told to end then is known of all hosts.
  bool end_is_known(TimeNs now) const { return hosts_.have_told_of(end_told_ns_, now); }

  // The findings of rules since the last call, as events. Whether one of them was new.
  bool tell_findings(TimeNs now, std::vector<LiveEvent>& out);

  // A report, and what it changed. `hangs`: whether silence may be a hang; `at_once`: as Announcer::update.
  void make_report(TimeNs now, bool hangs, bool at_once, std::vector<LiveEvent>& out);
  void judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out);
  // When a report is due because a diagnosis waits to be announced.
  std::optional<TimeNs> announces_at() const { return announcer_.due_ns(); }
  bool settled() const { return announcer_.settled(); }
  // The last report; the engine is given back. `pool` takes the job if it ended well: whether it did.
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
  bool streams_ended() const { return !streams_.empty() && ended_ == streams_.size(); }
  const Report& report() const { return report_; }
  LiveJobSummary summary() const;
  std::string report_json(Charts charts) const { return culprit::to_json(report_, charts); }
  uint64_t lines() const { return running() ? engine_->log().lines() : summary_.lines; }
  uint64_t refused() const { return sources_.refused(); }
  TimeNs last_ns() const { return summary_.last_ns; }
  std::map<StreamId, uint64_t> lines_of_streams() const;
  std::vector<StreamId> streams() const;

  // What LiveJobs remembers of it between its calls.
  struct Due {
    TimeNs report_ns = kNoTime;  // the next slow one
    bool urgent = false;         // an error was found
    TimeNs asked_alive_ns = kNoTime, asked_stall_ns = kNoTime;
    TimeNs stalled_ns = kNoTime;  // when its stall was first seen
    std::optional<bool> alive;
    TimeNs looked_ns = kNoTime;  // when the look behind `alive` began
    TimeNs end_ns = kNoTime;     // its end was announced for this time
  } due;

 private:
  struct Repeat {
    TimeNs told_ns = kNoTime, last_ns = kNoTime;
    uint64_t more = 0;
  };

  TimeNs known_until(TimeNs now) const { return hosts_.empty() ? now : hosts_.known_until(now); }
  void note(const LiveStream& stream, const Piece& piece, TimeNs now);
  void tells_of(const std::string& agent, const std::string& host);
  void add_tellers(const std::string& host, std::vector<std::string>& out) const;
  detect::Unheard unheard(const std::map<std::string, TimeNs>& away) const;
  bool hears_progress(const std::map<std::string, TimeNs>& away) const;
  void tell_away(const std::map<std::string, TimeNs>& away);
  void name_diagnoses();
  void tell_diagnoses(TimeNs now, bool at_once, std::vector<LiveEvent>& out);
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
  LiveSources sources_;
  Report report_;
  JobHosts hosts_;                     // of agents elsewhere
  std::set<std::string> progress_of_;  // of these, the ones that reported progress
  // By agent, file and kind: an agent that was restarted goes on where it was.
  std::map<std::tuple<std::string, std::string, SourceKind>, SourceId> remote_sources_;
  std::map<std::string, std::vector<std::string>> tellers_;  // by host: other agents whose logs name it
  TimeNs local_ns_ = kNoTime;     // when something last came of a source of this host
  TimeNs end_told_ns_ = kNoTime;  // when an agent saw its end told, on its clock
  bool dirty_ = false, said_end_ = false, said_failed_ = false, said_success_ = false;
  std::map<StreamId, bool> streams_;  // its own, and whether they ended
  size_t ended_ = 0;
  std::map<std::string, TimeNs> accused_;    // since when, where evidence has no time; by diagnosis and host
  std::map<std::string, std::string> told_;  // JSON of each diagnosis as last emitted, by id
  std::map<std::string, Repeat> repeats_;    // findings, by rule and host
  Announcer announcer_;
  Judgements judgements_;
};

}  // namespace culprit::app
