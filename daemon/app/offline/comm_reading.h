// Reads communication records into an engine, one piece at a time: traces of our own, files of NCCL's
// Inspector and traces of PyTorch's profiler. The file with the earliest position comes next, so all hosts
// reach the same step together; another thread reads ahead. The engine sees the same records in the same
// order for any number of threads. Blocks.
#pragma once

#include <vector>

#include "app/offline/pipeline.h"
#include "core/engine.h"

namespace culprit::app {

struct CommInputs {
  std::vector<ingest::SourceFile> traces;
  std::vector<ingest::SourceFile> inspector;
  std::vector<LogFile> profiles;  // with host and rank of their paths
  bool empty() const { return traces.empty() && inspector.empty() && profiles.empty(); }
};

// Reads all files or until progress.stop. Returns reading problems.
std::vector<Problem> read_comm(CommInputs inputs, const JobFile& job, core::Engine& engine,
                               ReadProgress& progress, unsigned threads);

}  // namespace culprit::app
