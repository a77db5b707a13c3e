// Values of a job for /metrics: numbers and words from a fixed set, no text from lines. Plain values; made on
// the engine's worker, then owned by the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "model/report.h"

namespace culprit::app {

enum class FigureState : uint8_t { kRunning, kHangs, kEnded, kFailed, kNoEngine };
std::string_view to_string(FigureState state);  // "running", "hangs", "ended", "failed", "no_engine"

struct JobCounters {
  std::string id;
  uint32_t run = 0;
  FigureState state = FigureState::kRunning;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // times of the job's data
  TimeNs progressed_ns = kNoTime;                // last sign of progress
  std::optional<int64_t> step;                   // the highest
  std::optional<double> effective_time;          // effective_time.h
  uint64_t hosts = 0, ranks = 0;                 // 0: not known
  // The announced verdict.
  struct Verdict {
    Category category = Category::kUnknown;
    Component component = Component::kUnknown;
    Symptom symptom = Symptom::kOther;
    ActionKind action = ActionKind::kNone;
    double confidence = 0;
    uint64_t suspects = 0;  // hosts that it names
  };
  std::optional<Verdict> verdict;
};

}  // namespace culprit::app
