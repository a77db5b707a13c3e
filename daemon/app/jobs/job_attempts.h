// Attempts of a job that runs again (`culprit run --retries`), as the well-known event "attempt" of the trace
// socket reports them (docs/formats.md section 4). The event takes the way of all data of a job, so another
// user's event never reaches the job. Plain values; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/metric.h"

namespace culprit::app {

enum class AttemptState : uint8_t {
  kRuns,   // the attempt has begun
  kAgain,  // it failed, and another one follows
  kStop,   // it failed, and none follows
  kWell,   // it ended well
};
std::string_view to_string(AttemptState state);  // "begin", "again", "stop", "well"

struct JobAttempts {
  uint32_t attempt = 1;               // the latest one, from 1
  uint32_t of = 1;                    // attempts that are possible by its budget, at least `attempt`
  std::vector<std::string> excluded;  // hosts and devices that it runs without
  AttemptState state = AttemptState::kRuns;
  std::string why;         // of kAgain and kStop: the decision, "without node-3"
  TimeNs at_ns = kNoTime;  // arrival of the event
  // Of a chain of jobs, by their names: the first one, this one, and the one that goes on after it. Empty:
  // none.
  std::string first, member, successor;
};

constexpr const char* kAttemptEvent = "attempt";

// Time that a job may wait for its successor to begin, which the scheduler queues.
constexpr TimeNs kSuccessorWithin = 6 * 3600 * kNsPerSecond;
// Whether the job waits for its successor.
inline bool awaits_successor(const JobAttempts& a, TimeNs now) {
  return a.state == AttemptState::kAgain && !a.successor.empty() && now - a.at_ns < kSuccessorWithin;
}

// The attempts that the event reports; nothing: another event, or one with a missing or wrong field. Texts
// are bounded.
std::optional<JobAttempts> attempts_of(const LoopEvent& event, TimeNs at);

// "runs again without node-3 (attempt 2 of 4)", of kAgain; else empty.
std::string runs_again(const JobAttempts& attempts);

}  // namespace culprit::app
