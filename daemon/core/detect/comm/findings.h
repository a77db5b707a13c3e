// Report of a communication trace: irregular steps, a hang, the curve of step times, and findings for
// diagnoses. Pure.
#pragma once

#include <vector>

#include "core/detect/comm/announced.h"
#include "core/detect/comm/host_load.h"
#include "core/detect/comm/trace.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::comm {

// A rank that skipped an operation, according to its sequence numbers. This is a fault only if the job
// stopped there or other evidence agrees.
struct RankLeftOut {
  Finding finding;
  bool stopped = false;
};

struct TraceFindings {
  std::vector<Finding> findings;
  std::vector<Irregularity> irregularities;  // by step
  std::optional<Hang> hang;
  CommSteps steps;
  std::vector<std::string> missing;  // open questions, if no rank is named
  std::optional<RankLeftOut> left_out;
  std::vector<StepsWanted> wanted;  // to request from hosts that send only summaries
};

// Reports of ranks about their hosts and phases. Borrowed; null: none.
struct RankContext {
  const HostLoad* load = nullptr;
  const Announced* phases = nullptr;
};

// Settles the trace first.
TraceFindings report_findings(CommTrace& trace, Stopped stopped = Stopped::kRecordsEnd,
                              const RankContext& context = {});

// Adds facts from the trace that the job's logs do not contain.
void add_summary(const CommTrace& trace, JobSummary& job);

}  // namespace culprit::comm
