// What is known of jobs, in one SQLite file beside the spool: each run of a job and its last report, its
// diagnoses and findings, who judged and cleared what, the pool of normal templates. The spool's bytes are
// the truth; this is what was made of them, and what people said.
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

// Times that are not known are kNoTime. A job whose id came again has several runs, numbered from 0.
struct JobRow {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  TimeNs first_ns = kNoTime, last_ns = kNoTime, ended_ns = kNoTime;
  std::optional<uint64_t> hosts, lines;  // how many
  std::string verdict;                   // its title; empty: none
};

struct DiagnosisRow {
  std::string job;
  uint32_t run = 0;
  std::string id;
  std::string kind;  // what makes two of them the same fault: "rule:nvidia.xid.79"
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // when it was made, and last seen
  std::string json;
  std::string state;  // "open", "withdrawn", "confirmed", "refuted"
  std::string judged_by;
  TimeNs judged_ns = kNoTime;
};

// What people said of one kind of diagnosis, each diagnosis once: their last word on it.
struct Judged {
  uint64_t hits = 0, right = 0;
  std::string by;  // whose was the last word
};

struct FindingRow {
  std::string job;
  uint32_t run = 0;
  std::string id;  // of the same finding always the same: it is kept once, however often it is told
  TimeNs time_ns = kNoTime;
  std::string json;
};

struct AuditRow {
  TimeNs time_ns = kNoTime;
  std::string who, what, subject, detail;  // "uid 1000", "confirm", "job/d1", its kind
};

// A device that was suspected of corrupting data, by one diagnosis.
struct DeviceFault {
  std::string device;  // its UUID or serial number where known, else its host and number there
  std::string host;    // where it was then
  std::string job;
  uint32_t run = 0;
  std::string diagnosis;  // its id
  std::optional<int64_t> step;
  TimeNs time_ns = kNoTime;
};

struct DiagnosisQuery {
  std::string job;              // empty: all
  std::optional<uint32_t> run;  // none: all
  TimeNs since_ns = kNoTime;
  size_t limit = 1000;
  bool judged = false;  // only those that people judged
};

// Rows that are kept; the oldest go first, of jobs those that ended.
constexpr size_t kJobsMax = 10'000;            // runs of all; a year of 27 a day
constexpr size_t kRunsPerJobMax = 100;         // a job that fails each hour pushes no other out in four days
constexpr size_t kDiagnosesPerRunMax = 1'000;  // more say nothing more of one job
constexpr size_t kFindingsPerRunMax = 10'000;  // some 5 MB
constexpr size_t kAuditMax = 100'000;          // what people did: years of it
constexpr size_t kDeviceFaultsMax = 10'000;    // a fleet of 100,000 devices in which one of ten is suspected

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
  // Of several runs the last, where none is named.
  Result<std::optional<JobRow>> job(const std::string& id, std::optional<uint32_t> run = {});
  Result<std::vector<JobRow>> jobs(size_t limit = 1000);  // all runs, newest first
  Result<std::vector<JobRow>> last_runs();                // of each job; at most kJobsMax
  // The run of a report, a diagnosis or a finding must be there.
  Status put_report(const std::string& job, uint32_t run, std::string_view json);
  Result<std::optional<std::string>> report(const std::string& job, uint32_t run);

  // When it was first made, and what people said of it, stay as in an earlier row of this run and id.
  Status put_diagnosis(const DiagnosisRow& diagnosis);
  Result<std::vector<DiagnosisRow>> diagnoses(const DiagnosisQuery& query);  // newest first
  // Was it right or wrong? With its row of audit; kNotFound where there is no such diagnosis. Without a run
  // the last one that has it.
  struct Judgement {
    std::string job, id;
    std::optional<uint32_t> run;
    bool right = true;
    std::string by;
    TimeNs time_ns = kNoTime;
  };
  Status judge(const Judgement& judgement);
  // By kind, over all jobs whose judgements the audit still has.
  Result<std::map<std::string, Judged>> judged();

  Status add_finding(const FindingRow& finding);
  Result<std::vector<FindingRow>> findings(const std::string& job, size_t limit = 1000);  // newest first

  Status add_audit(const AuditRow& row);
  Result<std::vector<AuditRow>> audits(size_t limit = 1000);  // newest first

  // What spoke against a host before `time_ns` counts no more; with its row of audit.
  Status clear_host(const std::string& host, TimeNs time_ns, const std::string& by);
  Result<std::map<std::string, TimeNs>> cleared();

  // Kept when the job is forgotten. Telling it again changes nothing.
  Status add_device_fault(const DeviceFault& fault);
  // The diagnosis was taken back.
  Status remove_device_faults(const std::string& job, uint32_t run, const std::string& diagnosis);
  // What counts still, oldest first: nobody refuted it, and its host was not cleared. Of the devices that
  // this run of the job accuses or, where none is named, of all.
  Result<std::vector<DeviceFault>> device_faults(const std::string& job = "", uint32_t run = 0);

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
