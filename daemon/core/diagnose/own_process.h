// Whether what a line of the system's log is about may be the job's. A kernel also reports processes of
// others: health checks, exporters, another user's program. Services also report other jobs, disks and
// networks. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/logs/job_log.h"
#include "core/rules/ruleset.h"

namespace culprit::diagnose {

class OwnProcesses {
 public:
  // Keeps both by reference.
  OwnProcesses(const logs::JobLog& log, const rules::Ruleset& rules) : log_(log), rules_(rules) {}

  enum class Kin : uint8_t {
    kOwn,      // of the job, or the line names no process
    kUnknown,  // named, but nothing says that it is the job's
    kOther,    // of a service of the system
  };
  // Of a kernel's line of a rule with a hole `process`, of a service's line with the number of a job, and of
  // a line of a service that neither runs jobs nor watches the machine; other lines are kOwn.
  Kin of(const logs::RuleLine& line);
  // Whether a system's log tells of a service, a disk or a network, and the job's own logs name nothing of
  // it.
  bool is_aside(const logs::RuleLine& line);

 private:
  bool is_mentioned(std::string_view name);
  bool is_of_other_job(std::string_view text);
  bool is_foreign(const logs::RuleLine& line);
  bool has_own_logs();
  bool names_own(const logs::RuleLine& line);
  void collect();

  const logs::JobLog& log_;
  const rules::Ruleset& rules_;
  bool collected_ = false;
  std::set<uint32_t> system_sources_;                    // sources with lines of a kernel
  std::set<std::string, std::less<>> pids_;              // that launchers of the job name
  std::set<std::pair<uint32_t, std::string>> of_units_;  // source and pid
  std::map<std::string, bool, std::less<>> mentioned_;
  std::optional<bool> own_logs_;
};

}  // namespace culprit::diagnose
