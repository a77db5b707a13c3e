// The normal pool: message forms of successful jobs, with counts and their share of hosts. Built from settled
// JobLogs, saved as text, used to diagnose a failed job. A pool learned by the daemon contains no kernel
// messages and no lines of fatal rules, and never excuses them (JobLog::mark_alarm). A plain value; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/status.h"
#include "core/logs/job_log.h"

namespace culprit::detect {

struct PoolForm {
  uint64_t hash = 0;  // form_hash of its messages
  std::string text;
  uint32_t jobs = 0;       // number of jobs that have it
  double host_max = 0;     // most lines of one host in one job: the template's count, divided by its forms
  double hosts_share = 0;  // largest share of a job's hosts that have it
  uint32_t words = 0;      // 0 plain, 1 trouble, 2 failure (including the log level)
};

struct Pool {
  uint32_t jobs = 0;
  std::vector<PoolForm> forms;  // by hash
  bool learned = false;         // not saved

  // Whether the job is of the same kind as the pool's jobs: at least a fifth of the smaller set of forms is
  // in both (overlap coefficient of Szymkiewicz and Simpson). Jobs of one trainer share most forms. Jobs of
  // two trainers share only forms of common libraries, so every other form would look new.
  bool resembles(const logs::JobLog& log) const;
  bool resembles(const Pool& other) const;
  // Adds a successful job; a learned pool omits the job's alarms.
  void add(const logs::JobLog& log);
  // Adds the jobs of another pool.
  void merge(const Pool& other);
  // Returns the pool as text. Fails if the text exceeds `limit`, because load() could not read it.
  Result<std::string> save(size_t limit = limits::kPoolFileBytes) const;
  static Result<Pool> load(std::string_view text, std::string_view name);
};

}  // namespace culprit::detect
