// Reads log files into an engine: several threads read and parse, whichever of them completes the next piece
// in order hands it over. The engine sees the same batches in the same order whatever the number of threads.
// Memory is bounded by the pieces under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/logs/line_parser.h"
#include "ingest/source_list.h"
#include "model/batch.h"

namespace culprit::app {

struct LogFile {
  ingest::SourceFile file;
  SourceInfo info;
};

// Written by the threads that read, read by the one that shows.
struct ReadProgress {
  std::atomic<uint64_t> bytes_done{0};   // on disk
  std::atomic<uint64_t> bytes_total{0};  // of the files found so far; 0: not known
  std::atomic<bool> stop{false};         // set by a signal handler: what is under way ends, the rest is left
};

struct PipelineOptions {
  logs::ParseOptions parse;
  unsigned threads = 1;
  // For each thread its own; empty: rules are not looked for.
  std::function<std::unique_ptr<logs::LineScanner>()> scanner = {};
};

// Opens the files as sources of the engine, in order, and reads them all, or until progress.stop. Gives what
// could not be read. Blocks.
std::vector<Problem> read_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                               core::Engine& engine, ReadProgress& progress);

// Reads and parses as read_logs does, and hands every batch to `take` in order, on any thread, one at a time.
// Memory that runs out while a piece is read costs that piece; what `take` throws comes out of here.
using TakeBatch = std::function<void(logs::LogBatch&)>;
std::vector<Problem> parse_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                                const TakeBatch& take, ReadProgress& progress);

}  // namespace culprit::app
