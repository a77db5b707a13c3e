#include "core/diagnose/proof.h"

#include <fmt/format.h>

#include "base/text.h"

namespace culprit::diagnose {
namespace {

bool found_something(const Report& r) {
  return !r.diagnoses.empty() || !r.suspects.empty() || !r.indicating.empty() || !r.iterations.empty() ||
         !r.irregularities.empty() || !r.numerics.empty() || r.hang;
}

}  // namespace

void request_proof(const Proof& proof, Report& report) {
  if (found_something(report) || !report.missing.empty()) return;
  if (report.job.lines == 0 && report.job.bytes == 0 && report.job.ranks == 0) {
    report.missing.emplace_back("logs of the job, or traces, metrics or dumps of it: nothing was read");
    return;
  }
  if (proof.ended_well) return;
  if (!proof.cut_short.empty()) {
    report.missing.push_back(fmt::format("whether the job went on: its log ends at {}", proof.cut_short));
    return;
  }
  if (proof.progress || proof.traces) return;
  report.missing.push_back(
      fmt::format("lines that tell the job's progress or how it ended: none of the {} read does, so whether "
                  "the job went well is unknown",
                  counted(report.job.lines, "line")));
}

}  // namespace culprit::diagnose
