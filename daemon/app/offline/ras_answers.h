// Reads files with answers of NCCL's RAS into an engine, sorted by the answer's time, else by the file's.
// Blocks, on the caller's thread.
#pragma once

#include <vector>

#include "app/offline/pipeline.h"
#include "ingest/source_list.h"

namespace culprit::app {

// Returns reading problems.
std::vector<Problem> read_ras_answers(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                                      ReadProgress& progress);

}  // namespace culprit::app
