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
  std::vector<Principal> claimed_by;  // users and containers alone say it, and their word makes no suspect
  Suspect place;                      // what is accused on it
  TimeNs last_ns = kNoTime;           // of the newest evidence against it
  std::string job;
  uint32_t run = 0;
  std::string diagnosis, title;  // the id, and what it says
  double confidence = 0;

  bool claimed() const { return !claimed_by.empty(); }
};

// The hosts that standing diagnoses of the last run of each job name: those of verdicts first, then by score.
// What users alone claim stands behind the rest, once for each user and host, however many jobs say it.
// `last_run` by job. A host that a person cleared after its newest evidence is left out.
std::vector<NamedHost> named_hosts(std::span<const Verdict> verdicts,
                                   const std::map<std::string, uint32_t>& last_run,
                                   const std::map<std::string, TimeNs>& cleared);

// The worst that is held against each host, in the same order. A diagnosis that is no verdict, and a claim,
// counts for a day: a weak sign says nothing of a later one.
std::vector<const NamedHost*> worst_by_host(const std::vector<NamedHost>& named, TimeNs now);

}  // namespace culprit::app
