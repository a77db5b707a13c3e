// The hosts that diagnoses name, for GET /v1/suspects and GET /v1/hosts. Pure; any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "store/index.h"

namespace culprit::app {

struct NamedHost {
  std::string host;
  bool verdict = false;
  bool claimed = false;  // by users alone, whose word makes no suspect
  double score = 0;
  TimeNs last_ns = kNoTime;  // of the newest evidence against it
  nlohmann::json item;       // as GET /v1/suspects shows it
};

// The hosts that standing diagnoses of the last run of each job name: those of verdicts first, then by score.
// What users alone claim stands behind the rest, once for each user and host, however many jobs say it.
// `last_run` by job. A host that a person cleared after its newest evidence is left out.
std::vector<NamedHost> named_hosts(std::span<const store::DiagnosisRow> rows,
                                   const std::map<std::string, uint32_t>& last_run,
                                   const std::map<std::string, TimeNs>& cleared);

// The worst that is held against each host, in the same order. A diagnosis that is no verdict, and a claim,
// counts for a day: a weak sign says nothing of a later one.
std::vector<const NamedHost*> worst_by_host(const std::vector<NamedHost>& named, TimeNs now);

}  // namespace culprit::app
