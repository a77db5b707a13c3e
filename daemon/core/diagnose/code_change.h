// Whether the program changed since the last good run, by job.toml's [code]. Pure; any thread.
#pragma once

#include "model/report.h"
#include "model/topology.h"

namespace culprit::diagnose {

// Adds the change to the reasons of the leading diagnosis if the program can be its cause: not for a machine,
// a service, or chance.
void add_code_change(const JobFile& job, Report& report);

}  // namespace culprit::diagnose
