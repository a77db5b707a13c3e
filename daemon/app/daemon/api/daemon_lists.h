// The lists of the API, from the jobs of the engine, the index and the spool. Borrows the parts. Thread: the
// loop's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/judged_titles.h"
#include "app/daemon/api/listed.h"
#include "app/daemon/recover/shared_reports.h"

namespace culprit::app {

struct AgentParts;

class DaemonLists final : public Lists {
 public:
  explicit DaemonLists(const AgentParts& parts) : parts_(parts) {}

  void jobs_of(Scope scope, Answer answer) override;
  void report_of(const serve::ReportQuery& query, Scope scope, Answer answer) override;
  void diagnoses_of(const serve::DiagnosisQuery& query, KeepJob keep, Answer answer) override;
  void suspects_of(const std::optional<std::string>& job, KeepJob keep, Answer answer) override;
  void source_rows(const std::optional<std::string>& job, SourceRows rows) override;
  // Adds the sources of other hosts after this host's sources.
  using MoreSources =
      std::function<void(const std::optional<std::string>& job, std::vector<SourceRow> own, SourceRows)>;
  void set_more_sources(MoreSources more) { more_sources_ = std::move(more); }

  using Jobs = std::vector<ListedJob>;
  // The jobs of the engine, after all batches that it has received.
  void live_jobs(std::function<void(std::shared_ptr<Jobs>)> done);
  // Adds the runs of the index, in the order of GET /v1/jobs.
  void add_stored_jobs(std::shared_ptr<Jobs> jobs, std::function<void()> done);
  // The items of GET /v1/jobs; with those that other members of a cluster published.
  json items_of(const Jobs& jobs, std::optional<uint32_t> uid = {}) const;
  // What other members get.
  OwnReports own_reports();

 private:
  struct OwnAnswer {
    Result<std::string> report;
    bool cut = false;
    std::optional<ListedJob> last;  // the last run; only with `shared`
  };
  // The report as this daemon knows it. `bytes_max`: its lists are cut where it is larger; empty: it still
  // is.
  void own_report(const serve::ReportQuery& query, size_t bytes_max, std::function<void(OwnAnswer)> done);
  json cluster_of(const std::string& job) const;
  struct StoredJobs;
  void finish_judged(const std::shared_ptr<StoredJobs>& found, const std::shared_ptr<Jobs>& jobs,
                     const std::function<void()>& done);
  static void merge(const StoredJobs& found, Jobs& jobs);

  const AgentParts& parts_;
  MoreSources more_sources_;
  std::shared_ptr<JudgedTitles> judged_ = std::make_shared<JudgedTitles>();  // used on the store's worker
};

}  // namespace culprit::app
