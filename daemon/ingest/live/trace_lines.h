// One line of the trace socket (formats.md sections 3 and 4) as a value. A pure function, any thread.
//
// Strict if a wrong reading would mislead: a known key with a wrong type, a repeated key, a metric without
// rank. Otherwise tolerant: unknown keys are ignored, null equals an absent key, and NaN and Infinity may be
// unquoted, as Python's json writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/metric.h"
#include "model/plugin_finding.h"
#include "model/ras.h"

namespace culprit::ingest {

enum class TraceKind : uint8_t { kMetric, kLog, kStack, kStep, kPhase, kEvent, kFinding, kRas, kUnknown };
constexpr size_t kTraceKinds = 9;
std::string_view name_of(TraceKind kind);  // "metric", …, "unknown"

struct TraceThread {
  std::string_view name;
  std::vector<std::string_view> frames;  // from the innermost outwards
};
struct TraceField {
  std::string_view name;
  std::string json;  // its value, without blanks
};

// Members whose key is absent are empty or kNoTime.
struct TraceLine {
  TraceKind kind = TraceKind::kUnknown;
  std::string_view job;
  std::string_view host;  // as in the line: the socket accepts it only from the daemon's own uid
  std::optional<uint32_t> rank;
  std::optional<int64_t> step;  // at least 0
  TimeNs time_ns = kNoTime;
  std::string_view name;                 // name of a phase or an event
  std::string_view state;                // of a phase: "begin" or "end"
  std::string_view text;                 // of a log: its `line`
  std::vector<MetricValue> values;       // of a metric
  std::vector<MetricDigest> digests;     // of a metric
  std::vector<TraceThread> threads;      // of a stack
  std::optional<PluginFinding> finding;  // of a finding: all but its job, host, rank and time
  std::optional<RasState> ras;           // of a state of NCCL's RAS: all but its host and time
  std::vector<TraceField> fields;        // other keys of an event or an unknown kind
};

// `line` has no newline and at most limits::kLineBytes. Returned views are valid until the next call on the
// same thread. The error names the wrong key.
Result<TraceLine> parse_trace_line(std::string_view line);

// A metric or event line for analysis: views into the line, with `host` instead of the line's own host.
MetricRow metric_row(const TraceLine& line, std::string_view host);
// A finding line: with job, rank and time of the line, and `host` instead of the line's own host.
PluginFinding plugin_finding(TraceLine&& line, std::string_view host);
// Fills `fields`, which the event borrows.
LoopEvent loop_event(const TraceLine& line, std::string_view host, std::vector<EventField>& fields);

}  // namespace culprit::ingest
