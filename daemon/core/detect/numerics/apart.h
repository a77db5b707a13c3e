// Whether one rank's local metrics stand apart from its peers': before the reduction, peers see samples of
// one distribution on one model, so that no rank should be far from the others again and again.
//
// Each value is compared with the median of the other ranks, less what the rank is usually off by, in units
// of what it usually varies by (a rank may have a domain of data of its own). How rare that is tells the
// column's own past over all ranks, its tail continued as a power (Hill): tails of training metrics are
// heavy. Rarity adds up over steps, for each rank, metric and direction, as the logarithm of an e-value: a
// bet against the rank being as its peers, of which the winnings grow beyond x in at most one of x tries.
// No single step may win; and who is named must have won twice what any rank ever did in that metric
// before, since neighbouring steps are not independent. Owned by one detector; one thread.
#pragma once

#include <span>
#include <vector>

#include "core/detect/numerics/equal.h"
#include "core/detect/numerics/tail.h"
#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

class Apart {
 public:
  struct Alarm {
    uint32_t slot = 0, column = 0;
    int64_t since = 0;     // the first step that counts
    bool above = false;    // of its peers
    double evidence = 0;   // logarithm of the e-value
    bool single = false;   // one step alone, beyond all experience
    bool shifted = false;  // a loss that stays above its peers', a little in each step
    double beside = 0;     // the same of the rank's loss, upwards: its samples are hard
  };
  // Of all groups together so many columns are watched: of many each keeps less of its past, and looks at
  // it anew not in every step.
  void set_share(size_t columns);
  // Alarms of this step. Of slots, those not `astray` are compared.
  std::vector<Alarm> step(const Frame& frame, const Window& window, std::span<const uint32_t> slots,
                          const Marks& astray);
  // How far the slot at this place is from its peers, 0..1, by what has added up.
  float odd(size_t place) const {
    return place < most_.size() && bar_ > 0 ? std::min(1.0F, most_[place] / static_cast<float>(bar_)) : 0;
  }

 private:
  // Of one rank and metric.
  struct Cell {
    float bias = 0, scale = 0;    // what it is usually off by, and varies by
    float won[2] = {0, 0};        // downwards, upwards
    float best = 0, record = 0;   // of this run of wins, of runs that ended
    int64_t since[2] = {-1, -1};  // the step at which the run of wins began; steps may number samples
    uint8_t seen = 0;             // steps, no more than 255
    bool told = false;
  };
  struct Column {
    Tail tail;  // of all ranks' distances
    uint32_t steps = 0;
    bool is_linear = false, is_fit = false;
    std::vector<Cell> cells;  // by place in slots
  };

  // Of one rank's loss: what it was off by before it began to add up, and what has.
  struct Shift {
    float bias = 0, sum = 0;
    int64_t since = 0;  // the step
    uint8_t seen = 0;
    bool told = false;
  };
  void see_shifts(const Frame& frame, std::span<const uint32_t> slots, std::vector<Alarm>& alarms);

  bool compare(Column& column, const std::vector<double>& values, std::span<const uint32_t> slots,
               const Marks& astray);
  void usual(Column& column);
  void place_bets(uint32_t number, const Frame& frame);
  void learn(Column& column);
  void see_single(const Frame& frame, std::span<const uint32_t> slots, std::vector<Alarm>& alarms);
  void settle(uint32_t number, std::span<const uint32_t> slots, std::vector<Alarm>& alarms);

  std::vector<Column> columns_;
  // Of this step: who is beyond all experience in what, and how rare each rank's loss is, by place.
  struct Single {
    size_t place = 0;
    uint32_t column = 0;
    double evidence = 0;
  };
  std::vector<Single> singles_;
  std::vector<double> loss_rarity_;
  std::vector<Shift> shifts_;  // by place
  std::optional<uint32_t> loss_;
  size_t ranks_ = 0, room_ = 0, refit_ = 1;
  uint64_t count_ = 0;                      // steps
  double bar_ = 0;                          // what has to be won
  std::vector<double> off_, raw_, values_;  // of the column under way, by place
  std::vector<float> sorted_;
  std::vector<float> most_;  // winnings, by place
};

}  // namespace culprit::core::numerics
