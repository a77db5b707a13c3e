// The hosts that diagnoses name, for GET /v1/suspects and GET /v1/hosts. Pure; any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/verdict.h"

namespace culprit::app {

struct NamedHost {
  std::string host;
  bool verdict = false;
  std::vector<Principal> claimed_by;  // users and containers who alone claim this; their claims make no
                                      // suspect
  Suspect place;                      // what is accused on it
  TimeNs last_ns = kNoTime;           // time of the newest evidence against the host
  std::string job;
  uint32_t run = 0;
  std::string diagnosis, title;  // the id, and what it says
  double confidence = 0;

  bool claimed() const { return !claimed_by.empty(); }
};

// The hosts named by standing diagnoses of the last run of each job: hosts of verdicts first, then by score.
// Claims by users alone come last, once for each user and host, regardless of the number of jobs. `last_run`
// by job. A host that a person cleared after its newest evidence is left out.
std::vector<NamedHost> named_hosts(std::span<const Verdict> verdicts,
                                   const std::map<std::string, uint32_t>& last_run,
                                   const std::map<std::string, TimeNs>& cleared);

// The worst entry for each host, in the same order. A claim, or a diagnosis that is no verdict, counts for a
// day: weak evidence does not apply to later times.
std::vector<const NamedHost*> worst_by_host(const std::vector<NamedHost>& named, TimeNs now);

}  // namespace culprit::app
