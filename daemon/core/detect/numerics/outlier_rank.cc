#include "core/detect/numerics/outlier_rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace culprit::numerics {

namespace {

// Steps in the past: enough to fit a tail, few enough to track the training.
constexpr size_t kRankPastSteps = 64;
// Ranks that contribute distances per step, in rotation; more ranks do not improve the quantiles.
constexpr size_t kPastRanks = 8;
// Maximum number of stored distances over all groups and metrics, 4 bytes each; minimum per metric for a
// meaningful tail.
constexpr size_t kDistances = 16 << 20, kDistancesLeast = 128;
// Columns refitted per step: 5 us each. A past of 64 steps hardly changes within 8 steps.
constexpr size_t kFits = 16'384, kRefitMost = 8;
constexpr uint32_t kFirstBets = 24;  // learning steps before any bet
constexpr double kBiasSteps = 16, kBiasPrior = 8;
constexpr double kScaleSteps = 64, kScalePrior = 16;
constexpr double kClip = 3;  // maximum influence of a value on the usual value, in median distances

// Limits for a loss persistently above its peers: Page's cumulative sum of excesses beyond one standard
// deviation, at most three per step. The sum reaches kShiftBar after twelve steps at the earliest.
constexpr double kShiftAllowed = 1, kShiftMost = 3, kShiftBar = 24, kShiftDoubt = 4, kShiftSteps = 32;

constexpr double kUsualLoss = 0.06;  // probability below which a loss is an outlier

constexpr double kWinMax = 7;     // per step: two extreme steps are not enough
constexpr double kHit = 1.5;      // minimum win that begins a run
constexpr double kRunEnds = 1.0;  // remaining winnings below which a run has ended
constexpr double kSuspect = 6;    // winnings above which a rank does not contribute to the past
constexpr double kRecords = 2;    // required multiple of the largest winnings by chance
// Steps between false alarms, over all ranks and metrics of a group.
constexpr double kStepsBetween = 1e4;

double win_of(double p) { return std::min(bet(p), kWinMax); }

}  // namespace

// Sets off_: by place, the value minus the median of the others; NaN without a value.
bool OutlierRank::compare(Column& column, const std::vector<double>& cells, std::span<const uint32_t> slots,
                          const Marks& astray) {
  off_.assign(slots.size(), std::numeric_limits<double>::quiet_NaN());
  values_.clear();
  bool has_positive_only = true;
  for (size_t place = 0; place < slots.size(); ++place) {
    const uint32_t slot = slots[place];
    if (slot >= cells.size() || astray[slot] || !std::isfinite(cells[slot])) continue;
    off_[place] = cells[slot];
    has_positive_only &= cells[slot] > 0;
    values_.push_back(cells[slot]);
  }
  if (values_.size() < 3) return false;
  if (!has_positive_only && !column.is_linear && column.steps <= kFirstBets) {
    // Statistics of logarithms are not valid for linear values, so they restart.
    column = {};
    column.is_linear = true;
    column.cells.resize(slots.size());
  }
  if (!column.is_linear) {
    for (double& value : values_) value = std::log(value);
    for (double& value : off_) value = value > 0 ? std::log(value) : std::numeric_limits<double>::quiet_NaN();
    values_.erase(std::remove_if(values_.begin(), values_.end(), [](double v) { return !std::isfinite(v); }),
                  values_.end());
    if (values_.size() < 3) return false;
  }
  // The median without one value follows from the three middle values.
  const size_t n = values_.size(), half = n / 2;
  std::nth_element(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(half), values_.end());
  const double upper = values_[half];
  const double below = *std::max_element(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(half));
  double above = upper;
  if (half + 1 < n)
    above = *std::min_element(values_.begin() + static_cast<ptrdiff_t>(half) + 1, values_.end());
  for (double& value : off_) {
    if (std::isnan(value)) continue;
    double median = 0;
    if (n % 2 == 0) {
      median = value >= upper ? below : upper;
    } else {
      median = value > upper   ? (below + upper) / 2
               : value < upper ? (upper + above) / 2
                               : (below + above) / 2;
    }
    value -= median;
  }
  return true;
}

void OutlierRank::place_bets(uint32_t number, const Frame& frame) {
  Column& column = columns_[number];
  static const std::array<double, 3> kUsual = {win_of(0.5 * 0.125), win_of(0.5 * 0.25), win_of(0.5)};
  static const double kOther = win_of(0.75);
  for (size_t place = 0; place < off_.size(); ++place) {
    Cell& cell = column.cells[place];
    const double off = off_[place];
    if (std::isnan(off)) continue;
    const double p = column.tail.rarity(std::abs(off));
    if (number == loss_) loss_rarity_[place] = p;
    if (-std::log(p) > bar_ && off > 0) singles_.push_back({place, number, -std::log(p)});
    for (const bool up : {false, true}) {
      double win = kOther;
      if ((off > 0) == up) {
        win = p < 0.125 ? win_of(p / 2) : p < 0.25 ? kUsual[0] : p < 0.5 ? kUsual[1] : kUsual[2];
      }
      float& won = cell.won[up];
      if (won < kRunEnds) cell.since[up] = -1;
      won = std::max(0.0F, won + static_cast<float>(win));
      if (cell.since[up] < 0 && win >= kHit) cell.since[up] = frame.step;
    }
    const float most = std::max(cell.won[0], cell.won[1]);
    if (most > kRunEnds) {
      cell.best = std::max(cell.best, most);
      continue;
    }
    if (!cell.reported) cell.record = std::max(cell.record, cell.best);
    cell.best = 0;
    cell.reported = false;
  }
}

// Converts off_ to distances in units of each rank's usual variation, and updates the usual values.
void OutlierRank::usual(Column& column) {
  double pool = 0;
  size_t n = 0;
  for (const Cell& cell : column.cells) {
    if (cell.seen == 0) continue;
    pool += cell.scale;
    ++n;
  }
  pool = n > 0 ? pool / static_cast<double>(n) : 0;
  // For normal and Laplace distributions, the median distance is .6 to .85 of the mean distance.
  const double clip =
      column.steps < 4 || pool <= 0 ? std::numeric_limits<double>::infinity() : kClip * 0.7 * pool;
  for (size_t place = 0; place < off_.size(); ++place) {
    if (std::isnan(off_[place])) continue;
    Cell& cell = column.cells[place];
    const double seen = cell.seen;
    const double at_bias = std::min(seen, kBiasSteps), at_scale = std::min(seen, kScaleSteps);
    double ratio = 1;
    if (seen > 0 && pool > 0) {
      ratio = (cell.scale * at_scale + pool * kScalePrior) / ((at_scale + kScalePrior) * pool);
    }
    const double off = off_[place];
    const double bias = cell.bias * at_bias / (at_bias + kBiasPrior);
    const double limited = std::clamp(off, cell.bias - clip * ratio, cell.bias + clip * ratio);
    off_[place] = (off - bias) / ratio;
    cell.bias += static_cast<float>((limited - cell.bias) / std::min(seen + 1, kBiasSteps));
    const double spread = std::min(std::abs(limited - cell.bias), clip * ratio);
    cell.scale += static_cast<float>((spread - cell.scale) / std::min(seen + 1, kScaleSteps));
    cell.seen = static_cast<uint8_t>(std::min(255.0, seen + 1));
  }
}

// Adds this step to the past. off_ has distances in units of the rank's own variation.
void OutlierRank::learn(Column& column) {
  const size_t most = std::min(std::min(off_.size(), kPastRanks) * kRankPastSteps, room_);
  const size_t stride = std::max<size_t>(1, off_.size() / kPastRanks);
  for (size_t place = 0; place < off_.size(); ++place) {
    if (std::isnan(off_[place]) || (place + count_) % stride != 0) continue;
    const Cell& cell = column.cells[place];
    if (std::max(cell.won[0], cell.won[1]) > kSuspect) continue;
    column.tail.add(static_cast<float>(std::abs(off_[place])), most);
  }
}

void OutlierRank::settle(uint32_t number, std::span<const uint32_t> slots, std::vector<Alarm>& alarms) {
  Column& column = columns_[number];
  // The two ranks with the largest winnings, now or earlier.
  size_t first = slots.size();
  float second_most = 0, most = 0;
  for (size_t place = 0; place < slots.size(); ++place) {
    const Cell& cell = column.cells[place];
    const float ever = std::max(cell.record, cell.best);
    most_[place] = std::max({most_[place], cell.won[0], cell.won[1]});
    if (ever > most) {
      second_most = most;
      most = ever;
      first = place;
    } else {
      second_most = std::max(second_most, ever);
    }
  }
  if (first == slots.size()) return;
  Cell& cell = column.cells[first];
  const bool up = cell.won[1] > cell.won[0];
  const double by_chance = std::max(second_most, cell.record);
  if (cell.reported || cell.won[up] <= bar_ + kRecords * by_chance || cell.since[up] < 0) return;
  cell.reported = true;
  Alarm alarm{.slot = slots[first], .column = number, .since = cell.since[up], .above = up};
  alarm.evidence = cell.won[up];
  if (loss_ && columns_[*loss_].cells.size() == slots.size())
    alarm.loss_score = columns_[*loss_].cells[first].won[1];
  alarms.push_back(alarm);
}

// Accuses a rank from a single step, if its value is extreme given the column's past and the number of
// values. If the rank's loss is also an outlier, the sample is the cause. Only high norms and maxima count: a
// single wrong value raises them and hardly ever lowers them.
void OutlierRank::see_single(const Frame& frame, std::span<const uint32_t> slots,
                             std::vector<Alarm>& alarms) {
  for (const Single& single : singles_) {
    const bool can_grow = single.column != loss_ && !columns_[single.column].is_linear;
    if (!can_grow || loss_rarity_[single.place] < kUsualLoss) continue;
    alarms.push_back({.slot = slots[single.place],
                      .column = single.column,
                      .since = frame.step,
                      .above = true,
                      .evidence = single.evidence,
                      .single = true});
  }
}

// Detects a lasting change of one rank's samples, such as another data domain, without extreme single steps.
void OutlierRank::see_shifts(const Frame& frame, std::span<const uint32_t> slots,
                             std::vector<Alarm>& alarms) {
  const Column& column = columns_[*loss_];
  const double scale = 1.4826 * column.tail.median();
  shifts_.resize(slots.size());
  for (size_t place = 0; place < slots.size(); ++place) {
    Shift& shift = shifts_[place];
    if (std::isnan(raw_[place])) continue;
    if (column.is_fit && scale > 0) {
      const double z = (raw_[place] - shift.bias) / scale;
      if (shift.sum <= 0) shift.reported = false;
      if (shift.sum < 1 && z > 1) shift.since = frame.step;
      shift.sum += static_cast<float>(std::clamp(z, -kShiftMost, kShiftMost) - kShiftAllowed);
      shift.sum = std::max(0.0F, shift.sum);
      if (shift.sum >= kShiftBar && !shift.reported) {
        shift.reported = true;
        alarms.push_back({.slot = slots[place],
                          .column = *loss_,
                          .since = shift.since,
                          .above = true,
                          .evidence = shift.sum,
                          .shifted = true,
                          .loss_score = shift.sum});
      }
    }
    // While the sum is high, the usual value is frozen.
    if (shift.sum > kShiftDoubt) continue;
    const double limit = column.is_fit ? 2 * kShiftMost * scale : std::numeric_limits<double>::infinity();
    const double off = std::clamp(raw_[place] - shift.bias, -limit, limit);
    shift.seen = static_cast<uint8_t>(std::min(kShiftSteps, shift.seen + 1.0));
    shift.bias += static_cast<float>(off / shift.seen);
  }
}

void OutlierRank::set_share(size_t columns) {
  room_ = std::clamp(kDistances / std::max<size_t>(1, columns), kDistancesLeast, kRankPastSteps * kPastRanks);
  refit_ = std::clamp<size_t>(columns / kFits, 1, kRefitMost);
}

std::vector<OutlierRank::Alarm> OutlierRank::step(const Frame& frame, const Window& window,
                                                  std::span<const uint32_t> slots, const Marks& astray) {
  std::vector<Alarm> alarms;
  if (slots.size() < 3) return alarms;
  if (slots.size() != ranks_) {
    const size_t room = room_, refit = refit_;
    *this = OutlierRank();
    room_ = room;
    refit_ = refit;
  }
  ranks_ = slots.size();
  ++count_;
  most_.assign(ranks_, 0);
  singles_.clear();
  loss_rarity_.assign(ranks_, 1);
  columns_.resize(std::max(columns_.size(), frame.values.size()));
  bar_ = std::log(2.0 * static_cast<double>(ranks_) * static_cast<double>(columns_.size()) * kStepsBetween);
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (is_planned(role) || is_shared(role) || role == Role::kTiming) continue;
    Column& column = columns_[number];
    if (column.cells.empty()) {
      column.cells.resize(slots.size());
      // A cosine has a sign, and the logarithm of an entropy near zero would dominate.
      column.is_linear = role == Role::kGradCos || role == Role::kEntropy;
      if (role == Role::kLoss && !loss_) loss_ = number;
    }
    if (!compare(column, frame.values[number], slots, astray)) continue;
    if (loss_ == number) raw_ = off_;
    usual(column);
    const bool is_due = (number + count_) % refit_ == 0;
    if (++column.steps > kFirstBets && is_due) column.is_fit = column.tail.fit(sorted_);
    if (column.is_fit) place_bets(number, frame);
    learn(column);
    if (column.is_fit) settle(number, slots, alarms);
    if (loss_ == number) see_shifts(frame, slots, alarms);
  }
  see_single(frame, slots, alarms);
  return alarms;
}

}  // namespace culprit::numerics
