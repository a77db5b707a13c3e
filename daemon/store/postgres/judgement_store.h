// People's judgements of diagnoses that the members of a cluster share (docs/formats.md, section 14). Any
// member writes them, also of another's job: a judgement is no action, so no epoch fences it. Of one
// diagnosis the latest stays.
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

class JudgementStore {
 public:
  static constexpr size_t kReadLines = 1000;

  JudgementStore(std::string conninfo, std::string member)
      : member_(std::move(member)), session_(std::move(conninfo)) {}

  // Each has `seen`; an empty member of it is this one.
  Status put(const std::vector<records::Judgement>& judgements);
  struct News {
    std::vector<records::Judgement> judgements;  // in the order in which they were stored; with `seen`
    uint64_t refused = 0;                        // rows of another form
    bool complete = true;                        // false: more are there
  };
  // Of all members since the last call; the first: all. One may come again.
  Result<News> news(TimeNs now);
  // Removes what is older than the ledger of a collector.
  Status prune();

 private:
  const std::string member_;
  Session session_;
  std::string read_until_;  // news(): the database's time
  bool behind_ = false;     // the last news() was not complete
};

// The row as columns of `judgement`: key, job (hex), id, numbered_by, run, first_ns, last_ns, kind, is_right,
// who, time_ns, rule, member. Nothing: it has another form, or is of a time after `now` by more than a day.
std::optional<records::Judgement> judgement_of(const std::vector<std::string>& row, const std::string& self,
                                               TimeNs now);

}  // namespace culprit::store::postgres
