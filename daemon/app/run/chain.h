// Attempts of `culprit run --retries` that go on in a successor: a job of Slurm with the same script. All
// jobs of the chain share the first one's folder and its attempts.jsonl. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/attempt.h"
#include "app/run/attempt_json.h"
#include "app/run/launch.h"

namespace culprit::app {

// Variables of a successor. The first one has the run's name and a digest of the command: another command of
// the same script begins a run of its own.
constexpr const char* kSuccessorVariable = "CULPRIT_SUCCESSOR_OF";
constexpr const char* kAttemptVariable = "CULPRIT_ATTEMPT";
constexpr const char* kResumeVariable = "CULPRIT_RESUME";

constexpr size_t kLedgerBytes = 16 << 20;  // limit of an attempts.jsonl that is read

struct Handover {
  std::string run;      // name of the chain's run
  uint32_t number = 1;  // of the next attempt
  std::string resume;   // its checkpoint; empty: none
};

// NAME=VALUE for the successor.
std::vector<std::string> handover_variables(const Handover& handover,
                                            const std::vector<std::string>& command);
// What a predecessor handed over to this command; nothing: there is none.
std::optional<Handover> handover_of(const std::vector<std::string>& command, const Lookup& variable);

// Whether job `id` of Slurm goes on after these attempts: it is their successor, or was requeued.
bool goes_on(const std::vector<Attempt>& attempts, std::string_view id);

// Nodes that these attempts left out.
std::vector<std::string> excluded_by(const std::vector<Attempt>& attempts);

}  // namespace culprit::app
