// Lines of the trace socket, or of a file of them (FORMATS.md section 4), sorted out: what each says to an
// engine. Shared by the daemon, which reads a socket's pieces, and by the reading of files.
//
// Values and pure functions; one thread. No clock: time is that of the records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine.h"
#include "core/logs/line_feed.h"
#include "core/logs/line_parser.h"
#include "ingest/live/trace_lines.h"
#include "model/loop_batch.h"
#include "model/report.h"

namespace culprit::app {

// Lines that could not be understood, folded by the reason. The first of each is shown.
struct BrokenLines {
  struct Kind {
    uint64_t count = 0, offset = 0;  // where the first begins, in the source's evidence
    std::string beginning;           // of its bytes, as they were
  };
  std::map<std::string, Kind> kinds;  // by the reason
  uint64_t count = 0;                 // of all, also of those whose reasons are too many to be kept

  void add(const std::string& reason, const Kind& kind);
  void add(const BrokenLines& more);
  // A line that begins there.
  void add_line(const std::string& reason, uint64_t offset, std::string_view bytes);
  // A row for each reason.
  std::vector<Problem> problems(const std::string& path) const;
  // "a.ndjson; the first: {"kind":…".
  static std::string shown(const std::string& reason, const Kind& kind);
};

// Log lines of one writer.
struct TraceLog {
  uint32_t rank = logs::kNoRank;
  std::optional<std::string> host;
  std::string text;           // whole lines
  std::vector<TimeNs> times;  // of each, kNoTime where its record tells none
  uint64_t bytes = 0;         // of the records that they came in
};

struct TraceBatch {
  std::vector<TraceLog> logs;               // in order of their first lines
  TraceLog events;                          // "name=ecc count=3", a line each
  LoopBatch loop;                           // metrics, and the events once more, for who knows what they mean
  uint64_t loop_bytes = 0, loop_lines = 0;  // of records of metrics
  std::vector<detect::ProgressSeen> beats;
  std::vector<detect::PhaseSeen> phases;
  // A line {"kind":"event","name":"job_end"}; one with an exit_code other than 0; one with the exit_code 0.
  bool ends = false, failed = false, succeeded = false;
  uint64_t understood = 0;  // lines
  BrokenLines broken;
};

// How a line is read.
struct TraceReading {
  uint64_t offset = 0;                                            // of the line in its source
  bool trusted = false;                                           // whoever wrote it may name hosts
  std::function<bool(const ingest::TraceLine& line)> takes = {};  // empty: all are taken
};
// One line without its end, into the batch.
void read_trace_line(TraceBatch& batch, std::string_view text, const TraceReading& reading);

// Log lines that were taken out of records, to the engine: each has its record's time where it tells none
// itself. `info`: of their source; `batch` is overwritten; `step` takes the input.
struct TraceLogTaker {
  logs::LineParser& parser;
  logs::LogBatch& batch;
  std::function<void(core::Input)> step;
  void take(logs::LineFeed& feed, SourceInfo info, TraceLog& lines) const;
};

}  // namespace culprit::app
