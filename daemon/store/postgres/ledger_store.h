// The controllers' ledger in the cluster's database (docs/formats.md, section 14): each member stores its
// rows, reads the isolations of the others, and all of a job that it gains. A row with a higher stamp stays:
// the stamp is the epoch for attempts, and a time for what only one member writes.
//
// One thread at a time; each call ends within its limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/postgres/session.h"

namespace culprit::store::postgres {

struct LedgerLine {
  std::string kind;  // one of the words below
  std::string key;   // of the row, within its kind
  std::string job;   // scheduler/id; empty: of no job
  int64_t stamp = 0;
  std::string line;         // the row as JSON; of a reset the person
  std::string member = {};  // as read: who stored it
  bool again = false;       // put() after a start: a row of another member stays
};
constexpr std::string_view kLedgerIsolation = "isolate", kLedgerAction = "action", kLedgerAttempt = "attempt",
                           kLedgerMachine = "machine", kLedgerReset = "reset";

class LedgerStore {
 public:
  static constexpr size_t kBatchBytes = 1 << 20, kBatchLines = 500;  // of put(): what a caller gives at once
  static constexpr size_t kReadLines = 10'000;

  LedgerStore(std::string conninfo, std::string member)
      : member_(std::move(member)), session_(std::move(conninfo)) {}
  virtual ~LedgerStore() = default;
  const std::string& member() const { return member_; }

  // Invalid UTF-8 is replaced. Of lines with one key the one with the highest stamp counts.
  virtual Status put(const std::vector<LedgerLine>& lines);
  // Lines of other members since the last call, in the order of their time; the first: of seven days. A line
  // may come again; of many the rest comes with the next call. Without jobs' own: isolations, machines and
  // resets.
  virtual Result<std::vector<LedgerLine>> news();
  // Attempts and actions of these jobs, of all members and the last 30 days; of each job the newest. `job` of
  // a line is ledger_key() of the job's.
  virtual Result<std::vector<LedgerLine>> of_jobs(const std::vector<std::string>& jobs);
  // Removes what is older than the ledger of a collector, also reserved actions.
  virtual Status prune();

 private:
  Result<Rows> run(const char* sql, std::vector<std::string> values);

  const std::string member_;
  Session session_;
  std::string read_until_;  // news(): the database's time
  bool behind_ = false;     // the last news() was not complete
};

// A name as a key of the database: any user names jobs, so it may be long, or no text.
std::string ledger_key(const std::string& name);

}  // namespace culprit::store::postgres
