#include "cli/jobs_table.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/narrative.h"
#include "cli/remote.h"

namespace culprit::cli {
namespace {

constexpr size_t kFoundBytes = 160;

std::string found_in(const Report& report) {
  const Diagnosis* d = leading(report);
  const std::string out = shorten(report.headline, kFoundBytes);
  return d ? out + " (" + percent(d->confidence) + ")" : out;
}

}  // namespace

std::string state_of_job(const Json& job) {
  const std::string state = text_field(job, "state");
  const bool hangs = job.value("hangs", Json()) == Json(true);
  const std::string shown = state == "running" && hangs ? "hangs" : state;
  const std::string attempt = text_field(job, "attempt"), of = text_field(job, "attempts");
  if (attempt == "-" || of == "-") return shown;
  const std::string member = text_field(job, "member"), successor = text_field(job, "successor");
  return fmt::format("{}, attempt {} of {}{}", shown, attempt, of,
                     successor != "-" && state == "running" ? ", waits for job " + successor
                     : member != "-"                        ? ", as job " + member
                                                            : "");
}

std::string found_in_job(const Json& job) {
  const std::string headline = text_field(job, "headline");
  return headline == "-" ? text_field(job, "verdict") : headline;
}

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
