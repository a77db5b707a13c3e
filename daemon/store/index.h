// The records of jobs in one SQLite file of the state folder: each run with its last report, diagnoses and
// findings, people's judgements and clearings, and what healthy jobs taught. The spool is the primary data;
// the index is derived from it, except for what people entered.
//
// One thread owns it (the store's worker). Each call is one transaction, all or nothing. Errors (a full
// disk, a locked file) leave it usable. A damaged file is renamed at the start, and a new one created.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "records/records.h"
#include "store/database.h"
#include "store/index_pools.h"

namespace culprit::store {

// Row limits. The oldest rows are deleted first; among jobs, ended ones first.
constexpr size_t kJobsMax = 10'000;            // runs of all jobs: a year with 27 a day
constexpr size_t kRunsPerJobMax = 100;         // a job that fails every hour evicts no other for four days
constexpr size_t kDiagnosesPerRunMax = 1'000;  // further ones add nothing for a job
constexpr size_t kFindingsPerRunMax = 10'000;  // some 5 MB
constexpr size_t kAuditMax = 100'000;          // people's actions: enough for years
// Separate from people's actions, because every user's jobs add rows.
constexpr size_t kPoolLogMax = 10'000;
constexpr size_t kUnreadableMax = 10'000;    // rows that are remembered as unreadable
constexpr size_t kUnsharedMax = 10'000;      // judgements while the cluster's database is away
constexpr size_t kDeviceFaultsMax = 10'000;  // 100,000 devices, one of ten suspected

class Index : public records::Records {
 public:
  // Creates it or migrates an older one. An error if it cannot be read or written, or if a newer version of
  // the program wrote it.
  static Result<std::unique_ptr<Index>> open(const std::string& path);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // New path of a file that was damaged at the start; empty if it was sound.
  const std::string& moved_aside() const { return database_.moved_aside(); }
  // True if SQLite found damage after the start; the next open() renames the file.
  bool damaged() const { return database_.damaged(); }
  // Number of reports and diagnoses with JSON of another version that this one cannot read, found since the
  // start and not rewritten since. Any thread.
  uint64_t unreadable() const { return unreadable_count_; }

  Status upsert_job(const records::JobRow& job) override;
  Result<std::optional<records::JobRow>> job(const std::string& id,
                                             std::optional<uint32_t> run = {}) override;
  Result<std::vector<records::JobRow>> jobs(size_t limit = records::kRowsListed) override;
  Result<std::vector<records::JobRow>> last_runs() override;
  Status put_report(const std::string& job, uint32_t run, const Report& report) override;
  Result<std::optional<Report>> report(const std::string& job, uint32_t run) override;

  Status put_verdict(const Verdict& verdict) override;
  Result<std::vector<Verdict>> verdicts(const records::VerdictQuery& query) override;
  Result<std::vector<records::Leading>> leading(size_t limit) override;
  Result<std::vector<Verdict>> leading_of(const std::string& job, uint32_t run) override;
  Result<std::vector<records::JobRunId>> judged_runs() override;
  Result<std::vector<records::JobRunId>> changed_runs(TimeNs since_ns) override;
  records::Changed drain_changed() override { return std::exchange(changed_, {}); }
  Result<records::JudgedRun> judge(const records::Judgement& judgement) override;
  Result<std::vector<records::Judgement>> unshared(std::span<const records::Judgement> shared) override;
  Result<std::map<std::string, records::Judged>> judged() override;

  Status add_findings(std::span<const records::FindingRow> findings) override;
  Result<std::vector<records::FindingRow>> findings(const std::string& job,
                                                    size_t limit = records::kRowsListed) override;
  Status add_audit(const records::AuditRow& row) override;
  Result<std::vector<records::AuditRow>> audits(size_t limit = records::kRowsListed) override;
  Status clear_host(const std::string& host, TimeNs time_ns, const std::string& by) override;
  Result<std::map<std::string, TimeNs>> cleared() override;

  Status add_device_fault(const records::DeviceFault& fault) override;
  Status remove_device_faults(const std::string& job, uint32_t run, const std::string& diagnosis) override;
  Result<std::vector<records::DeviceFault>> device_faults(const std::string& job = "",
                                                          uint32_t run = 0) override;
  records::PoolRecords& pools() override { return pools_; }

 private:
  // Number of writes between two checks of the row limits: counting the rows costs more than writing one.
  static constexpr uint64_t kBoundsEvery = 256;

  explicit Index(const std::string& path);
  template <class Work>
  Status in_transaction(const Work& work);
  Status write_audit(const records::AuditRow& row);
  void note_changed(const std::string& job, uint32_t run);
  template <class Row>
  Verdict verdict_of(const Row& row);
  // `id`: of a diagnosis; empty for the report of the run.
  void note_read(bool read, const std::string& job, uint32_t run, const std::string& id);
  Status hold_bounds();

  Database database_;
  IndexPools pools_;
  uint64_t writes_ = 0;
  records::Changed changed_;
  std::set<std::tuple<std::string, uint32_t, std::string>> unreadable_;
  std::atomic<uint64_t> unreadable_count_ = 0;
  ThreadOwner owner_;
};

template <class Work>
Status Index::in_transaction(const Work& work) {
  CULPRIT_CHECK(owner_.here());
  const Status done = database_.in_transaction(work);
  if (!done || ++writes_ < kBoundsEvery) return done;
  writes_ = 0;
  return hold_bounds();
}

}  // namespace culprit::store
