// Finds the process that delays a slow job, from several rounds of stacks. In one round, some process is last
// by chance; a process that is last in most rounds is slow. Each round is judged alone. A process outside of
// the collective in which the others wait gets a vote. Pure; borrows the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/stacks/layout.h"
#include "core/detect/stacks/members.h"
#include "core/detect/stacks/stacks.h"

namespace culprit::stacks {

// A process or host, and the rounds in which it got a vote.
struct RoundSuspect {
  const Process* process = nullptr;  // for a host: its process with most votes
  std::string host;                  // for a host with several ranks; else empty
  std::vector<const Process*> members;
  size_t votes = 0;
  double confidence = 0;
  Found found;  // its place in the last of these rounds
};

struct Rounds {
  size_t count = 0;    // rounds with at least two processes
  size_t telling = 0;  // rounds in which the others waited for a process
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  Members newest;                      // of the last round
  uint32_t capture = 0;                // its number; 0: unknown
  std::vector<RoundSuspect> suspects;  // most votes first; empty: none is distinct
};

// A round is a numbered capture. Samples without a number are counted back from each process's newest sample.
// Rounds that ended more than ten minutes before the newest round do not count.
Rounds judge_rounds(const Samples& samples, const GroupLayout& layout, const PlaceOfRank& place);

// Confidence, 0 to kRoundsSure, that a subject's `votes` in `rounds` are not chance. `share`: mean share of
// subjects with a vote per round; `subjects`: their number. Below three rounds the result is below 0.5.
constexpr double kRoundsSure = 0.7;
double confidence_of_votes(size_t votes, size_t rounds, double share, double subjects);

// "rank 3 was outside of a collective in 5 of 5 rounds over 40 s, while others waited: in …".
std::vector<std::string> round_sentences(const Rounds& rounds, const Samples& samples);

}  // namespace culprit::stacks
