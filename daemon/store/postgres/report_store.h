// The reports of jobs that the members of a cluster publish to each other (docs/formats.md, section 14). A
// write affects a row only while its member owns the job's partition in its epoch, by the database's clock: a
// late owner's affects none.
//
// One thread at a time; each call ends within its time limit. The lease's round makes the tables.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/cluster.h"
#include "store/postgres/session.h"

namespace culprit::store::postgres {

struct ReportRow {
  std::string job;              // report_key() of it
  uint32_t run = 0;             // as its member numbers the runs
  std::string member;           // that published it
  TimeNs as_of_ns = kNoTime;    // by the database's clock; set by the database
  std::optional<uint32_t> uid;  // the only user of all its sources; none: several, or unknown
  std::string listed;           // its item of GET /v1/jobs
  std::string packed;           // the report, compressed; empty: it is too large
};

class ReportStore {
 public:
  ReportStore(std::string conninfo, std::string member)
      : session_(std::move(conninfo)), member_(std::move(member)) {}

  // False: fenced, nothing was written.
  Result<bool> put(const ReportRow& row, const PartHold& with);
  struct Key {
    std::string job;
    int64_t as_of_us = 0;
    bool operator==(const Key&) const = default;
  };
  // Of all reports, the newest first; a bounded number.
  Result<std::vector<Key>> keys();
  Result<std::vector<ReportRow>> rows(const std::vector<std::string>& jobs);
  // Removes what was published 30 days ago, which is as long as evidence by default.
  Status prune();

 private:
  Session session_;
  const std::string member_;
};

// A job's id as a key: any user names jobs, and the database refuses some bytes.
std::string report_key(const std::string& job);

// A report's JSON, compressed. Unpacking gives nothing for what is damaged or too large.
std::string pack_report(const std::string& json);
std::optional<std::string> unpack_report(const std::string& packed);
// Of the JSON that is packed.
constexpr size_t kReportBytes = 1 << 20;

}  // namespace culprit::store::postgres
