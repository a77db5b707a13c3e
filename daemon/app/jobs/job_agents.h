// Data of other hosts' agents on one job: up to when each host reported, the sources that it opened, and
// which agent's logs name which host. Logs may use other host names than agents.
//
// Owner: LiveJob. One thread: the engine's worker. No clock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "app/jobs/job_hosts.h"
#include "core/detect/logs/unheard.h"
#include "model/batch.h"
#include "model/report.h"

namespace culprit::app {

class JobAgents {
 public:
  JobHosts& hosts() { return hosts_; }
  const JobHosts& hosts() const { return hosts_; }
  // The watermark of the job: `now` if the job has no other hosts.
  TimeNs known_until(TimeNs now) const { return hosts_.empty() ? now : hosts_.known_until(now); }

  // Identifies an agent's source in the engine: after a restart the agent continues its sources.
  using SourceKey = std::tuple<std::string, std::string, SourceKind>;  // agent, file and kind
  std::optional<SourceId> source(const SourceKey& key) const;
  void add_source(const SourceKey& key, SourceId source) { sources_.emplace(key, source); }

  // The agent's logs name this host.
  void note_host(const std::string& agent, const std::string& host);
  void note_progress(const std::string& agent) { progress_of_.insert(agent); }
  // Appends the agents whose logs name this host.
  void add_agents_of(const std::string& host, std::vector<std::string>& out) const;

  // `away`: disconnected hosts with the start of the disconnection, see JobHosts::away.
  using Away = std::map<std::string, TimeNs>;
  // Hosts whose lines no connected agent reads, by their names in logs.
  detect::Unheard unheard(const Away& away) const;
  // Whether a connected host has reported progress before. Only then does silence come from the job itself.
  bool hears_progress(const Away& away) const;

 private:
  JobHosts hosts_;
  std::set<std::string> progress_of_;  // agents that reported progress
  std::map<SourceKey, SourceId> sources_;
  std::map<std::string, std::vector<std::string>> tellers_;  // by host: other agents whose logs name this
                                                             // host
};

// Adds the disconnected agents to the report's missing data.
void report_away(const JobAgents::Away& away, Report& report);

}  // namespace culprit::app
