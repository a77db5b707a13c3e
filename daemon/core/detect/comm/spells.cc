#include "core/detect/comm/spells.h"

#include <algorithm>
#include <cmath>

namespace culprit::comm {
namespace {

// Length of the longest passing event in steps, including gaps. Hits at a smaller distance may be one event.
constexpr size_t kApart = 12;
// Minimum number of beats of a rhythm; it must hit at least half of the beats. Three suffice if each is a
// separate event and none is missed. Only the last kStepsOfRhythm steps are searched.
constexpr size_t kBeats = 4, kBeatsApart = 3, kStepsOfRhythm = 2048;

double log_likelihood(double hits, double of, double share) {
  const double misses = of - hits;
  return (hits > 0 ? hits * std::log(share) : 0) + (misses > 0 ? misses * std::log(1 - share) : 0);
}

// An intermittent fault shows in half of the steps.
constexpr double kComesAndGoes = 0.5;

Run strongest_of(const std::vector<Mark>& marks, double shows, double floor, double even_floor) {
  const double hit = std::log(shows / floor), miss = std::log((1 - shows) / (1 - floor));
  const double even = std::log(kShows / even_floor);
  Run run;
  double sum = 0;
  size_t from = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    if (sum <= 0) sum = 0, from = i;
    sum += (marks[i].hit ? hit : miss) + (marks[i].even ? even : 0);
    if (sum > run.best) run = {sum, from, i};
  }
  return run;
}

}  // namespace

Run strongest(const std::vector<Mark>& marks, double floor, double even_floor) {
  const Run steady = strongest_of(marks, kShows, floor, even_floor);
  Run other = strongest_of(marks, kComesAndGoes, std::min(floor, kComesAndGoes), even_floor);
  other.best -= std::log(2.0);  // correction for two tried rates
  return other.best > steady.best ? other : steady;
}

double sure_of(double evidence, double bar, size_t steps) {
  const double by_evidence = 1 - kAlpha * std::exp(std::min(0.0, bar - evidence));
  return by_evidence * (1 - std::exp2(-static_cast<double>(steps)));
}

size_t count_events(const std::vector<bool>& hits) {
  size_t events = 0, last = 0;
  for (size_t i = 0; i < hits.size(); ++i) {
    if (!hits[i]) continue;
    if (events == 0 || i - last > kApart) ++events;
    last = i;
  }
  return events;
}

double recurrence_evidence(size_t events, double expected) {
  const auto k = static_cast<double>(events);
  if (k <= expected) return 0;
  // Chernoff: a Poisson variable is k or more with probability at most (e * expected / k)^k / e^expected.
  return expected - k + k * std::log(k / expected);
}

Rhythm find_rhythm(const std::vector<bool>& hits, const std::vector<uint32_t>& others, size_t ranks) {
  Rhythm best;
  const size_t from = hits.size() - std::min(hits.size(), kStepsOfRhythm), steps = hits.size() - from;
  double all = 0, all_of_others = 0;
  for (size_t i = from; i < hits.size(); ++i) all += hits[i], all_of_others += others[i];
  if (all < kBeatsApart || ranks == 0) return best;
  const double others_usual = (all_of_others + 1) / (static_cast<double>(steps * ranks) + 2);
  for (size_t period = 2; kBeatsApart * period <= steps; ++period)
    for (size_t phase = 0; phase < period; ++phase) {
      double beats = 0, on = 0, of_others = 0, before = 0;
      for (size_t i = from + phase; i < hits.size(); i += period) {
        ++beats;
        on += hits[i];
        of_others += others[i];
        before += on == 0;
      }
      const bool apart = on >= kBeatsApart && on == beats - before && on == all && period > kApart;
      if (apart) beats = on;  // the rhythm began later: earlier beats do not count
      if (!apart && (on < kBeats || 2 * on < beats)) continue;
      // Rate without a rhythm: the rate between the beats, or that of other ranks at the beats.
      const double usual = std::max((all - on + 1) / (static_cast<double>(steps) - beats + 2),
                                    (of_others + others_usual) / (beats * static_cast<double>(ranks) + 1));
      const double share = std::min(on / beats, 0.999);
      if (share <= usual) continue;
      const double evidence = log_likelihood(on, beats, share) - log_likelihood(on, beats, usual);
      if (evidence > best.evidence) best = {period, static_cast<size_t>(on), evidence};
    }
  // Correction for the number of tried periods and phases.
  const auto n = static_cast<double>(steps);
  best.evidence -= std::log(std::max(2.0, n * n / (2 * kBeatsApart * kBeatsApart)));
  return best.evidence > 0 ? best : Rhythm();
}

}  // namespace culprit::comm
