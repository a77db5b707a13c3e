// Sorts lines of the trace socket, or of a trace file (docs/formats.md section 4), by kind for an engine.
// Used for pieces of sockets and for files.
//
// Values and pure functions; one thread. No clock: times come from the records.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/jobs/job_attempts.h"
#include "core/engine.h"
#include "core/logs/line_feed.h"
#include "core/logs/line_parser.h"
#include "ingest/live/trace_lines.h"
#include "model/loop_batch.h"
#include "model/plugin_finding.h"
#include "model/report.h"
#include "model/stack.h"

namespace culprit::app {

// Invalid lines, counted by reason. The first line of each reason is shown.
struct BrokenLines {
  struct Kind {
    uint64_t count = 0, offset = 0;  // offset of the reason's first line in the source's evidence
    std::string beginning;           // first bytes of that line, unchanged
  };
  std::map<std::string, Kind> kinds;  // by reason
  uint64_t count = 0;                 // total, including lines whose reason is beyond the limit

  void add(const std::string& reason, const Kind& kind);
  void add(const BrokenLines& more);
  // Adds a line that begins at `offset`.
  void add_line(const std::string& reason, uint64_t offset, std::string_view bytes);
  // One row for each reason.
  std::vector<Problem> problems(const std::string& path) const;
  // Example: "a.ndjson; the first: {"kind":…".
  static std::string shown(const std::string& reason, const Kind& kind);
};

// Log lines of one writer.
struct TraceLog {
  uint32_t rank = logs::kNoRank;
  std::optional<std::string> host;
  std::string text;           // whole lines
  std::vector<TimeNs> times;  // time of each line, kNoTime if its record has none
  uint64_t bytes = 0;         // bytes of the records around the lines
};

struct TraceBatch {
  std::vector<TraceLog> logs;                // in order of their first lines
  TraceLog events;                           // one line each: "name=ecc count=3"
  LoopBatch loop;                            // metrics, plus the events for detectors of the training loop
  uint64_t loop_bytes = 0, loop_lines = 0;   // size of metric records
  std::vector<core::FindingInput> findings;  // findings of plugins; without file and user
  struct RasLine {
    std::string job;
    ras::RasInput input;  // without file; the host is the one that the line names
  };
  std::vector<RasLine> ras;       // states of NCCL's RAS, from the daemon itself or from files
  std::vector<StackDump> stacks;  // a host is set only where the line may name one
  std::vector<StackRefusal> no_stacks;
  uint64_t stack_bytes = 0, stack_lines = 0;  // size of stack records
  std::vector<detect::ProgressSeen> beats;
  std::vector<detect::PhaseSeen> phases;
  // From the event {"kind":"event","name":"job_end"}: `failed` with a nonzero exit_code, `succeeded` with 0.
  bool ends = false, failed = false, succeeded = false;
  std::optional<JobAttempts> attempts;  // of the last valid event "attempt"; without its time
  uint64_t understood = 0;              // valid lines
  BrokenLines broken;
};

// How a line is read.
struct TraceReading {
  uint64_t offset = 0;                                            // offset of the line in its source
  bool trusted = false;                                           // the writer may name hosts
  std::function<bool(const ingest::TraceLine& line)> takes = {};  // filter; empty: all lines
};
// Adds one line without its end to the batch.
void read_trace_line(TraceBatch& batch, std::string_view text, const TraceReading& reading);

// Feeds log lines from records to the engine. A line without a time gets its record's time. `info`: the
// lines' source; `batch` is overwritten; `step` consumes the input.
struct TraceLogFeeder {
  logs::LineParser& parser;
  logs::LogBatch& batch;
  std::function<void(core::Input)> step;
  void feed(logs::LineFeed& feed, SourceInfo info, TraceLog& lines) const;
};

}  // namespace culprit::app
