// Reads log files into an engine. Several threads read and parse; the thread that completes the next piece in
// order delivers it. The engine sees the same batches in the same order for any number of threads. Memory is
// bounded by the number of pieces in progress.
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

// Written by reading threads, read by the progress display.
struct ReadProgress {
  std::atomic<uint64_t> bytes_done{0};   // on disk
  std::atomic<uint64_t> bytes_total{0};  // bytes of the files found so far; 0: unknown
  std::atomic<bool> stop{false};  // set by a signal handler: pieces in progress are finished, the rest is
                                  // skipped
};

struct PipelineOptions {
  logs::ParseOptions parse;
  unsigned threads = 1;
  // Makes a scanner for each thread; empty: rules are not matched.
  std::function<std::unique_ptr<logs::LineScanner>()> scanner = {};
};

// Opens the files as sources of the engine, in order, and reads all of them or until progress.stop. Returns
// reading problems. Blocks.
std::vector<Problem> read_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                               core::Engine& engine, ReadProgress& progress);

// Reads and parses like read_logs, but passes each batch to `take`, in order, on any thread, one at a time.
// Lack of memory for a piece loses only that piece; exceptions from `take` are passed on.
using TakeBatch = std::function<void(logs::LogBatch&)>;
std::vector<Problem> parse_logs(const std::vector<LogFile>& files, const PipelineOptions& options,
                                const TakeBatch& take, ReadProgress& progress);

}  // namespace culprit::app
