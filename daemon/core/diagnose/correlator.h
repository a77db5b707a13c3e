// Combines the findings of all detectors into diagnoses: cause and echo, hosts, iteration and stage,
// confidence, remedy. A report thus has one order and one confidence scale. Pure.
#pragma once

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "model/report.h"

namespace culprit::diagnose {

// Fills in the report's job, verdict, missing, diagnoses, suspects, indicating, iterations and activity. The
// input is the findings of all detectors (analysis.findings), and the scores of templates if no finding
// carries a diagnosis.
// `live`: more lines may follow, so the last lines prove nothing.
void correlate(const detect::View& view, const detect::Analysis& analysis, bool live, Report& report);

}  // namespace culprit::diagnose
