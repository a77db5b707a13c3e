// Whether the process that a kernel's line names may be the job's. A kernel also reports processes of others:
// health checks, exporters, another user's program. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
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
  // Of a line of a rule with a hole `process`; other lines are kOwn.
  Kin of(const logs::RuleLine& line);

 private:
  bool is_mentioned(std::string_view name);
  void collect();

  const logs::JobLog& log_;
  const rules::Ruleset& rules_;
  bool collected_ = false;
  std::set<uint32_t> system_sources_;                    // sources with lines of a kernel
  std::set<std::string, std::less<>> pids_;              // that launchers of the job name
  std::set<std::pair<uint32_t, std::string>> of_units_;  // source and pid
  std::map<std::string, bool, std::less<>> mentioned_;
};

}  // namespace culprit::diagnose
