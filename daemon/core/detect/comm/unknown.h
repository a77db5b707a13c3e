// Open questions of a trace without a culprit, in sentences: steps slower than the job's own best, and a
// pipeline stage with longer self time than the others. Pure.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

std::vector<std::string> find_unknowns(const Cluster& cluster, const std::deque<StepResult>& steps);

}  // namespace culprit::comm
