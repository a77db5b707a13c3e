// Neighbouring steps are not independent: what slows a process down (a preemption, a neighbour's job, a
// throttling) lasts for as long as it lasts, and is one event however many steps it covers. Evidence against
// a rank is therefore counted in events, and in beats where they come with a period. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace culprit::comm {

// A fault present in this share of all steps is no passing event: preemptions and neighbours' jobs take 3 to
// 12 of 100 to 250 steps.
constexpr size_t kLastingShare = 6;  // one of so many
// A live job goes on: it is waited for until more steps were slow than a passing event takes.
constexpr size_t kLastingLive = 16;
// The same where most of a job went well for thousands of steps: hits, and a minute of the job's time.
constexpr size_t kLastingHits = 48;
constexpr double kLastingMs = 60'000;
// Where the work is done on a host's cores: a neighbour's work came in pieces of up to 3 s in runs next to a
// load, and left the rank behind in three of four steps; a rank that was slowed on purpose was so in nine.
constexpr double kLastingOnCoresMs = 5'000, kBehindOnCores = 0.85;

// `hits`: by step, whether the rank was slow. How many independent events that is.
size_t count_events(const std::vector<bool>& hits);

// That so many events are chance where `expected` are usual: minus the logarithm of the probability.
double recurrence_evidence(size_t events, double expected);

// A rank that is slow in one step of so many.
struct Rhythm {
  size_t period = 0;    // steps; 0: there is none
  size_t hits = 0;      // beats in which it was slow
  double evidence = 0;  // log likelihood ratio, less what the choice of a period costs
};
// `others`: by step, how many of `ranks` other ranks were slow: what all do with a period is no rank's fault.
Rhythm find_rhythm(const std::vector<bool>& hits, const std::vector<uint32_t>& others, size_t ranks);

}  // namespace culprit::comm
