#include "cli/jobs_table.h"

#include "base/text.h"
#include "cli/narrative.h"
#include "cli/remote.h"

namespace culprit::cli {
namespace {

constexpr size_t kFoundBytes = 100;

std::string found_in(const Report& report) {
  const Diagnosis* d = leading(report);
  if (!d) return "-";
  std::string out = title_of(*d);
  if (!d->hosts.empty() && d->hosts[0].host && out.find(*d->hosts[0].host) == std::string::npos)
    out += " on " + places(d->hosts, 2);
  return shorten(out, kFoundBytes) + " (" + percent(d->confidence) + ")";
}

}  // namespace

std::string state_of(const Report& report) {
  const Diagnosis* d = leading(report);
  switch (outcome(report)) {
    case Outcome::kVerdict:
      return d->symptom == Symptom::kHang ? "hangs" : d->symptom == Symptom::kSlowdown ? "slow" : "failed";
    case Outcome::kInconclusive:
      return "unclear";
    case Outcome::kNoticed:
      return report.hang ? "hangs" : "odd";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kHealthy:
      return "well";
    case Outcome::kEmpty:
      break;
  }
  return "empty";
}

std::string jobs_table(const std::vector<JobRow>& jobs, bool color) {
  std::vector<std::vector<std::string>> rows{{"JOB", "HOSTS", "STATE", "FOUND"}};
  for (const JobRow& job : jobs)
    rows.push_back({to_terminal(job.name), std::to_string(job.report->job.hosts), state_of(*job.report),
                    to_terminal(found_in(*job.report))});
  return table(rows, color);
}

}  // namespace culprit::cli
