// The records of jobs, behind one interface (store/index.h: one SQLite file). Each call is one transaction,
// all or nothing. After an error they stay usable.
//
// One thread uses them (the store's worker); a call may wait for the disk.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/report.h"
#include "model/verdict.h"
#include "records/pool_records.h"
#include "records/rows.h"

namespace culprit::records {

class Records {
 public:
  virtual ~Records() = default;

  virtual Status upsert_job(const JobRow& job) = 0;
  // The last run, unless one is given.
  virtual Result<std::optional<JobRow>> job(const std::string& id, std::optional<uint32_t> run = {}) = 0;
  virtual Result<std::vector<JobRow>> jobs(size_t limit = kRowsListed) = 0;  // all runs, newest first
  virtual Result<std::vector<JobRow>> last_runs() = 0;                       // of each job; a bounded number
  // The run of a report, diagnosis or finding must exist.
  virtual Status put_report(const std::string& job, uint32_t run, const Report& report) = 0;
  virtual Result<std::optional<Report>> report(const std::string& job, uint32_t run) = 0;

  // Keeps the first time and the judgement of an earlier one with this run and id.
  virtual Status put_verdict(const Verdict& verdict) = 0;
  virtual Result<std::vector<Verdict>> verdicts(const VerdictQuery& query) = 0;  // newest first
  // Runs with a diagnosis that may be their verdict: announced as one and neither withdrawn nor refuted, or
  // confirmed; newest first, a run once for each.
  virtual Result<std::vector<Leading>> leading(size_t limit) = 0;
  virtual Result<std::vector<Verdict>> leading_of(const std::string& job, uint32_t run) = 0;  // newest first
  virtual Result<std::vector<JobRunId>> judged_runs() = 0;
  // Runs with a diagnosis that was stored or judged since.
  virtual Result<std::vector<JobRunId>> changed_runs(TimeNs since_ns) = 0;
  virtual Changed drain_changed() = 0;  // since the last call
  // Stores a judgement, with a row of audit. kNotFound if there is no such diagnosis, unless another member
  // has it (Judgement::seen).
  virtual Result<JudgedRun> judge(const Judgement& judgement) = 0;
  // Judgements that the other members do not have yet, the oldest first, a bounded number. `shared`: they
  // have these now.
  virtual Result<std::vector<Judgement>> unshared(std::span<const Judgement> shared) = 0;
  // By kind, over all judgements that the audit still has.
  virtual Result<std::map<std::string, Judged>> judged() = 0;

  // A refused row does not keep the others out.
  virtual Status add_findings(std::span<const FindingRow> findings) = 0;
  virtual Result<std::vector<FindingRow>> findings(const std::string& job,
                                                   size_t limit = kRowsListed) = 0;  // newest first

  virtual Status add_audit(const AuditRow& row) = 0;
  virtual Result<std::vector<AuditRow>> audits(size_t limit = kRowsListed) = 0;  // newest first

  // Evidence against the host before `time_ns` no longer counts; with a row of audit.
  virtual Status clear_host(const std::string& host, TimeNs time_ns, const std::string& by) = 0;
  virtual Result<std::map<std::string, TimeNs>> cleared() = 0;

  // Stays when the job is deleted. Repeating it has no effect.
  virtual Status add_device_fault(const DeviceFault& fault) = 0;
  // The diagnosis was withdrawn.
  virtual Status remove_device_faults(const std::string& job, uint32_t run, const std::string& diagnosis) = 0;
  // Faults that still count, oldest first: not refuted, host not cleared. Of the devices that this run of the
  // job accuses, or of all if the job is empty.
  virtual Result<std::vector<DeviceFault>> device_faults(const std::string& job = "", uint32_t run = 0) = 0;

  virtual PoolRecords& pools() = 0;
};

}  // namespace culprit::records
