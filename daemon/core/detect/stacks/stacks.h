// Finds the processes that others wait for, from their stacks (docs/detectors.md). A process in a collective
// is healthy; a process elsewhere while its peers wait is the suspect. A wait for the device proves nothing.
// Silence alone accuses no hardware. If nothing distinguishes the processes, none is named. Pure; accepts any
// stacks.
#pragma once

#include <string>
#include <vector>

#include "core/detect/stacks/layout.h"
#include "core/detect/stacks/samples.h"
#include "model/finding.h"
#include "model/rank_place.h"
#include "model/report.h"

namespace culprit::stacks {

struct StackAnswer {
  std::vector<Finding> findings;
  std::vector<Suspect> suspects;             // of the hang, best first
  std::vector<StackCluster> clusters;        // of all processes, largest first
  bool hangs = false;                        // the stacks alone prove a standstill
  HangAnswer answer = HangAnswer::kUnknown;  // the answer of the fault among `findings`
  std::vector<std::string> missing;
};

struct StackQuestion {
  const Samples& samples;
  const GroupLayout& layout;
  PlaceOfRank place;        // empty: use the dumps' own hosts
  bool known_hang = false;  // other evidence proves a standstill
};
StackAnswer analyse_stacks(const StackQuestion& question);

// The same for a slow job that makes progress, from rounds of stacks (rounds.h). The finding has symptom
// slowdown and names the process that delays most rounds; or there is none. `picture`: the newest round, and
// the rounds' result in sentences.
struct SlowAnswer {
  std::optional<Finding> finding;
  StackPicture picture;
};
SlowAnswer analyse_rounds(const StackQuestion& question);

}  // namespace culprit::stacks
