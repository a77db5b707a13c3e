// The verdict of a run as a fault for alerts. Pure; any thread.
#pragma once

#include "app/daemon/alerts/run_verdict.h"
#include "model/alert.h"

namespace culprit::app {

// Precondition: the run has a verdict.
alert::Fault fault_of(const RunVerdict& of_run);

}  // namespace culprit::app
