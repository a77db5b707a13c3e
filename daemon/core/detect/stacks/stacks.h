// Names the processes that others wait for, from their stacks (docs/detectors.md). A process that waits in a
// collective is healthy; one that is elsewhere while its peers wait is the suspect. A process that waits for
// its device proves nothing. Silence alone accuses no hardware. If nothing distinguishes the processes, none
// is named. Pure; accepts any stacks.
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
  bool hangs = false;                        // the stacks alone show that the job stands still
  HangAnswer answer = HangAnswer::kUnknown;  // what the fault among `findings` says
  std::vector<std::string> missing;
};

struct StackQuestion {
  const Samples& samples;
  const GroupLayout& layout;
  PlaceOfRank place;        // empty: the dumps' own hosts
  bool known_hang = false;  // other evidence says that the job stands still
};
StackAnswer analyse_stacks(const StackQuestion& question);

// The same of a job that is slow but goes on, from rounds of stacks (rounds.h): a finding with symptom
// slowdown on the process that the others wait for in most of them, or none. `picture`: the newest round, and
// what the rounds say, in sentences.
struct SlowAnswer {
  std::optional<Finding> finding;
  StackPicture picture;
};
SlowAnswer analyse_rounds(const StackQuestion& question);

}  // namespace culprit::stacks
