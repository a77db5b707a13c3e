// The normal pool: which forms of message the successful jobs of the same kind wrote, how much and on how
// many hosts. Made of settled JobLogs, saved as text, given to the diagnosis of a failed job. A plain value;
// pure.
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
  uint32_t jobs = 0;       // that have it
  double host_max = 0;     // most lines of one host in one job: its template's, shared out among its forms
  double hosts_share = 0;  // largest share of a job's hosts that have it
  uint32_t words = 0;      // 0 plain, 1 of trouble, 2 of failure (its level counted in)
};

struct Pool {
  uint32_t jobs = 0;
  std::vector<PoolForm> forms;  // by hash

  // Whether the job is of the kind of those in it: a fifth of the messages of one are the other's (the
  // overlap coefficient of Szymkiewicz and Simpson). Jobs of one trainer share most of them; those of two
  // share what libraries write, and to each all that the other writes would be new.
  bool resembles(const logs::JobLog& log) const;
  // Adds a successful job.
  void add(const logs::JobLog& log);
  // Adds the jobs of another pool.
  void merge(const Pool& other);
  // As text; an error where it would have more bytes than load() is given, so that nobody keeps a pool that
  // cannot be read.
  Result<std::string> save(size_t limit = limits::kPoolFileBytes) const;
  static Result<Pool> load(std::string_view text, std::string_view name);
};

}  // namespace culprit::detect
