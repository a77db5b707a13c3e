// Metrics of a training loop (formats.md section 4): values by rank and step, and events.
//
// Plain views: names and values are borrowed from the reader of the line for the duration of the call. A
// callee that keeps a name must copy it or intern it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/time.h"

namespace culprit {

struct MetricValue {
  std::string_view name;  // "loss", "grad_norm/layer.3"
  double value = 0;       // may be NaN or infinite
};

// A 64-bit digest of a rank's tensors: equal for equal replicas.
struct MetricDigest {
  std::string_view name;  // "param", "grad_reduced"
  uint64_t value = 0;
};

// One record of one rank and step. Several records of one rank and step are merged.
struct MetricRow {
  std::string_view host;  // empty: unknown
  uint32_t rank = 0;
  int64_t step = 0;  // at least 0
  TimeNs time_ns = kNoTime;
  std::span<const MetricValue> values;
  std::span<const MetricDigest> digests;
};

struct EventField {
  std::string_view name;
  std::string_view json;  // the value as JSON, without blanks
};

// An action of a loop, in its own terms: a replayed step, an audited batch, a restart.
struct LoopEvent {
  std::string_view host;
  std::optional<uint32_t> rank;
  std::optional<int64_t> step;
  TimeNs time_ns = kNoTime;
  std::string_view name;  // "replay", "audit"
  std::span<const EventField> fields;
};

}  // namespace culprit
