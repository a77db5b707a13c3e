// Whether a system log line may concern the job. A kernel also reports other processes: health checks,
// exporters, other users' programs. Services also report other jobs, disks and networks. Pure; one thread.
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
  // Stores references to both arguments.
  OwnProcesses(const logs::JobLog& log, const rules::Ruleset& rules) : log_(log), rules_(rules) {}

  enum class Kin : uint8_t {
    kOwn,      // of the job, or the line names no process
    kUnknown,  // a named process that may or may not be the job's
    kOther,    // of a system service
  };
  // Classifies kernel lines of rules with a hole `process`, service lines with a job number, and lines of
  // services that neither run jobs nor monitor the machine. All other lines are kOwn.
  Kin of(const logs::RuleLine& line);
  // Whether the line is from a system log, about a service, disk or network, and the job's own logs do not
  // name the same part.
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
  std::set<uint32_t> system_sources_;                    // sources with kernel lines
  std::set<std::string, std::less<>> pids_;              // pids in the lines of the job's launchers
  std::set<std::pair<uint32_t, std::string>> of_units_;  // source and pid
  std::map<std::string, bool, std::less<>> mentioned_;
  std::optional<bool> own_logs_;
};

}  // namespace culprit::diagnose
