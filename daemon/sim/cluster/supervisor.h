// Who runs the failed jobs of a simulated cluster again: an interface with two implementations, the wait for
// the time-out and the controller. It gets what an agent, a scheduler or a check reports, never the truth,
// and gives orders. Plain values; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "base/time.h"
#include "sim/cluster/incident.h"

namespace culprit::sim {

// Of a job's leading diagnosis.
struct ClusterVerdict {
  Looks looks = Looks::kCrashUnknown;
  uint32_t sources = 0;
  uint32_t confidence_percent = 0;
  uint32_t variant = 0;         // several rules state one class: which one
  std::vector<uint32_t> hosts;  // named; of kHangGroup: the group
};

// What only an oracle gets, with each input.
struct ClusterTruth {
  std::vector<uint32_t> faulty;  // hosts in service that are broken
  TimeNs outage_ns = 0;          // until the job can start again
  bool older = false;            // it needs an older checkpoint
  bool person = false;           // a person has to mend the program
  bool slow = false;             // the job trains, with a slow host
};

struct ClusterInput {
  enum class Kind : uint8_t {
    kRuns,      // the scheduler shows the job as running on `hosts`
    kProgress,  // it made a step, or saved (`saved`)
    kSilent,    // no progress for the hang limit
    kEnded,     // its processes have ended
    kVerdict,   // a diagnosis, at each revision
    kDone,      // an order was carried out, or not (`passed`)
    kChecked,   // a check of `host` ended: `passed` or not
    kHostBack,  // a person returned a host after a repair
    kHostOut,   // a person drained a host, or the scheduler declared it down
    kTruth,     // for an oracle alone: the job fails now, or a host of it is slow from now on
    kWake
  };
  Kind kind = Kind::kWake;
  uint32_t job = 0, host = 0;
  uint32_t attempt = 0;  // of the job, from 0; of kVerdict: of the one that it is about
  bool saved = false, passed = false;
  bool busy = false;         // kChecked: a job ran on the host, so there is no answer
  bool by_person = false;    // kEnded, kRuns: a person did it
  bool node_failed = false;  // kEnded: the scheduler declared a host of it down
  uint64_t order = 0;
  uint32_t free_hosts = 0;  // in service and in no job
  uint32_t in_service = 0;  // hosts in service, in `job` or in none
  bool waits = false;       // kDone of kRunAgain: too few hosts are in service
  int64_t iteration = 0;    // kRuns: resumed from; kProgress: made
  ClusterVerdict verdict = {};
  ClusterTruth truth = {};
  std::span<const uint32_t> hosts = {};  // valid for the call
};

struct ClusterOrder {
  enum class Kind : uint8_t { kIsolate, kReturn, kEndTasks, kRunAgain, kHold, kCheck };
  Kind kind = Kind::kHold;
  uint64_t id = 0;  // of the supervisor's choice
  uint32_t job = 0, host = 0;
  std::vector<uint32_t> excluded = {};  // kRunAgain: for this job
  bool by_queue = false;                // kRunAgain: through the scheduler's queue
  bool older = false;                   // kRunAgain: not from the newest checkpoint
  TimeNs wait_ns = 0;                   // kRunAgain: before the start
  bool job_waits = false;               // kCheck: a short one, since the job waits for it
  bool over_isolation = false;          // kIsolate: one of a group, most of it innocent
};

class Supervisor {
 public:
  virtual ~Supervisor() = default;
  virtual std::vector<ClusterOrder> step(const ClusterInput& input, TimeNs now) = 0;
  // Time of the next kWake; kNoTime: none.
  virtual TimeNs next_wake() const { return kNoTime; }
  // Whether kProgress is of use.
  virtual bool wants_progress() const { return true; }
  virtual bool is_oracle() const { return false; }
};

// Knows each fault at once and all broken hosts: what no controller can do better. It leaves them out, waits
// for outages to end, and for people where a program is at fault. A bound, not a controller.
class OracleSupervisor : public Supervisor {
 public:
  std::vector<ClusterOrder> step(const ClusterInput& input, TimeNs now) override;
  bool is_oracle() const override { return true; }

 private:
  std::set<uint32_t> isolated_;
  std::set<uint32_t> slow_;  // jobs that end at their next save
};

// The same hosts again, through the queue, each time the job has ended. People drain bad hosts.
class TimeoutSupervisor : public Supervisor {
 public:
  std::vector<ClusterOrder> step(const ClusterInput& input, TimeNs now) override;
  bool wants_progress() const override { return false; }
};

}  // namespace culprit::sim
