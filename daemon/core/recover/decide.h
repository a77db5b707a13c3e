// Decides after a failed attempt whether the job runs again, when, and which hosts to exclude. One table for
// `culprit run --retries` and for the cluster's controller. Takes no action. Pure: time, chance and the
// environment's resources are arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/recover/ledger.h"

namespace culprit::recover {

struct Limits {
  uint32_t retries = 3;            // attempts without progress after the first one
  uint32_t attempts_per_day = 20;  // of all kinds
  uint32_t storm = 5;              // failures within storm_ns end the job
  TimeNs storm_ns = 30 * 60 * kNsPerSecond;
  TimeNs later_max_ns = 2 * 3600 * kNsPerSecond;  // wait limit for an unresponsive service
  TimeNs min_left_ns = 600 * kNsPerSecond;        // minimum time left in the allocation to start an attempt
};

// How to exclude a host or device.
enum class Way : uint8_t { kNone, kSpare, kDevices, kShrink, kRequeue };

// Revisions of the program besides the one of the failed attempt.
struct CodeChoice {
  std::string running;  // revision of the failed attempt; empty: unknown
  std::string pending;  // the next attempt takes it; empty: none
  std::string before;   // ran before `running`, which no attempt has run well; empty: none
};

// The environment's resources and permissions.
struct Means {
  uint32_t spares = 0;             // idle hosts
  bool may_shrink = false;         // the job may run on fewer hosts
  bool may_requeue = false;        // a successor or the scheduler can start it elsewhere
  TimeNs left_ns = kNoTime;        // of the allocation; kNoTime: no end is known
  double chance = 0;               // random, -1..1: spreads the waiting times
  bool may_leave_devices = false;  // the job may run on its hosts without the devices of the failure
  CodeChoice code = {};
};

struct Decision {
  bool again = false;
  TimeNs wait_ns = 0;    // before the next attempt
  bool probe = false;    // start when the service answers, at the latest after wait_ns
  bool older = false;    // resume from the newest whole checkpoint before the last one used
  Way way = Way::kNone;  // how the hosts and devices below are excluded
  std::vector<std::string> hosts, devices;  // to leave out, in addition to earlier ones
  std::string revision;                     // that the next attempt takes; empty: the same
  std::string why;                          // one sentence without a full stop, for the person who waits
  int code = 0;  // exit code of a stop: kWillNotHelp, kElsewhereHelps; 0: the command's own
};

// For schedulers that only count attempts: the next attempt will fail too; one on other hosts may succeed.
constexpr int kWillNotHelp = 93, kElsewhereHelps = 138;

// Time before probe number `times` + 1 of a service. `chance`: as in Means.
TimeNs probe_wait(uint32_t times, double chance);

// `failure` must be the latest in the ledger.
Decision decide(const Ledger& ledger, const Failure& failure, const Means& means, const Limits& limits);

}  // namespace culprit::recover
