// All attempts of one `culprit run --retries`, for its report: totals, and the report's member "attempts"
// (daemon/docs/formats.md). Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/run/attempt.h"
#include "base/time.h"

namespace culprit::app {

struct AttemptHistory {
  std::vector<Attempt> attempts;   // in order
  std::vector<std::string> pages;  // by attempt: its report.html, relative to the run's folder; empty: none
  uint32_t most = 0;               // attempts that were possible, by the last one's budget
  std::string ledger;              // path of attempts.jsonl
};

TimeNs lost_ns(const AttemptHistory& history);

// Hosts and devices that attempt `index` (from 0) ran without; attempts.size(): those of all decisions.
std::vector<std::string> excluded(const AttemptHistory& history, size_t index);

// One JSON object. It has the newest kAttemptsReported attempts, and bounded texts and lists.
constexpr size_t kAttemptsReported = 200;
std::string to_json(const AttemptHistory& history);

}  // namespace culprit::app
