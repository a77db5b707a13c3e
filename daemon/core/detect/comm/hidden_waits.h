// Waits that no record shows. A rank that waits for another stage in an unrecorded operation looks slow,
// because its gap is long. Such a gap ends, in every step, within milliseconds of another rank's entry into
// another operation. The time from this entry to the gap's end varies far less than the gap. A gap from the
// rank's own work has no such pattern. Pure; one thread calls learn(), any thread calls the others.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "core/detect/comm/step.h"

namespace culprit::comm {

class HiddenWaits {
 public:
  // Sets Step::longest, after the comparison of roles.
  static void find_longest(Step& step);
  // Call for steps in order, after find_longest(). When a wait is first recognised, corrects the results in
  // `earlier`.
  void learn(const Cluster& cluster, const Step& step, std::deque<StepResult>& earlier);
  // Removes recognised waits from the step's excess and records the awaited operation of each.
  void mark(Step& step) const;
  void clear() { gaps_.clear(); }

 private:
  // Operation of a rank: its stream and its number within the step.
  struct Place {
    uint32_t rank = 0;  // index in the cluster
    uint32_t channel = 0;
    uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  // Another rank's operation whose entry may have ended the gap.
  struct Candidate {
    Place of;
    std::vector<float> after_ms;  // from the operation's entry to the end of the gap
    std::vector<int64_t> steps;   // steps of these values
  };
  struct Sighting {
    float gap_ms = 0, usual_ms = 0;  // the rank's gap, and its peers' gap
  };
  struct Gap {
    std::vector<Sighting> sightings;
    std::vector<Candidate> candidates;
    bool recognised = false;  // `candidates` holds only the operation that ends the gap
  };

  static Place place_of(const Step& step, uint32_t op);
  static std::vector<std::pair<Place, float>> entries_before_end(const Cluster& cluster, const Step& step,
                                                                 uint32_t op);
  static float gap_scatter(const Gap& gap);
  static void correct(const Candidate& seen, uint32_t rank, std::deque<StepResult>& earlier);
  void note(const Cluster& cluster, const Step& step, uint32_t op, std::deque<StepResult>& earlier);

  std::map<Place, Gap> gaps_;
};

}  // namespace culprit::comm
