// `culprit standby plan`: how many idle hosts a job needs. The functions of the daemon's answers are pure.
#pragma once

#include <cstdint>
#include <string>

#include "cli/remote.h"
#include "cli/verbs.h"
#include "core/recover/standby.h"

namespace culprit::cli {

// What the controller's ledger says about failing hosts: isolations since the first attempt that it shows.
struct StandbyLedger {
  TimeNs since_ns = kNoTime;  // kNoTime: it shows no attempt
  uint64_t hosts = 0;         // that the daemon knows
  recover::FailureRate rate;
};
// `machines`, `cost` and `hosts`: answers of /v1/recovery/machines, /v1/recovery/cost?jobs= and /v1/hosts.
StandbyLedger standby_ledger(const Json& machines, const Json& cost, const Json& hosts, TimeNs now);

struct StandbyQuestion {
  uint32_t hosts = 0;
  double rate = 0;  // failures per host and day
  double refill_days = 1, quantile = 0.99;
  recover::FailureRate known;  // host_days 0: the rate was given
};
std::string standby_text(const StandbyQuestion& question);
std::string standby_json(const StandbyQuestion& question);

void add_standby(Command& app, Run& run);

}  // namespace culprit::cli
