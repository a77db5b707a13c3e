// Finds the process that keeps a slow job waiting, from several rounds of stacks. In one round some process
// comes last by chance; one that comes last in most rounds is slow. Each round is judged alone; the processes
// that it finds outside of the collective in which the others wait get a vote. Pure; borrows the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/stacks/layout.h"
#include "core/detect/stacks/members.h"
#include "core/detect/stacks/stacks.h"

namespace culprit::stacks {

// A process, or a host, with votes in so many rounds.
struct RoundSuspect {
  const Process* process = nullptr;  // of a host: the one with most votes
  std::string host;                  // of a host with several ranks; else empty
  std::vector<const Process*> members;
  size_t votes = 0;
  double confidence = 0;
  Found found;  // where it was in the last of these rounds
};

struct Rounds {
  size_t count = 0;    // rounds with at least two processes
  size_t telling = 0;  // of these, rounds in which the others waited for somebody
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  Members newest;                      // of the last round
  uint32_t capture = 0;                // its number; 0: unknown
  std::vector<RoundSuspect> suspects;  // most votes first; empty: none stands out
};

// Rounds are numbered captures; samples without a number are counted back from the newest of each process.
// Those that ended more than ten minutes before the newest one do not count.
Rounds judge_rounds(const Samples& samples, const GroupLayout& layout, const PlaceOfRank& place);

// How sure it is that a subject with `votes` in `rounds` did not get them by chance: 0 to kRoundsSure.
// `share`: the mean share of subjects that got a vote in a round; `subjects`: how many there are. Below three
// rounds it stays below 0.5.
constexpr double kRoundsSure = 0.7;
double confidence_of_votes(size_t votes, size_t rounds, double share, double subjects);

// "rank 3 was outside of a collective in 5 of 5 rounds over 40 s, while others waited: in …".
std::vector<std::string> round_sentences(const Rounds& rounds, const Samples& samples);

}  // namespace culprit::stacks
