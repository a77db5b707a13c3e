// Ends the processes of a job on this host, so that it can run again elsewhere. The program
// culprit-end-tasks alone has the right to do so. It does not trust its caller: it ends only processes that
// it finds to be of the job itself, never root's.
//
// Request and answer are one line of JSON each. Blocking; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// A process; the start time distinguishes it from a later process with the same pid.
struct EndTarget {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  bool operator==(const EndTarget&) const = default;
};

struct EndRequest {
  std::string job;                     // its name, without an owner
  TimeNs grace_ns = 5 * kNsPerSecond;  // between SIGTERM and SIGKILL
  std::vector<EndTarget> targets;
  bool operator==(const EndRequest&) const = default;
};
constexpr size_t kEndTargets = 8192;
constexpr size_t kEndRequestBytes = 1 << 20;
constexpr TimeNs kEndGraceMax = 60 * kNsPerSecond;
constexpr TimeNs kKilledWithin = 10 * kNsPerSecond;  // after SIGKILL; beyond it a process waits in the kernel

std::string to_line(const EndRequest& request);
Result<EndRequest> parse_end_request(std::string_view line);

struct EndCounts {
  uint32_t ended = 0;  // are gone, among those that were signalled
  uint32_t ended_before = 0;
  uint32_t refused = 0;  // are not of the job, or may not be ended
  uint32_t left = 0;     // live in spite of SIGKILL
  std::string why;       // of the first refusal or failure; one sentence
  bool operator==(const EndCounts&) const = default;
};
std::string to_line(const EndCounts& counts);
Result<EndCounts> parse_end_counts(std::string_view line);

// Why a process may not be ended; empty: it may.
using WhyNot = std::function<std::string(uint32_t pid)>;
// The process must be of the job by its control group or environment, and belong to an ordinary user.
std::string why_not_ended(const std::string& proc, const std::string& job, uint32_t pid);

// Signals through pidfds: another process with the same pid is never reached.
EndCounts end_tasks(const EndRequest& request, const WhyNot& why_not, const std::string& proc = "/proc");

}  // namespace culprit::app
