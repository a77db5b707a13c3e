// Reads from the index which verdict of a run stands, as a fault for alerts. Pure but for the index.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "respond/alert.h"
#include "store/index.h"

namespace culprit::app {

struct RunVerdict {
  std::string job;
  uint32_t run = 0;
  bool known = true;    // the index has diagnoses of the run
  bool settled = true;  // false: a change of the verdict waits for its announcement
  std::optional<respond::Fault> fault;
  std::set<std::string> refuted;  // ids of diagnoses
};

// `rows`: all diagnoses of a run, newest first.
RunVerdict verdict_of(std::vector<store::DiagnosisRow> rows);
RunVerdict verdict_of(store::Index& index, const std::string& job, uint32_t run);

}  // namespace culprit::app
