// The reports of jobs that members of a cluster published, as this member read them last, and whether such a
// report or the own knowledge of a job is answered. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "store/postgres/report_store.h"

namespace culprit::app {

// What is compared of two members' knowledge of a job: members of its item in GET /v1/jobs.
struct RunFacts {
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  uint64_t hosts = 0, lines = 0;
  bool running = false, has_verdict = false;
};
RunFacts facts_of(const nlohmann::json& listed);

struct PublishedReport {
  store::postgres::ReportRow row;
  nlohmann::json listed;
  RunFacts facts;
  size_t bytes() const { return row.job.size() + 3 * row.listed.size() + row.packed.size() + 256; }
};
// Nothing: its item cannot be read.
std::optional<PublishedReport> published_report(store::postgres::ReportRow row);

// Of what a member knows of a job, compared with what another member published.
enum class Coverage : uint8_t {
  kOlder,   // an earlier run, which ended before the published one began
  kBehind,  // the same run, and what was published says more
  kAsGood,  // the same run, or a later one
};
// A later run is always as good. A member that does not own the job is behind the owner. A new owner is
// behind the one before until it has a verdict too, or has read as much; `waited`: it had the time to do so,
// so a job that ran then is its own.
struct Asking {
  bool is_owner = false, waited = false;
};
Coverage coverage(const RunFacts& own, const RunFacts& published, Asking asking);

class PublishedReports {
 public:
  static constexpr size_t kBytesMost = 64 << 20;

  // In place of what was known of the job. The oldest ones go where there are too many bytes.
  void put(PublishedReport report);
  // Those that are not in `keys` are no longer there.
  void keep_only(const std::vector<store::postgres::ReportStore::Key>& keys);

  // `uid`: a reader who sees only the reports of this user's jobs.
  const PublishedReport* find(const std::string& job, std::optional<uint32_t> uid = {}) const;
  const std::map<std::string, PublishedReport>& all() const { return reports_; }  // by report_key()
  size_t bytes() const { return bytes_; }
  uint64_t dropped() const { return dropped_; }

 private:
  void remove(std::map<std::string, PublishedReport>::iterator at);

  std::map<std::string, PublishedReport> reports_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
};
inline bool may_see(const PublishedReport& report, std::optional<uint32_t> uid) {
  return !uid || report.row.uid == uid;
}

}  // namespace culprit::app
