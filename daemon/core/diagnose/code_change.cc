#include "core/diagnose/code_change.h"

#include <fmt/format.h>

namespace culprit::diagnose {

void add_code_change(const JobFile& job, Report& report) {
  if (!report.verdict || !job.revision || !job.last_good || *job.revision == *job.last_good) return;
  Diagnosis& lead = report.diagnoses[*report.verdict];
  if (lead.restart.kind != Restart::kNever && lead.restart.kind != Restart::kOlder) return;
  lead.why.push_back(fmt::format("the program changed since the last good run: revision {} then, {} now",
                                 *job.last_good, *job.revision));
}

}  // namespace culprit::diagnose
