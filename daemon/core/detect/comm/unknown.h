// What a trace that names nobody leaves open, in sentences: steps that are slower than the job's own best, a
// stage that works for longer than the others and that one host runs alone. Pure.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

std::vector<std::string> find_unknowns(const Cluster& cluster, const std::deque<StepResult>& steps);

}  // namespace culprit::comm
