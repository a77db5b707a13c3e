// The decision about an attempt on several hosts, made by one member for all. Pure: the report, time, chance
// and the newest checkpoint are arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/run/attempt_plan.h"
#include "core/recover/decide.h"
#include "core/recover/ledger.h"
#include "model/report.h"

namespace culprit::app {

struct JointFacts {
  std::string by;  // host of the member that decides
  AttemptPlan plan;
  std::map<std::string, MemberRecord> ends;  // answers of spares too
  std::optional<int64_t> best;               // the highest iteration of earlier attempts
  recover::Ledger ledger;                    // without this attempt
  recover::Limits limits;
  recover::CodeChoice code;           // with --code
  std::optional<Report> report;       // of all hosts' logs
  bool forbidden = false;             // the user excluded its rule from retries
  std::optional<int64_t> saved_step;  // of the newest whole checkpoint; -1: there is none, or its step is
                                      // unknown; nothing: there is no folder of checkpoints
  TimeNs saved_ns = kNoTime;          // when it was written
  std::optional<uint32_t> min_gpus;   // of a host; nothing: no attempt leaves out GPUs
  std::vector<ProbeTarget> services;  // in the lines of the failure
  TimeNs now = kNoTime;               // by the wall clock
  TimeNs left_ns = kNoTime;           // of the allocation
  double chance = 0;                  // -1..1
};

// Whether a host failed, did not end or has a stuck process.
bool has_failed(const JointFacts& facts);

// Whether a signal from outside ended the attempt.
bool is_interrupted(const JointFacts& facts);

// The caller adds the checkpoint of the next attempt.
AgreedDecision decide_jointly(const JointFacts& facts);

}  // namespace culprit::app
