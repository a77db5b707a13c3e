// Reads communication traces into an engine, one piece at a time. The file with the earliest position comes
// next, so all hosts reach the same step together; another thread reads ahead. The engine sees the same
// records in the same order for any number of threads. Blocks.
#pragma once

#include <vector>

#include "app/offline/pipeline.h"
#include "core/engine.h"

namespace culprit::app {

// Reads all files or until progress.stop. Returns reading problems.
std::vector<Problem> read_comm(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                               ReadProgress& progress, unsigned threads);

}  // namespace culprit::app
