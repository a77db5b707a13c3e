// The list of jobs for a page: those that need a person first, each with what is known of its verdict, in few
// bytes. Only the verdicts of the page are read from the index, and with words to look for those of runs
// whose own texts lack them. Pure.
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

// Verdicts that are known for the order of the list; beyond, a run is listed by its own time.
constexpr size_t kNowVerdicts = 20'000;

using NowRun = std::pair<std::string, uint32_t>;             // a job and its run
using NowVerdicts = std::map<NowRun, std::vector<Verdict>>;  // Records::leading_of

// Steps: undecided(), has_words() of each, decide(), shown(), page(). has_words() may be called on another
// thread while nothing changes the list.
class NowList {
 public:
  // `jobs`: the items of GET /v1/jobs. `now`: wall clock; a job that failed within a day before it comes
  // before the jobs that run well.
  NowList(json jobs, const std::vector<records::Leading>& leading, serve::NowQuery query, TimeNs now);
  ~NowList();
  NowList(const NowList&) = delete;

  // Runs that have the query's words only if their verdicts have them.
  std::vector<NowRun> undecided() const;
  bool has_words(const NowRun& run, const std::vector<Verdict>& verdicts) const;
  // `found`: the undecided ones that have the words.
  void decide(const std::set<NowRun>& found);
  // Runs of the page whose verdicts page() shows.
  std::vector<NowRun> shown() const;
  // {"items", "total", "counts": {"all", "running", "failed", "ended", "verdict"}}. `total` counts the jobs
  // with the query's words and state, `counts` those with its words.
  json page(const NowVerdicts& verdicts) const;

 private:
  struct Row;
  std::span<const Row> on_page() const;

  json jobs_;
  serve::NowQuery query_;
  std::vector<Row> rows_;
  std::map<NowRun, std::vector<std::string>> missing_;  // words that a run's own texts do not have
  std::map<std::string, size_t> counts_ = {
      {"all", 0}, {"running", 0}, {"failed", 0}, {"ended", 0}, {"verdict", 0}};
};

}  // namespace culprit::app
