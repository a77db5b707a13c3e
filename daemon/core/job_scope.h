// The hosts and the time span of a job, according to its own data. Plugin findings for other hosts or times
// do not concern the job. Pure; one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/detect/logs/view.h"
#include "model/report.h"
#include "model/topology.h"

namespace culprit::core {

class JobScope {
 public:
  JobScope() = default;
  // From job.toml and the logs except kernel logs, which begin before the job.
  JobScope(const detect::View& view, const JobFile& job);

  void add_host(std::string_view name);
  // Adds the times of data other than logs.
  void add_times(const JobSummary& other);

  // Whether the job has the host, under any of its names. True if no host of the job is known.
  bool has(std::string_view host) const;
  // kNoTime: unknown.
  TimeNs first_ns() const { return first_ns_; }
  TimeNs last_ns() const { return last_ns_; }

 private:
  void add_time(TimeNs first, TimeNs last);

  std::set<std::string> hosts_;  // the common part of each name
  TimeNs first_ns_ = kNoTime, last_ns_ = kNoTime;
};

}  // namespace culprit::core
