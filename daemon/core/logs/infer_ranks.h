// Ranks of processes whose lines state only their number on a host. Pure.
#pragma once

#include <vector>

#include "core/logs/job_log.h"

namespace culprit::logs {

// A launcher numbers its processes on a host, and writes a folder for each ("attempt_0/3"): where lines of
// two at least tell both numbers, their difference gives the ranks of those whose lines tell one.
void infer_ranks(std::vector<WriterStats>& writers);

}  // namespace culprit::logs
