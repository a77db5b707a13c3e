// The list of jobs for a page: jobs that need a person come first, each with a short summary of its verdict.
// Only the verdicts on the page are read from the index; a search also reads verdicts of runs whose own texts
// lack the words. Pure.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/daemon/api/api_json.h"
#include "records/records.h"
#include "serve/api.h"

namespace culprit::app {

// Limit of verdicts used for the order of the list; further runs are sorted by their own time.
constexpr size_t kNowVerdicts = 20'000;

using NowRun = std::pair<std::string, uint32_t>;             // a job and its run
using NowVerdicts = std::map<NowRun, std::vector<Verdict>>;  // Records::leading_of

// Steps: undecided(), has_words() of each, decide(), shown(), page(). has_words() may be called on another
// thread while the list does not change.
class NowList {
 public:
  // `jobs`: the items of GET /v1/jobs. `now`: wall clock; a job that failed within the last day precedes the
  // jobs that run well.
  NowList(json jobs, const std::vector<records::Leading>& leading, serve::NowQuery query, TimeNs now);
  ~NowList();
  NowList(const NowList&) = delete;

  // Runs that match the query only if their verdicts contain its words.
  std::vector<NowRun> undecided() const;
  bool has_words(const NowRun& run, const std::vector<Verdict>& verdicts) const;
  // `found`: the undecided runs that contain the words.
  void decide(const std::set<NowRun>& found);
  // Runs of the page whose verdicts page() shows.
  std::vector<NowRun> shown() const;
  // {"items", "total", "counts": {"all", "running", "failed", "ended", "verdict"}}. `total` counts jobs that
  // match the query's words and state, `counts` jobs that match its words.
  json page(const NowVerdicts& verdicts) const;

 private:
  struct Row;
  std::span<const Row> on_page() const;

  json jobs_;
  serve::NowQuery query_;
  std::vector<Row> rows_;
  std::map<NowRun, std::vector<std::string>> missing_;  // query words that are missing in a run's own texts
  std::map<std::string, size_t> counts_ = {
      {"all", 0}, {"running", 0}, {"failed", 0}, {"ended", 0}, {"verdict", 0}};
};

}  // namespace culprit::app
