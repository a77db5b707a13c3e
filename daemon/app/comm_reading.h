// Reads communication traces into an engine: of all files a piece at a time, the one that is furthest behind
// first, so that hosts come to the same steps together; another thread reads ahead. The engine sees the same
// records in the same order whatever the number of threads. Blocks.
#pragma once

#include <vector>

#include "app/pipeline.h"
#include "core/engine.h"

namespace culprit::app {

// Threads for an engine's analysis, made for each use of them.
comm::Parallel threads_of(unsigned threads);

// Reads all files, or until progress.stop. Gives what could not be read.
std::vector<Problem> read_comm(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                               ReadProgress& progress, unsigned threads);

}  // namespace culprit::app
