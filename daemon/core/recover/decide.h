// The decision after a failed attempt: whether the job runs again, when, and without whom. One table for
// `culprit run --retries` and for the cluster's controller. It never acts. Pure: time, chance and what the
// surroundings offer are arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/recover/ledger.h"

namespace culprit::recover {

struct Limits {
  uint32_t retries = 3;            // attempts without progress after the first one
  uint32_t attempts_per_day = 20;  // of all
  uint32_t storm = 5;              // failures within storm_ns end it
  TimeNs storm_ns = 30 * 60 * kNsPerSecond;
  TimeNs later_max_ns = 2 * 3600 * kNsPerSecond;  // a service that does not answer for so long
  TimeNs min_left_ns = 600 * kNsPerSecond;        // of the allocation, that an attempt is worth starting
};

// How a host or device can be left out.
enum class Way : uint8_t { kNone, kSpare, kShrink, kRequeue };

// What the surroundings allow.
struct Means {
  uint32_t spares = 0;       // hosts that wait
  bool may_shrink = false;   // the job may run on fewer devices or hosts
  bool may_requeue = false;  // a successor or the scheduler can start it elsewhere
  TimeNs left_ns = kNoTime;  // of the allocation; kNoTime: no end is known
  double chance = 0;         // -1..1, spreads the waiting times
};

struct Decision {
  bool again = false;
  TimeNs wait_ns = 0;    // before the next attempt
  bool probe = false;    // begin as soon as the service answers, at the latest after wait_ns
  bool older = false;    // resume from the newest whole checkpoint before the last one used
  Way way = Way::kNone;  // how those below are left out
  std::vector<std::string> hosts, devices;  // to leave out, in addition to earlier ones
  std::string why;                          // one sentence without a full stop, for the person who waits
  int code = 0;  // exit code of a stop: kWillNotHelp, kElsewhereHelps; 0: the command's own
};

// For schedulers that only count: the next attempt will fail too; another one elsewhere may not.
constexpr int kWillNotHelp = 93, kElsewhereHelps = 138;

// The failure is the ledger's latest.
Decision decide(const Ledger& ledger, const Failure& failure, const Means& means, const Limits& limits);

}  // namespace culprit::recover
