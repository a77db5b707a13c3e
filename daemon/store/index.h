// What is known of jobs, in one SQLite file beside the spool: jobs and their last reports, diagnoses,
// findings, who confirmed and cleared what, the pool of normal templates. The spool's bytes are the truth;
// this is what was made of them, and what people said.
//
// One thread owns it (the store's worker). Each call is one transaction: it is done or it is not. Errors (a
// full disk, a locked file) leave it usable. A damaged file is moved aside at the start and a new one begun.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "store/database.h"

namespace culprit::store {

enum class JobState : uint8_t { kRunning = 0, kEndedWell = 1, kFailed = 2, kEnded = 3 };
std::string_view name(JobState state);  // "running", "ended_well", "failed", "ended"

// Times that are not known are kNoTime.
struct JobRow {
  std::string id;
  uint32_t run = 0;  // of several of the same id, from 0
  JobState state = JobState::kRunning;
  TimeNs first_ns = kNoTime, last_ns = kNoTime, ended_ns = kNoTime;
  std::vector<std::string> hosts;
  std::string verdict;  // JSON of a diagnosis; empty: none
};

struct DiagnosisRow {
  std::string job, id;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // when it was made, and last seen
  std::string json;
  std::string state;  // "open", "confirmed", "withdrawn"
  std::string confirmed_by;
  TimeNs confirmed_ns = kNoTime;
};

struct FindingRow {
  std::string job;
  TimeNs time_ns = kNoTime;
  std::string json;
};

struct AuditRow {
  TimeNs time_ns = kNoTime;
  std::string who, what, subject, detail;  // "uid 1000", "confirm", "job/d1", free text
};

struct DiagnosisQuery {
  std::string job;  // empty: all
  TimeNs since_ns = kNoTime;
  size_t limit = 1000;
};

// Rows that are kept; the oldest go first, of jobs those that ended.
constexpr size_t kJobsMax = 10'000;            // a year of 27 a day
constexpr size_t kDiagnosesPerJobMax = 1'000;  // more say nothing more of one job
constexpr size_t kFindingsPerJobMax = 10'000;  // some 5 MB
constexpr size_t kAuditMax = 100'000;          // what people did: years of it

class Index {
 public:
  // Makes it or brings an older one up to date. An error where it cannot be read or written, or a newer
  // version of the program wrote it.
  static Result<std::unique_ptr<Index>> open(const std::string& path);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Where a damaged file was moved to at the start; empty: nothing was damaged.
  const std::string& moved_aside() const { return database_.moved_aside(); }
  // SQLite found damage since: opening it anew moves it aside.
  bool damaged() const { return database_.damaged(); }

  Status upsert_job(const JobRow& job);
  Result<std::optional<JobRow>> job(const std::string& id);
  Result<std::vector<JobRow>> jobs(size_t limit = 1000);  // newest first
  // The job of a report, a diagnosis or a finding must be there.
  Status put_report(const std::string& job, std::string_view json);
  Result<std::optional<std::string>> report(const std::string& job);

  // Confirmations of an earlier row of this job and id stay.
  Status put_diagnosis(const DiagnosisRow& diagnosis);
  Result<std::vector<DiagnosisRow>> diagnoses(const DiagnosisQuery& query);  // newest first
  // With its row of audit; kNotFound where there is no such diagnosis.
  struct Confirmation {
    std::string job, id, by;
    TimeNs time_ns = kNoTime;
  };
  Status confirm(const Confirmation& confirmation);

  Status add_finding(const FindingRow& finding);
  Result<std::vector<FindingRow>> findings(const std::string& job, size_t limit = 1000);  // newest first

  Status add_audit(const AuditRow& row);
  Result<std::vector<AuditRow>> audits(size_t limit = 1000);  // newest first

  // What spoke against a host before `time_ns` counts no more; with its row of audit.
  Status clear_host(const std::string& host, TimeNs time_ns, const std::string& by);
  Result<std::map<std::string, TimeNs>> cleared();

  // By the kind of job that it is normal for ("" for one pool over all).
  Status save_pool(const std::string& kind, std::string_view text);
  Result<std::optional<std::string>> load_pool(const std::string& kind);

 private:
  explicit Index(const std::string& path);
  template <class Work>
  Status in_transaction(const Work& work);
  Status write_audit(const AuditRow& row);
  Status hold_bounds();

  Database database_;
  uint64_t writes_ = 0;
};

}  // namespace culprit::store
