// What one agent of another host condensed of one job (core/wire.h), read block by block: its inputs on their
// way to the run that the job has here. An agent knows no runs: where one ends and another begins the sources
// go on, and are opened in the new one when something of them comes.
//
// One thread: the engine's worker. Owns its reader; the jobs are asked for and borrowed for the call. The
// blocks come from strangers: what cannot be read is told once in the job's report, and passed over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/daemon/live_job.h"
#include "core/wire.h"
#include "model/piece.h"

namespace culprit::app {

class RemoteStream : private core::InputSink {
 public:
  RemoteStream(std::string host, StreamInfo info, logs::Expander::FindRule find);

  // The run of its job that takes what is of that time; null: none does. `begins`: one may begin with it.
  using JobOf = std::function<LiveJob*(const std::string& job, TimeNs at, bool begins)>;
  struct At {
    TimeNs told_ns;  // the agent's clock: when it told it
    TimeNs now;      // ours
  };
  // One block. The run that took something of it, if any.
  LiveJob* take(const Piece& piece, At at, const JobOf& job_of);
  void set_rules(logs::Expander::FindRule find);

  const std::string& host() const { return host_; }
  const StreamInfo& info() const { return info_; }
  const std::string& job() const { return job_; }
  uint64_t blocks_lost() const { return blocks_lost_; }

 private:
  struct Source {
    SourceInfo info;
    uint64_t lines = 0;  // that came of it, over all runs
    const LiveJob* of = nullptr;
    uint32_t run = 0;
    std::optional<SourceId> here;  // in that run; nothing: it has too many
  };
  SourceId open(SourceInfo info, TimeNs now) override;
  void take(core::Input input, TimeNs now) override;
  void ends(bool failed, TimeNs now) override;
  void alive(bool alive, TimeNs now) override;
  LiveJob* job_for(bool begins);
  std::optional<SourceId> source_here(LiveJob& job, Source& source, TimeNs now);
  void tell(const std::string& what);
  void tell_troubles();

  const std::string host_;
  const StreamInfo info_;
  const std::string job_;
  logs::Expander::FindRule find_;
  std::unique_ptr<core::InputReader> reader_;
  std::vector<Source> sources_;
  std::string untold_;          // for the report of the next run that takes something
  bool told_troubles_ = false;  // of this session
  uint64_t broken_session_ = 0, blocks_lost_ = 0;
  // During take():
  const JobOf* job_of_ = nullptr;
  At at_ = {};
  LiveJob* took_ = nullptr;
};

}  // namespace culprit::app
