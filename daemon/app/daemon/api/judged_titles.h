// The verdicts of runs whose diagnoses people judged, for lists of jobs. They are computed once and again
// when a diagnosis of the run changes.
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
  // The title of the verdict that is left; nothing: none is. Of the judged runs among `listed`.
  using Titles = std::map<Run, std::optional<std::string>>;
  struct Answer {
    Titles titles;
    bool complete = true;  // false: call again; at most kRunsAtOnce runs are computed in a call
  };
  Answer of(records::Records& index, const std::set<Run>& listed);
  static constexpr size_t kRunsAtOnce = 16;

 private:
  Titles known_;
};

// The title of a run's verdict after people judged its diagnoses. `of_run`: all of the run.
std::optional<std::string> judged_title(const std::vector<Verdict>& of_run);

}  // namespace culprit::app
