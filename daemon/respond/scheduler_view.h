// What a scheduler shows at one moment: its jobs and hosts, as the controller needs them. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/recovery.h"

namespace culprit::respond {

struct SeenJob {
  ScheduledJob job;
  enum class State : uint8_t {
    kPending,  // waits for resources or its begin
    kHeld,     // waits for a person
    kRunning,
    kEnding,  // its processes are being ended
    kCompleted,
    kCancelled,
    kTimeLimit,
    kPreempted,
    kNodeFailed,
    kFailed,
  } state = State::kPending;
  std::string word;    // the scheduler's: "NODE_FAIL"
  std::string reason;  // why it is pending: "Resources"
  uint32_t uid = 0, nodes = 0;
  bool may_requeue = false;    // the scheduler can start it again
  bool requeued_held = false;  // kHeld by a requeue, not by a hold
  std::string partition;
  std::vector<std::string> hosts;

  bool has_ended() const { return state > State::kEnding; }
};

struct SeenHost {
  std::string host;
  bool out = false;   // takes no new work
  bool idle = false;  // up, and without work
  std::string op;     // mark of our order; empty: none
  std::string by;     // who took it out: "root"; empty: unknown
  std::vector<std::string> partitions;
};

struct SchedulerView {
  std::vector<SeenJob> jobs;
  std::vector<SeenHost> hosts;
};

}  // namespace culprit::respond
