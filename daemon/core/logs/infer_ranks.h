// Infers ranks of processes whose lines have only the local number. Pure.
#pragma once

#include <vector>

#include "core/logs/job_log.h"

namespace culprit::logs {

// A launcher numbers its processes on a host and creates a folder for each ("attempt_0/3"). If lines of two
// or more processes have both a rank and a local number, the difference gives the other processes' ranks.
void infer_ranks(std::vector<WriterStats>& writers);

}  // namespace culprit::logs
