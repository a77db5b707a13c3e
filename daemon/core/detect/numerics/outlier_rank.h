// Detects a rank whose local metrics are outliers among its peers. Before the reduction, peers process
// samples of one distribution with one model. So no rank should differ from the others repeatedly.
//
// Each value is compared with the median of the other ranks. The rank's usual offset is subtracted, because a
// rank may have its own data domain. The result is divided by the rank's usual variation. The column's past
// over all ranks gives the probability of this distance. Beyond the past, a power law (Hill) extends the
// tail, because training metrics have heavy tails. Evidence accumulates over steps for each rank, metric and
// direction, as the logarithm of an e-value. The e-value is the winnings of a bet against the rank being like
// its peers. For a healthy rank, winnings exceed x in at most one of x tries. A single step cannot win.
// Neighbouring steps are not independent, so a named rank must have won twice as much as any rank in that
// metric before. Owned by one detector; one thread.
#pragma once

#include <span>
#include <vector>

#include "core/detect/numerics/replica_check.h"
#include "core/detect/numerics/tail.h"
#include "core/detect/numerics/window.h"

namespace culprit::numerics {

class OutlierRank {
 public:
  struct Alarm {
    uint32_t slot = 0, column = 0;
    int64_t since = 0;      // first step that counts
    bool above = false;     // above its peers
    double evidence = 0;    // logarithm of the e-value
    bool single = false;    // one step alone, far outside the past
    bool shifted = false;   // the loss is slightly above the peers' losses in each step
    double loss_score = 0;  // evidence of the rank's loss, upwards: its samples are hard
  };
  // `columns`: number of columns over all groups. With many columns, each stores a shorter past and is
  // refitted less often.
  void set_share(size_t columns);
  // Alarms of this step. Compares the `slots` that are not `astray`.
  std::vector<Alarm> step(const Frame& frame, const Window& window, std::span<const uint32_t> slots,
                          const Marks& astray);
  // Outlier score 0..1 of the slot at this place, from its accumulated evidence.
  float odd(size_t place) const {
    return place < most_.size() && bar_ > 0 ? std::min(1.0F, most_[place] / static_cast<float>(bar_)) : 0;
  }

 private:
  // One rank and metric.
  struct Cell {
    float bias = 0, scale = 0;    // usual offset and usual variation
    float won[2] = {0, 0};        // accumulated winnings, downwards and upwards
    float best = 0, record = 0;   // best of this run of wins; best of earlier runs
    int64_t since[2] = {-1, -1};  // step at which the run of wins began; steps may number samples
    uint8_t seen = 0;             // steps, at most 255
    bool reported = false;
  };
  struct Column {
    Tail tail;  // distances of all ranks
    uint32_t steps = 0;
    bool is_linear = false, is_fit = false;
    std::vector<Cell> cells;  // by place in `slots`
  };

  // Loss of one rank: its offset before the sum's first step, and the sum of excesses.
  struct Shift {
    float bias = 0, sum = 0;
    int64_t since = 0;  // the step
    uint8_t seen = 0;
    bool reported = false;
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
  // Of this step: ranks far outside the past, with their columns; rarity of each rank's loss, by place.
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
  double bar_ = 0;                          // winnings needed for an alarm
  std::vector<double> off_, raw_, values_;  // of the current column, by place
  std::vector<float> sorted_;
  std::vector<float> most_;  // winnings, by place
};

}  // namespace culprit::numerics
