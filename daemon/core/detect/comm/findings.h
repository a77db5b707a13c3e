// What a communication trace says, in the words of a report: irregularities, a hang, the curve of steps, and
// the findings from which diagnoses are made. Pure.
#pragma once

#include <vector>

#include "core/detect/comm/announced.h"
#include "core/detect/comm/host_load.h"
#include "core/detect/comm/trace.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::comm {

// A rank that left out an operation, by its sequence numbers. It is a fault only if the job stopped there or
// other evidence agrees.
struct RankLeftOut {
  Finding finding;
  bool stopped = false;
};

struct TraceFindings {
  std::vector<Finding> findings;
  std::vector<Irregularity> irregularities;  // by step
  std::optional<Hang> hang;
  CommSteps steps;
  std::vector<std::string> missing;  // what remains unknown where no rank is named
  std::optional<RankLeftOut> left_out;
  std::vector<StepsWanted> wanted;  // to be requested from hosts that send sums only
};

// What ranks report about their hosts and phases; borrowed, null where there is nothing.
struct RankContext {
  const HostLoad* load = nullptr;
  const Announced* phases = nullptr;
};

// Settles the trace first.
TraceFindings report_findings(CommTrace& trace, Stopped stopped = Stopped::kRecordsEnd,
                              const RankContext& context = {});

// What the trace knows of the job, where its logs do not.
void add_summary(const CommTrace& trace, JobSummary& job);

}  // namespace culprit::comm
