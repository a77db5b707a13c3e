#include "core/detect/numerics/global_shift.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

namespace culprit::numerics {

namespace {

constexpr int64_t kLearningSteps = 24;  // learning steps before any judgement from the past
constexpr size_t kPastSteps = 64;       // steps of the past used for tails and roughness
// Maximum number of ranks counted as independent, because all share the loss curve.
constexpr size_t kRanks = 8;
constexpr double kRarest = 1e-4;     // lower limit of one rank's probability
constexpr double kLevel = 1.0 / 16;  // weight of one step in the usual value
constexpr double kJump = 0.5;        // maximum influence of one step on the usual value, in log units
constexpr std::array<size_t, 3> kWindows = {1, 2, 4};      // numbers of steps judged together
constexpr double kByChance = 1 / (2e4 * kWindows.size());  // target: one false alarm in 2e4 steps
constexpr size_t kGrowthSteps = 8;
const double kGrowth = std::log(1.5);
constexpr int64_t kPlanSteps = 20;  // steps after a planned change in which metrics may move
constexpr int64_t kPlanLasts = 64;  // steps after a planned change that may explain a climb
constexpr double kClimb = 6;  // standard errors above the best: probability 1e-9 for a normal distribution
// Maximum ratio of an update's norm to the parameters' norm. In data/sdc, after the first steps, stable
// trainings stay below .0135 and unstable ones above .030; .02 is the geometric mean.
constexpr double kFast = 0.02;
// Updates of this ratio replace the parameters within a few steps; an alarm needs no evidence from the loss.
constexpr double kTooFast = 0.1;
// lower limit during or soon after such large updates, where a climb is expected
constexpr double kClimbFast = 2.5;
// Factor above the maximum rate so far that no schedule reaches; schedules in data/sdc leap up to 16 times.
constexpr double kReckless = 100;
constexpr uint32_t kFirstRates = 3;
// Limits for the movement of the parameters' norm by an update and weight decay. A larger movement means that
// other parameters were loaded.
constexpr double kReplaced = 2, kReplacedShare = 0.01, kReplacedAlone = 0.05, kReplacedTimes = 20;
constexpr double kPause = 20;  // times the usual step
constexpr double kPauseSeconds = 30;

double capped(double change) { return std::clamp(change, -kJump, kJump); }

// Probability that the sum of n exponential variables exceeds x.
double gamma_beyond(double x, size_t n) {
  double term = std::exp(-x), sum = term;
  for (size_t i = 1; i < n; ++i) sum += term *= x / static_cast<double>(i);
  return std::min(1.0, sum);
}

double median_of(std::deque<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void keep(std::deque<double>& values, double value, size_t most) {
  values.push_back(value);
  if (values.size() > most) values.pop_front();
}

bool grows_before_instability(Role role) {
  return role == Role::kUpdateNorm || role == Role::kParamNorm || role == Role::kQueryNorm ||
         role == Role::kKeyNorm || role == Role::kActMax;
}
bool moves_by_plan(Role role) {
  return role == Role::kUpdateNorm || role == Role::kLoss || role == Role::kGradNorm ||
         role == Role::kReduced || role == Role::kGradCos;
}

}  // namespace

std::optional<double> GlobalShift::median(const Frame& frame, uint32_t column, const Marks& astray) {
  room_.clear();
  const auto& cells = frame.values[column];
  for (uint32_t slot = 0; slot < cells.size(); ++slot) {
    if (!astray[slot] && is_reported(cells[slot]) && !std::isnan(cells[slot])) room_.push_back(cells[slot]);
  }
  if (room_.empty()) return {};
  const auto middle = room_.begin() + static_cast<ptrdiff_t>(room_.size() / 2);
  std::nth_element(room_.begin(), middle, room_.end());
  return *middle;
}

void GlobalShift::add_medians(const Frame& frame, const Window& window, const Marks& astray) {
  medians_.assign(frame.values.size(), {});
  before_.resize(frame.values.size());
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (role == Role::kLoss && !loss_) loss_ = number;
    if (role == Role::kRate && !rate_) rate_ = number;
    const bool whole = window.names()[number].text.find('/') == std::string::npos;
    if (role == Role::kParamNorm && whole && !param_) param_ = number;
    if (role == Role::kUpdateNorm && whole && !update_) update_ = number;
    if (!is_planned(role) && !grows_before_instability(role) && !moves_by_plan(role)) continue;
    medians_[number] = median(frame, number, astray);
  }
}

// Updates each metric's usual value, and its movement since a planned change.
void GlobalShift::follow(const Frame& frame, const Window& window) {
  for (uint32_t number = 0; number < medians_.size(); ++number) {
    const Role role = window.names()[number].role;
    if (!medians_[number] || is_planned(role)) continue;
    double value = *medians_[number];
    // Each metric has one series.
    auto at =
        std::find_if(series_.begin(), series_.end(), [&](const Series& s) { return s.column == number; });
    if (at == series_.end()) at = series_.insert(at, Series{number, role, {}, 0, 0, {0, 0}, 0});
    if (!(std::abs(value) > 0) || !std::isfinite(value)) continue;
    value = role == Role::kGradCos ? value : std::log(std::abs(value));
    keep(at->last, value, kGrowthSteps + 3);
    const double off = value - at->level;
    if (at->steps++ == 0) {
      at->level = value;
      continue;
    }
    const double limit = at->steps < kLearningSteps ? std::numeric_limits<double>::infinity() : 4 * at->scale;
    // After a planned change, the usual value is frozen.
    if (plan_ && plan_->step <= frame.step && frame.step - plan_->step <= kPlanSteps && !plan_->reported) {
      if (at->scale > 0 && moves_by_plan(role)) {
        for (const bool up : {false, true}) {
          at->moved[up] = std::max(0.0, at->moved[up] + std::min(4.0, (up ? off : -off) / at->scale) - 1.5);
        }
      }
      continue;
    }
    at->level += std::clamp(off, -limit, limit) * std::max(kLevel, 1.0 / at->steps);
    at->scale += (std::min(std::abs(off), limit) - at->scale) * std::max(kLevel, 1.0 / at->steps);
  }
}

void GlobalShift::plan(int64_t step, std::string what) {
  plan_ = Plan{.step = step, .what = std::move(what)};
  for (Series& series : series_) series.moved[0] = series.moved[1] = 0;
}

void GlobalShift::see_pause(const Frame& frame) {
  if (frame.first_ns == kNoTime) return;
  if (last_ns_ != kNoTime && frame.step > step_) {
    const double seconds =
        static_cast<double>(frame.first_ns - last_ns_) / 1e9 / static_cast<double>(frame.step - step_);
    const double usual = median_of(pauses_);
    if (pauses_.size() >= 8 && seconds > kPause * usual && seconds > kPauseSeconds) {
      restart(frame.step, fmt::format("a pause of {:.0f} s ended, as of a restart", seconds));
    } else {
      keep(pauses_, seconds, 32);
    }
  }
  last_ns_ = frame.first_ns;
}

void GlobalShift::restart(int64_t step, std::string what) {
  plan(step, std::move(what));
  restart_step_ = step;
  usual_loss_.clear();
  oddness_.clear();
  drifts_.clear();
}

std::string GlobalShift::title_of(const Leap& leap) {
  return fmt::format("The learning rate rose from {:g} to {:g} at step {}", leap.from, leap.to, leap.step);
}

std::optional<GlobalShift::Leap> GlobalShift::leap_before(int64_t step) const {
  if (!leap_ || step < leap_->step || step - leap_->step > kPlanSteps) return {};
  return leap_;
}

void GlobalShift::see_rate(double was, double now, const Frame& frame, const std::string& name) {
  const double change = std::abs(std::log(now / was));
  const double most =
      rate_changes_.empty() ? 0 : *std::max_element(rate_changes_.begin(), rate_changes_.end());
  // A schedule changes smoothly. A leap by a fifth, and by four times the largest recent change, is a manual
  // setting.
  const bool is_set = rate_changes_.size() >= 8 && change > std::max(0.2, 4 * most);
  const bool is_reckless = ++rates_ > kFirstRates && now > kReckless * rate_most_;
  if (is_set || is_reckless) plan(frame.step, fmt::format("{} went from {:g} to {:g}", name, was, now));
  if ((is_set || is_reckless) && now > rate_most_) leap_ = Leap{frame.step, was, now, rate_most_, name};
  rate_most_ = std::max({rate_most_, was, now});
  keep(rate_changes_, change, 16);
}

// Detects loaded weights: a change of the parameters that no update explains.
void GlobalShift::see_weights(const Frame& frame, const Window& window) {
  if (!param_ || !medians_[*param_] || !before_[*param_]) return;
  const double now = *medians_[*param_], was = *before_[*param_];
  if (!std::isfinite(now) || !(was > 0) || !std::isfinite(was)) return;
  const double drift = std::abs(now - was);
  bool replaced = false;
  if (update_ && medians_[*update_]) {
    const double update = *medians_[*update_];
    replaced = std::isfinite(update) && drift > kReplaced * update + kReplacedShare * was;
  } else if (drifts_.size() >= 8) {
    replaced = drift > kReplacedAlone * was && drift / was > kReplacedTimes * median_of(drifts_);
  }
  if (replaced)
    restart(frame.step, fmt::format("other weights were loaded: {} went from {:g} to {:g}",
                                    window.names()[*param_].text, was, now));
  else
    keep(drifts_, drift / was, 16);
}

void GlobalShift::see_pace(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (!param_ || !update_ || !medians_[*param_] || !medians_[*update_]) return;
  const double ratio = *medians_[*update_] / *medians_[*param_];
  fast_steps_ = ratio > kFast ? fast_steps_ + 1 : 0;
  // The first updates of a new model are large in every training.
  if (fast_steps_ >= kGrowthSteps && steps_ >= int64_t{2 * kGrowthSteps}) fast_at_ = steps_;
  if (ratio <= kTooFast) rush_.reset();
  if (ratio <= kTooFast || steps_ < int64_t{kGrowthSteps}) return;
  if (!rush_) rush_ = Rush{frame.step, 0};
  if (++rush_->steps != 2 * kGrowthSteps) return;
  Alarm alarm{.cause = Cause::kUnstable, .since = frame.step, .confidence = 0.8};
  alarm.metrics = {window.names()[*update_].text, window.names()[*param_].text};
  alarm.why =
      fmt::format("each update moves the parameters by more than {:g} % of their norm from step {} on",
                  100 * kTooFast, rush_->since);
  raise(std::move(alarm), alarms);
}

bool GlobalShift::is_fast() const { return fast_at_ && steps_ - *fast_at_ <= kPlanLasts; }

void GlobalShift::see_plan(const Frame& frame, const Window& window) {
  see_pause(frame);
  see_weights(frame, window);
  if (is_announced_) restart(frame.step, "a restart was announced");
  is_announced_ = false;
  for (uint32_t number = 0; number < medians_.size(); ++number) {
    const Role role = window.names()[number].role;
    if (!is_planned(role) || !medians_[number] || !before_[number]) continue;
    const double now = *medians_[number], was = *before_[number];
    std::string what;
    if (role == Role::kDataStage && now != was) {
      what = fmt::format("{} went from {:g} to {:g}", window.names()[number].text, was, now);
    }
    if (role == Role::kTokens) {
      const bool changed = std::abs(now - was) > 0.1 * std::abs(was);
      if (changed && tokens_alike_ >= 16) {
        what = fmt::format("{} went from {:g} to {:g}", window.names()[number].text, was, now);
      }
      tokens_alike_ = now == was ? tokens_alike_ + 1 : 0;
    }
    if (role == Role::kRate && now > 0 && was > 0) see_rate(was, now, frame, window.names()[number].text);
    if (what.empty()) continue;
    plan(frame.step, std::move(what));
  }
}

void GlobalShift::follow_plan(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (!plan_ || plan_->reported || frame.step - plan_->step > kPlanSteps) return;
  const bool is_reckless = leap_ && leap_->step == plan_->step && leap_->to > kReckless * leap_->most;
  Alarm alarm{.cause = is_reckless ? Cause::kUnstable : Cause::kPlanned, .since = plan_->step};
  for (const Series& series : series_) {
    if (std::max(series.moved[0], series.moved[1]) < 8) continue;
    alarm.metrics.push_back(window.names()[series.column].text);
  }
  if (alarm.metrics.empty()) return;
  plan_->reported = true;
  alarm.confidence = 0.8;
  alarm.why = fmt::format("{} moved after step {}, at which {}", alarm.metrics[0], plan_->step, plan_->what);
  if (is_reckless) alarm.title = title_of(*leap_);
  alarms.push_back(std::move(alarm));
  for (Series& series : series_) series.moved[0] = series.moved[1] = 0;
}

// Finds growth of norms before this step, relative to a few steps earlier.
void GlobalShift::see_growth() {
  grown_.reset();
  if (steps_ < kLearningSteps / 2) return;
  for (const Series& series : series_) {
    if (!grows_before_instability(series.role) || series.last.size() < kGrowthSteps + 3) continue;
    const auto middle = [&series](size_t at) {
      std::array<double, 3> three = {series.last[at], series.last[at + 1], series.last[at + 2]};
      std::sort(three.begin(), three.end());
      return three[1];
    };
    double growth = middle(kGrowthSteps - 1) - middle(0);
    // Updates grow with the learning rate during warm-up, so they do not count there.
    if (series.role == Role::kUpdateNorm && rate_ && steps_ < 2 * kLearningSteps) continue;
    if (growth > kGrowth) grown_ = series.column;
  }
}

// Detects a loss above its usual value on all ranks.
void GlobalShift::see_losses(const Frame& frame, const Window& window, const Marks& astray,
                             std::vector<Alarm>& alarms) {
  const auto& cells = frame.values[*loss_];
  usual_loss_.resize(window.slots(), std::numeric_limits<float>::quiet_NaN());
  const bool is_fit = steps_ >= kLearningSteps && past_.fit(sorted_);
  const size_t stride = std::max<size_t>(1, cells.size() / kRanks);
  double sum = 0;
  size_t n = 0;
  std::vector<double>& distinct = distinct_losses_;
  distinct.clear();
  for (uint32_t slot = 0; slot < cells.size(); ++slot) {
    if (astray[slot] || !std::isfinite(cells[slot]) || cells[slot] <= 0) continue;
    const auto value = static_cast<float>(std::log(cells[slot]));
    float& usual = usual_loss_[slot];
    if (std::isnan(usual)) {
      usual = value;
      continue;
    }
    const float off = value - usual;
    if (is_fit) {
      ++n;
      distinct.push_back(cells[slot]);
      if (off > 0) sum -= std::log(std::max(past_.rarity(off) / 2, kRarest));
    }
    if ((slot + static_cast<uint64_t>(steps_)) % stride == 0) past_.add(std::abs(off), kPastSteps * kRanks);
    usual += static_cast<float>(capped(off) * std::max(kLevel, 1.0 / static_cast<double>(steps_ + 1)));
  }
  if (n < 2) return;
  // Ranks with one sample, or with a reduced loss, report the same number and count as one.
  std::sort(distinct.begin(), distinct.end());
  const auto ranks = static_cast<size_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
  const size_t counted = std::min(ranks, kRanks);
  keep(oddness_, sum * static_cast<double>(counted) / static_cast<double>(n), kWindows.back());
  // Combines all ranks in one step, or in a few consecutive steps.
  double rarest = 1, within = 0;
  size_t steps = 0;
  for (size_t back = 1; back <= oddness_.size(); ++back) {
    within += oddness_[oddness_.size() - back];
    if (std::find(kWindows.begin(), kWindows.end(), back) == kWindows.end()) continue;
    const double p = gamma_beyond(within, counted * back);
    if (p < rarest) steps = back;
    rarest = std::min(rarest, p);
  }
  if (rarest > 0.05) reported_ = false;
  if (rarest > kByChance || reported_) return;
  const int64_t since = frame.step - static_cast<int64_t>(steps) + 1;
  reported_ = true;
  const bool is_unstable = grown_ || is_fast();
  Alarm alarm{.cause = is_unstable ? Cause::kUnstable : Cause::kAllBatch, .since = since};
  alarm.metrics = {window.names()[*loss_].text};
  alarm.confidence = 0.8;
  alarm.why =
      fmt::format("{} rose far above its usual on all ranks at step {}, {}", alarm.metrics[0], since,
                  grown_      ? "after norms of the model had grown by half within a few steps"
                  : is_fast() ? "after updates that each moved the parameters by more than 2 % of their norm"
                              : "and nothing showed in the model before");
  raise(std::move(alarm), alarms);
}

// Detects an excessive loss at the start of a training: each rank is above all losses of the first step. An
// untrained model should have the highest loss of a training. With few ranks, or a pretrained model, a rise
// by up to a tenth is normal.
void GlobalShift::see_start(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (first_step_ >= kLearningSteps || steps_ >= kLearningSteps || climb_reported_) return;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  size_t n = 0;
  for (const double value : frame.values[*loss_]) {
    if (!std::isfinite(value) || value <= 0) continue;
    least = std::min(least, std::log(value));
    most = std::max(most, std::log(value));
    ++n;
  }
  if (n == 0) return;
  if (steps_ == 0) first_most_ = most;
  const double above = least - first_most_;
  above_first_ = above > 0.5 ? 2 : above > 0.1 && n > 2 ? above_first_ + 1 : 0;
  if (above_first_ < 2) return;
  climb_reported_ = true;
  const std::string& metric = window.names()[*loss_].text;
  Alarm alarm{.cause = Cause::kUnstable, .since = frame.step, .metrics = {metric}, .confidence = 0.8};
  alarm.why =
      fmt::format("{} is above that of the untrained model on all ranks at step {}", metric, frame.step);
  raise(std::move(alarm), alarms);
}

// Detects a loss that climbs above its best, or at the start above the loss of the untrained model.
void GlobalShift::see_climb(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  const auto& reported = medians_[*loss_];
  if (!reported || !(*reported > 0) || !std::isfinite(*reported)) return;
  const std::string& metric = window.names()[*loss_].text;
  const double value = std::log(*reported);
  if (steps_ == 0 || restart_step_ == frame.step) fast_ = slow_ = best_ = value;
  see_start(frame, window, alarms);
  keep(roughness_, std::abs(value - fast_), kPastSteps);
  fast_ += (value - fast_) / 4;
  slow_ += (value - slow_) * kLevel;
  // Before step 16, the slow mean still depends on the first steps.
  if (steps_ == 16) best_ = slow_;
  if (steps_ >= 16) best_ = std::min(best_, slow_);
  if (steps_ < 20) return;
  // Exponential means with weights 1/4 and 1/16 have the standard errors of means of 7 and 31 values.
  const double error = (1.4826 * median_of(roughness_) + 1e-3) * std::sqrt(1.0 / 7 + 1.0 / 31);
  const double climb = (fast_ - best_) / error;
  if (climb < 2) {
    climbs_since_ = frame.step + 1;
    climb_reported_ = false;
  }
  if (climb < (is_fast() ? kClimbFast : kClimb) || climb_reported_) return;
  climb_reported_ = true;
  // Bad samples act suddenly; an instability grows.
  const bool sudden =
      !grown_ && !is_fast() && frame.step - climbs_since_ < static_cast<int64_t>(kGrowthSteps);
  Alarm alarm{
      .cause = sudden ? Cause::kAllBatch : Cause::kUnstable, .since = climbs_since_, .metrics = {metric}};
  alarm.confidence = 0.7;
  alarm.why = fmt::format(
      "{} climbs on all ranks above the best it was, from step {} on{}", metric, climbs_since_,
      is_fast() ? ", after updates that each moved the parameters by more than 2 % of their norm" : "");
  raise(std::move(alarm), alarms);
}

// Raises an alarm; a recent planned change becomes its cause.
void GlobalShift::raise(Alarm alarm, std::vector<Alarm>& alarms) const {
  if (plan_ && step_ - plan_->step <= kPlanLasts && alarm.since >= plan_->step - 2) {
    const bool is_reckless = leap_ && leap_->step == plan_->step && leap_->to > kReckless * leap_->most;
    alarm.cause = is_reckless ? Cause::kUnstable : Cause::kPlanned;
    alarm.since = plan_->step;
    if (is_reckless) alarm.title = title_of(*leap_);
    alarm.why =
        fmt::format("{} moved after step {}, at which {}", alarm.metrics[0], plan_->step, plan_->what);
  }
  alarms.push_back(std::move(alarm));
}

std::vector<Alarm> GlobalShift::step(const Frame& frame, const Window& window, const Marks& astray) {
  std::vector<Alarm> alarms;
  if (steps_ == 0) first_step_ = frame.step;
  add_medians(frame, window, astray);
  see_plan(frame, window);
  follow(frame, window);
  step_ = frame.step;
  see_pace(frame, window, alarms);
  follow_plan(frame, window, alarms);
  see_growth();
  if (loss_ && *loss_ < frame.values.size()) {
    see_losses(frame, window, astray, alarms);
    see_climb(frame, window, alarms);
  }
  for (uint32_t number = 0; number < medians_.size(); ++number) {
    if (medians_[number]) before_[number] = medians_[number];
  }
  ++steps_;
  return alarms;
}

}  // namespace culprit::numerics
