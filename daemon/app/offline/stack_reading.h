// Reads dumps of stacks. Several threads read; the caller gets the dumps in the order of the list. Blocks.
#pragma once

#include <functional>
#include <vector>

#include "app/offline/pipeline.h"
#include "core/engine.h"
#include "model/topology.h"

namespace culprit::app {

// Called with core::StackInput, StackRefusal and core::NonLogRead, on the caller's thread.
using TakeStacks = std::function<void(core::Input)>;

// `job` maps a host's local rank to the rank. Returns reading problems. Files skipped because of
// progress.stop are not reported.
std::vector<Problem> read_stack_files(const std::vector<LogFile>& files, const JobFile& job, unsigned threads,
                                      const TakeStacks& take, ReadProgress& progress);

}  // namespace culprit::app
