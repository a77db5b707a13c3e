// The index of jobs, one SQLite file in the state folder: each run of a job with its last report, diagnoses
// and findings, people's judgements and clearings, and what healthy jobs taught. The spool is the primary
// data; the index is derived from it, except for what people entered.
//
// One thread owns it (the store's worker). Each call is one transaction, all or nothing. Errors (a full
// disk, a locked file) leave it usable. A damaged file is renamed at the start, and a new one created.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "store/database.h"

namespace culprit::store {

enum class JobState : uint8_t { kRunning = 0, kEndedWell = 1, kFailed = 2, kEnded = 3 };
std::string_view name(JobState state);  // "running", "ended_well", "failed", "ended"

// Unknown times are kNoTime. A job with a repeated id has several runs, numbered from 0.
struct JobRow {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  TimeNs first_ns = kNoTime, last_ns = kNoTime, ended_ns = kNoTime;
  std::optional<uint64_t> hosts, lines;  // counts
  std::string verdict;                   // its title; empty: none
  std::string headline;                  // of the last report; empty: none yet, or of an older daemon
};

struct DiagnosisRow {
  std::string job;
  uint32_t run = 0;
  std::string id;
  std::string kind;                              // equal for the same fault: "rule:nvidia.xid.79"
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // first and last occurrence
  std::string json;
  std::string state;  // "open", "withdrawn", "confirmed", "refuted"
  std::string judged_by;
  TimeNs judged_ns = kNoTime;
};

// People's judgements of one kind of diagnosis; the last judgement of each diagnosis counts.
struct Judged {
  uint64_t hits = 0, right = 0;
  std::string by;        // author of the last judgement
  std::string first_by;  // who confirmed one of this kind first; empty: none
  TimeNs first_ns = kNoTime;
};

struct FindingRow {
  std::string job;
  uint32_t run = 0;
  std::string id;  // stable per finding: a repeated finding is stored once
  TimeNs time_ns = kNoTime;
  std::string json;
};

struct AuditRow {
  TimeNs time_ns = kNoTime;
  std::string who, what, subject, detail;  // "uid 1000", "confirm", "job/d1", its kind
};

// A device that one diagnosis suspects of data corruption.
struct DeviceFault {
  std::string device;  // its UUID or serial number if known, else its host and local number
  std::string host;    // its host at that time
  std::string job;
  uint32_t run = 0;
  std::string diagnosis;  // its id
  std::optional<int64_t> step;
  TimeNs time_ns = kNoTime;
};

// What one run taught the pool of its owner.
struct TaughtRow {
  std::string job;
  uint32_t run = 0;
  std::string owner, why;
  TimeNs time_ns = kNoTime;
  uint64_t forms = 0;
  std::string text;  // detect::Pool::save()
};

// A run entered the pool of its owner, or a person took it back.
struct PoolLogRow {
  TimeNs time_ns = kNoTime;
  std::string what;  // "learned", "forgotten"
  std::string job;
  uint32_t run = 0;
  std::string owner, why;
  uint64_t forms = 0;
  std::string who;      // took it back; else empty
  bool counts = false;  // the run is in the pool now
};

struct DiagnosisQuery {
  std::string job;              // empty: all
  std::optional<uint32_t> run;  // none: all
  TimeNs since_ns = kNoTime;
  size_t limit = 1000;
  bool judged = false;  // only judged ones
};

// Limits of rows. The oldest are deleted first; of jobs, ended ones first.
constexpr size_t kJobsMax = 10'000;            // runs of all jobs: a year with 27 a day
constexpr size_t kRunsPerJobMax = 100;         // a job that fails every hour evicts no other for four days
constexpr size_t kDiagnosesPerRunMax = 1'000;  // further ones add nothing for a job
constexpr size_t kFindingsPerRunMax = 10'000;  // some 5 MB
constexpr size_t kAuditMax = 100'000;          // people's actions: enough for years
constexpr size_t kPoolLogMax = 10'000;         // any user's jobs make rows: apart from people's actions
constexpr size_t kDeviceFaultsMax = 10'000;    // 100,000 devices, one of ten suspected

class Index {
 public:
  // Creates it or migrates an older one. An error if it cannot be read or written, or if a newer version of
  // the program wrote it.
  static Result<std::unique_ptr<Index>> open(const std::string& path);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // New path of a file found damaged at the start; empty: it was sound.
  const std::string& moved_aside() const { return database_.moved_aside(); }
  // SQLite found damage after the start: the next open() renames the file.
  bool damaged() const { return database_.damaged(); }

  Status upsert_job(const JobRow& job);
  // The last run, unless one is given.
  Result<std::optional<JobRow>> job(const std::string& id, std::optional<uint32_t> run = {});
  Result<std::vector<JobRow>> jobs(size_t limit = 1000);  // all runs, newest first
  Result<std::vector<JobRow>> last_runs();                // of each job; at most kJobsMax
  // The run of a report, diagnosis or finding must exist.
  Status put_report(const std::string& job, uint32_t run, std::string_view json);
  Result<std::optional<std::string>> report(const std::string& job, uint32_t run);

  // Keeps the first time and the judgement of an earlier row with this run and id.
  Status put_diagnosis(const DiagnosisRow& diagnosis);
  Result<std::vector<DiagnosisRow>> diagnoses(const DiagnosisQuery& query);  // newest first
  // Runs with a diagnosis that may be their verdict: announced as one and neither withdrawn nor refuted, or
  // confirmed; newest first, a run once for each. A few others may be among them.
  struct Leading {
    std::string job;
    uint32_t run = 0;
    TimeNs first_ns = kNoTime;
  };
  Result<std::vector<Leading>> leading(size_t limit);
  Result<std::vector<DiagnosisRow>> leading_of(const std::string& job, uint32_t run);  // newest first
  // Runs with a diagnosis that a person judged.
  using JobRunId = std::pair<std::string, uint32_t>;
  Result<std::vector<JobRunId>> judged_runs();
  // Runs whose diagnoses were written or judged since the last call; `all`: more than are remembered.
  struct Changed {
    bool all = false;
    std::set<JobRunId> runs;
  };
  Changed drain_changed() { return std::exchange(changed_, {}); }
  // Stores a judgement, with a row of audit. kNotFound if there is no such diagnosis. Without a run: the last
  // run with it.
  struct Judgement {
    std::string job, id;
    std::optional<uint32_t> run;
    bool right = true;
    std::string by;
    TimeNs time_ns = kNoTime;
    std::string rule = {};  // made of the diagnosis: the judgement counts for the rule's kind too
  };
  Status judge(const Judgement& judgement);
  // By kind, over all judgements that the audit still has.
  Result<std::map<std::string, Judged>> judged();

  // A refused row does not keep the others out.
  Status add_findings(std::span<const FindingRow> findings);
  Result<std::vector<FindingRow>> findings(const std::string& job, size_t limit = 1000);  // newest first

  Status add_audit(const AuditRow& row);
  Result<std::vector<AuditRow>> audits(size_t limit = 1000);  // newest first

  // Evidence against the host before `time_ns` no longer counts; with a row of audit.
  Status clear_host(const std::string& host, TimeNs time_ns, const std::string& by);
  Result<std::map<std::string, TimeNs>> cleared();

  // Stays when the job is deleted. Repeating it has no effect.
  Status add_device_fault(const DeviceFault& fault);
  // The diagnosis was withdrawn.
  Status remove_device_faults(const std::string& job, uint32_t run, const std::string& diagnosis);
  // Faults that still count, oldest first: not refuted, host not cleared. Of the devices that this run of the
  // job accuses, or of all if no run is given.
  Result<std::vector<DeviceFault>> device_faults(const std::string& job = "", uint32_t run = 0);

  // Adds what a run taught, in place of an earlier row of it, with a row of the log; removes the runs `gone`.
  Status teach(const TaughtRow& row, const std::vector<JobRunId>& gone);
  Result<std::vector<TaughtRow>> taught();  // oldest first
  // Removes what the runs of a job taught, with rows of the log and of audit. kNotFound: nothing.
  Status forget_taught(const std::string& job, TimeNs time_ns, const std::string& by);
  Result<std::vector<PoolLogRow>> pool_log(size_t limit = 1000);  // newest first

 private:
  explicit Index(const std::string& path);
  template <class Work>
  Status in_transaction(const Work& work);
  Status write_audit(const AuditRow& row);
  void note_changed(const std::string& job, uint32_t run);
  Status hold_bounds();

  Database database_;
  uint64_t writes_ = 0;
  Changed changed_;
  ThreadOwner owner_;
};

}  // namespace culprit::store
