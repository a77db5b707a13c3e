// The diagnosis that the engine would make of a simulated verdict: the controller reads nothing else.
#pragma once

#include <span>
#include <string>

#include "base/time.h"
#include "core/recover/policy.h"
#include "model/report.h"
#include "sim/cluster/supervisor.h"

namespace culprit::sim {

// `names`: of all hosts.
Diagnosis diagnosis_of(const ClusterVerdict& verdict, std::span<const std::string> names, TimeNs now);
// What the collector knows of the evidence's authors apart from the diagnosis.
recover::Authors authors_of(const ClusterVerdict& verdict);

}  // namespace culprit::sim
