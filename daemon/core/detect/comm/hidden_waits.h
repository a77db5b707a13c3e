// Waits that no record shows. A rank that waits for another stage in an operation that was not recorded looks
// slow: its gap is long. Such a gap ends within milliseconds of another rank entering an operation that the
// first one has no part in, in every step, and their distance scatters far less than the gap itself. Work of
// its own does not do that. Pure; one thread learns, any thread marks.
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
  // Steps in their order, once their roles are compared. `earlier`: results of the steps before it, corrected
  // where a wait is recognised only now.
  void learn(const Cluster& cluster, const Step& step, std::deque<StepResult>& earlier);
  // Takes recognised waits out of the step's excess and notes what they waited for.
  void mark(Step& step) const;
  void clear() { gaps_.clear(); }

 private:
  // An operation of a rank by its stream and its number in the step.
  struct Place {
    uint32_t rank = 0;  // index in the cluster
    uint32_t channel = 0;
    uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  // Another rank's operation whose entry may have ended the gap.
  struct Candidate {
    Place of;
    std::vector<float> after_ms;  // from its entry to the gap's end
    std::vector<int64_t> steps;   // of these
  };
  struct Sighting {
    float gap_ms = 0, usual_ms = 0;  // the rank's own, and that of its peers
  };
  struct Gap {
    std::vector<Sighting> sightings;
    std::vector<Candidate> candidates;
    bool recognised = false;  // candidates holds the one that ends it
  };

  static Place place_of(const Step& step, uint32_t op);
  static std::vector<uint32_t> longest_gaps(const Step& step);
  static std::vector<std::pair<Place, float>> entries_before_end(const Cluster& cluster, const Step& step,
                                                                 uint32_t op);
  static float gap_scatter(const Gap& gap);
  static void correct(const Candidate& seen, uint32_t rank, std::deque<StepResult>& earlier);
  void note(const Cluster& cluster, const Step& step, uint32_t op, std::deque<StepResult>& earlier);

  std::map<Place, Gap> gaps_;
};

}  // namespace culprit::comm
