// Reads Flight Recorder dumps into an engine: several threads read, the engine takes them in the order of the
// list, whatever the number of threads. Blocks.
#pragma once

#include <vector>

#include "app/pipeline.h"

namespace culprit::app {

// Gives what could not be read, or not to its end. Those that progress.stop leaves are not told.
std::vector<Problem> read_flights(const std::vector<LogFile>& files, unsigned threads, core::Engine& engine,
                                  ReadProgress& progress);

}  // namespace culprit::app
