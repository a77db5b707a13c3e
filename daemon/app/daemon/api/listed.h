// The rows of the API's lists, as values. A view of one user (own_view.h) selects rows and fields of these
// values. Only the functions below convert the selection to JSON, so no reader sees data without a field in a
// row.
//
// Plain values; pure.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/jobs/live_event.h"
#include "base/principal.h"
#include "base/time.h"
#include "model/piece.h"
#include "records/rows.h"
#include "serve/api.h"

namespace culprit::app {

// A source of GET /v1/sources.
struct SourceRow {
  std::string job, host, path;  // job: empty for sources without a job
  OriginKind kind = OriginKind::kFile;
  uint64_t bytes = 0, lost_bytes = 0;
  TimeNs first_ns = kNoTime;
  std::optional<Principal> writer;
  std::optional<uint32_t> owner;  // the only uid that wrote its bytes; none: unknown
  std::optional<uint32_t> pid;
  bool ended = false;
};
nlohmann::json to_json(const SourceRow& row);
nlohmann::json to_json(const std::vector<SourceRow>& rows);  // {"items": [ … ]}

// A run of GET /v1/jobs: a running job, or a row of the records.
struct ListedJob {
  std::variant<LiveJobSummary, records::JobRow> of;
  std::optional<std::string> verdict;  // title of the verdict after people's judgements

  explicit ListedJob(LiveJobSummary job) : of(std::move(job)), verdict(std::get<0>(of).verdict) {}
  explicit ListedJob(records::JobRow row) : of(std::move(row)) {
    if (const auto& title = std::get<1>(of).verdict; !title.empty()) verdict = title;
  }
  records::JobRunId run() const;
  TimeNs first_ns() const;
};
nlohmann::json to_json(const ListedJob& job);

// For readers who may see every job.
inline bool every_job(const std::string&) { return true; }

// What a reader sees: jobs of this daemon by their id, and of what other members of a cluster published the
// reports of one user's jobs; without a user all of them. `own` may be called on another thread.
struct Scope {
  serve::ApiSource::KeepJob own = every_job;
  std::optional<uint32_t> uid = {};
};

// The lists that a view of one user narrows. Each answer arrives on the loop.
class Lists {
 public:
  virtual ~Lists() = default;
  using Answer = serve::ApiSource::Answer;
  using KeepJob = serve::ApiSource::KeepJob;

  virtual void jobs_of(Scope scope, Answer answer) = 0;
  virtual void report_of(const serve::ReportQuery& query, Scope scope, Answer answer) = 0;
  // The lists with the rows of jobs for which `keep` returns true. `keep` may be called on another thread.
  virtual void diagnoses_of(const serve::DiagnosisQuery& query, KeepJob keep, Answer answer) = 0;
  virtual void suspects_of(const std::optional<std::string>& job, KeepJob keep, Answer answer) = 0;
  // All rows, in the order of the list.
  using SourceRows = std::function<void(Result<std::vector<SourceRow>>)>;
  virtual void source_rows(const std::optional<std::string>& job, SourceRows rows) = 0;
};

}  // namespace culprit::app
