// What a scheduler shows at one moment: its jobs and hosts, as the controller needs them. Plain values.
#pragma once

#include <cstdint>
#include <optional>
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
  std::string word;            // the scheduler's: "NODE_FAIL"
  std::string reason;          // why it is pending or ended so: "Resources", "NonZeroExitCode"
  std::string exit_code = {};  // of a job that ended, and its signal: "1:0"; empty: unknown
  uint32_t uid = 0, nodes = 0;
  bool may_requeue = false;    // the scheduler can start it again
  bool requeued_held = false;  // kHeld by a requeue, not by a hold
  std::string partition;
  std::vector<std::string> hosts;
  // Who may speak for the job by its data.
  enum class Owner : uint8_t {
    kUser,     // the user `uid`
    kUnknown,  // the scheduler has no users: only what no user can write counts
    kNamed,    // the id is the collector's own id of the job: all of its data
  } owner = Owner::kUser;
  std::vector<std::string> aliases = {};  // other names under which agents may know it

  bool has_ended() const { return state > State::kEnding; }
};

struct SeenHost {
  std::string host;
  bool out = false;                     // takes no new work
  bool idle = false;                    // up, and without work
  std::string op;                       // mark of our order; empty: none
  std::string by;                       // who took it out: "root"; empty: unknown
  std::vector<std::string> partitions;  // none: of all
  bool spare = false;                   // in the pool of spares
  bool may_be_spare = true;             // as the configuration selects
  TimeNs returned_ns = kNoTime;         // when we returned it, as the host itself shows
};

struct SchedulerView {
  std::vector<SeenJob> jobs;
  std::vector<SeenHost> hosts;
  // When the reading of the hosts began, if it was before that of the view.
  TimeNs hosts_read_ns = kNoTime;
  std::optional<uint32_t> spares = {};  // nodes of the pool; nothing: there is none
  std::vector<std::string> spare_hosts = {};
  std::string spares_note = {};  // what changed in it, or its trouble; empty: nothing
  bool hosts_known = true;       // false: there is no list of hosts, and any may run any job
};

}  // namespace culprit::respond
