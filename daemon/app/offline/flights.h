// Reads Flight Recorder dumps into an engine. Several threads read; the engine gets the dumps in the order of
// the list. Blocks.
#pragma once

#include <vector>

#include "app/offline/pipeline.h"

namespace culprit::app {

// Returns reading problems. Dumps skipped because of progress.stop are not reported.
std::vector<Problem> read_flights(const std::vector<LogFile>& files, unsigned threads, core::Engine& engine,
                                  ReadProgress& progress);

}  // namespace culprit::app
