// What healthy jobs taught the members of a cluster, as one (docs/formats.md, section 14). The member that
// owned a job stores what it taught; any member stores that a person took it back. Of one run the latest
// stays.
//
// One thread at a time; each call ends within its time limit. The lease's round makes the tables. Rows are
// untrusted: those of another form are left out and counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "records/rows.h"
#include "store/postgres/session.h"

namespace culprit::store::postgres {

class PoolStore {
 public:
  static constexpr size_t kReadRows = 20;
  static constexpr size_t kTextBytes = 1 << 20;  // of what one run taught: some 10,000 forms
  static constexpr size_t kRunsOfOwner = 32;     // as a collector keeps

  PoolStore(std::string conninfo, std::string member)
      : member_(std::move(member)), session_(std::move(conninfo)) {}

  // At most kTextBytes of text each. An empty member of a row is this one.
  Status put(const std::vector<records::TaughtRow>& rows);
  struct News {
    std::vector<records::TaughtRow> rows;  // in the order in which they were stored
    uint64_t refused = 0;                  // rows of another form
    bool complete = true;                  // false: more are there
  };
  // What other members stored since the last call; the first: all. One may come again.
  Result<News> news(TimeNs now);
  // Removes all but the newest runs of each owner, and what is older than the ledger of a collector.
  Status prune();

 private:
  const std::string member_;
  Session session_;
  std::string read_until_;  // news(): the database's time
  bool behind_ = false;     // the last news() was not complete
};

// The row as columns of `pool`: job (hex), run, owner, why, time_ns, forms, body (hex), forgotten, member.
// Nothing: it has another form, or is of a time after `now` by more than a day.
std::optional<records::TaughtRow> taught_of(const std::vector<std::string>& row, TimeNs now);

}  // namespace culprit::store::postgres
