// From findings to diagnoses: which of the known signs is the cause, which is its echo, on which hosts, at
// which iteration and stage, how sure, and what to do. Every detector's result comes in here, so that a
// report has one order and one notion of confidence. Pure.
#pragma once

#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "model/report.h"

namespace culprit::diagnose {

// Fills in the report's job, verdict, missing, diagnoses, suspects, indicating, iterations and activity from
// the findings of all detectors (analysis.findings), and from the templates' scores where no finding carries
// a diagnosis.
void correlate(const detect::View& view, const detect::Analysis& analysis, Report& report);

}  // namespace culprit::diagnose
