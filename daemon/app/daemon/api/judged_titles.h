// The verdicts of runs whose diagnoses people judged, for lists of jobs. A verdict is computed once, and
// again when a diagnosis of the run changes.
//
// Thread: the store's worker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "records/records.h"

namespace culprit::app {

class JudgedTitles {
 public:
  using Run = records::JobRunId;
  // Titles of the remaining verdicts for judged runs among `listed`; nothing: no verdict remains.
  using Titles = std::map<Run, std::optional<std::string>>;
  struct Answer {
    Titles titles;
    bool complete = true;  // false: call again; a call computes at most kRunsAtOnce runs
  };
  Answer of(records::Records& index, const std::set<Run>& listed);
  static constexpr size_t kRunsAtOnce = 16;

 private:
  Titles known_;
};

// The title of a run's verdict after people judged its diagnoses. `of_run`: all diagnoses of the run.
std::optional<std::string> judged_title(const std::vector<Verdict>& of_run);

}  // namespace culprit::app
