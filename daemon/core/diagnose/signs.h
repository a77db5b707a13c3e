// Signs: the lines of known kinds of fault and the exceptions in a job, one finding for each template, with
// what they say. What the job survived, and what healthy jobs have, is none. Pure.
#pragma once

#include <vector>

#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "model/finding.h"

namespace culprit::diagnose {

// What a single line says, for showing while the job runs: nothing is known of its peers yet.
Finding finding_of(const logs::JobLog& log, const logs::FaultLine& line);

std::vector<Finding> find_signs(const detect::View& view, const detect::Analysis& analysis);

}  // namespace culprit::diagnose
