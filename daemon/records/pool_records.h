// The records of what healthy jobs taught: a row for each run that counts, and a log. Members of a cluster
// share both; what was said last of a job's run with a number counts.
//
// As records.h: one thread, and each call is one transaction.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "records/rows.h"

namespace culprit::records {

class PoolRecords {
 public:
  virtual ~PoolRecords() = default;

  // Adds what a run taught, in place of an earlier row of it, with a row of the log; removes the runs
  // `removed`.
  virtual Status teach(const TaughtRow& row, const std::vector<JobRunId>& removed) = 0;
  virtual Result<std::vector<TaughtRow>> taught() = 0;  // oldest first
  // Removes what the runs of a job taught, with rows of the log and of audit. kNotFound: nothing.
  virtual Status forget(const std::string& job, TimeNs time_ns, const std::string& by) = 0;
  virtual Result<std::vector<PoolLogRow>> log(size_t limit = kRowsListed) = 0;  // newest first

  // Whether a row of another member is later than all that is known of the run here.
  virtual Result<bool> is_news(const TaughtRow& row) = 0;
  // A row of another member: a person took back what the run taught.
  virtual Status take_back(const TaughtRow& row) = 0;
  // What the other members do not have yet, oldest first: of own runs, and what persons took back here.
  // `shared`: rows that they have from now on.
  virtual Result<std::vector<TaughtRow>> unshared(std::span<const TaughtRow> shared) = 0;
};

}  // namespace culprit::records
