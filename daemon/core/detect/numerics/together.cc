#include "core/detect/numerics/together.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

namespace culprit::core::numerics {

namespace {

constexpr int64_t kFirst = 24;     // steps of learning before any judgement by the past
constexpr size_t kPastSteps = 64;  // that tails and roughness are of
constexpr size_t kRanks = 8;       // that count: more of them are not more independent of a course in common
constexpr double kRarest = 1e-4;   // that one rank may say
constexpr double kLevel = 1.0 / 16;  // weight of a step in what is usual
constexpr double kJump = 0.5;        // of a logarithm, beyond which one step does not move the usual
constexpr std::array<size_t, 3> kWindows = {1, 2, 4};      // steps that are looked at together
constexpr double kByChance = 1 / (2e4 * kWindows.size());  // so many steps between alarms by chance
constexpr size_t kGrowthSteps = 8;
const double kGrowth = std::log(1.5);
constexpr int64_t kPlanSteps = 20;  // in which numbers move after a planned change
constexpr int64_t kPlanLasts = 64;  // in which a climb is its
constexpr double kClimb = 6;        // standard errors above the best: one in 1e9 of a normal distribution
// Each update moves the parameters by more than this share of their norm. In data/sdc stable trainings stay
// below .0135 after their first steps, unstable ones above .030; this is the geometric mean of the two.
constexpr double kFast = 0.02;
// Updates of this share replace the parameters within a few steps, whatever the loss does.
constexpr double kTooFast = 0.1;
constexpr double kClimbFast = 2.5;  // while updates are that large, or just were, a climb is expected
// No schedule raises the rate this many times above its maximum; those in data/sdc leap up to 16 times.
constexpr double kReckless = 100;
constexpr uint32_t kFirstRates = 3;
// An update and weight decay cannot move the parameters' norm farther than this: it means other parameters.
constexpr double kReplaced = 2, kReplacedShare = 0.01, kReplacedAlone = 0.05, kReplacedTimes = 20;
constexpr double kPause = 20;  // times the usual step
constexpr double kPauseSeconds = 30;

double capped(double change) { return std::clamp(change, -kJump, kJump); }

// Beyond x, the sum of n exponential variables.
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

std::optional<double> Together::median(const Frame& frame, uint32_t column, const Marks& astray) {
  room_.clear();
  const auto& cells = frame.values[column];
  for (uint32_t slot = 0; slot < cells.size(); ++slot) {
    if (!astray[slot] && is_told(cells[slot]) && !std::isnan(cells[slot])) room_.push_back(cells[slot]);
  }
  if (room_.empty()) return {};
  const auto middle = room_.begin() + static_cast<ptrdiff_t>(room_.size() / 2);
  std::nth_element(room_.begin(), middle, room_.end());
  return *middle;
}

void Together::take_medians(const Frame& frame, const Window& window, const Marks& astray) {
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

// Of each metric what is usual, and how far it has moved since a planned change.
void Together::follow(const Frame& frame, const Window& window) {
  for (uint32_t number = 0; number < medians_.size(); ++number) {
    const Role role = window.names()[number].role;
    if (!medians_[number] || is_planned(role)) continue;
    double value = *medians_[number];
    // An update follows the rate; what matters beside it is the rest.
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
    const double limit = at->steps < kFirst ? std::numeric_limits<double>::infinity() : 4 * at->scale;
    // While a planned change is followed, the level stays what it was before.
    if (plan_ && plan_->step <= frame.step && frame.step - plan_->step <= kPlanSteps && !plan_->told) {
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

void Together::plan(int64_t step, std::string what) {
  plan_ = Plan{.step = step, .what = std::move(what)};
  for (Series& series : series_) series.moved[0] = series.moved[1] = 0;
}

void Together::see_pause(const Frame& frame) {
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

void Together::restart(int64_t step, std::string what) {
  plan(step, std::move(what));
  restart_step_ = step;
  usual_loss_.clear();
  oddness_.clear();
  drifts_.clear();
}

std::string Together::title_of(const Leap& leap) {
  return fmt::format("The learning rate rose from {:g} to {:g} at step {}", leap.from, leap.to, leap.step);
}

std::optional<Together::Leap> Together::leap_before(int64_t step) const {
  if (!leap_ || step < leap_->step || step - leap_->step > kPlanSteps) return {};
  return leap_;
}

void Together::see_rate(double was, double now, const Frame& frame, const std::string& name) {
  const double change = std::abs(std::log(now / was));
  const double most =
      rate_changes_.empty() ? 0 : *std::max_element(rate_changes_.begin(), rate_changes_.end());
  // A schedule bends; what leaps by a fifth and four times its bends was set.
  const bool is_set = rate_changes_.size() >= 8 && change > std::max(0.2, 4 * most);
  const bool is_reckless = ++rates_ > kFirstRates && now > kReckless * rate_most_;
  if (is_set || is_reckless) plan(frame.step, fmt::format("{} went from {:g} to {:g}", name, was, now));
  if ((is_set || is_reckless) && now > rate_most_) leap_ = Leap{frame.step, was, now, rate_most_, name};
  rate_most_ = std::max({rate_most_, was, now});
  keep(rate_changes_, change, 16);
}

// Parameters whose change no update explains: other weights were loaded.
void Together::see_weights(const Frame& frame, const Window& window) {
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

void Together::see_pace(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (!param_ || !update_ || !medians_[*param_] || !medians_[*update_]) return;
  const double ratio = *medians_[*update_] / *medians_[*param_];
  fast_steps_ = ratio > kFast ? fast_steps_ + 1 : 0;
  // The first steps of a new model are large in every training.
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

bool Together::is_fast() const { return fast_at_ && steps_ - *fast_at_ <= kPlanLasts; }

void Together::see_plan(const Frame& frame, const Window& window) {
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

void Together::follow_plan(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (!plan_ || plan_->told || frame.step - plan_->step > kPlanSteps) return;
  const bool is_reckless = leap_ && leap_->step == plan_->step && leap_->to > kReckless * leap_->most;
  Alarm alarm{.cause = is_reckless ? Cause::kUnstable : Cause::kPlanned, .since = plan_->step};
  for (const Series& series : series_) {
    if (std::max(series.moved[0], series.moved[1]) < 8) continue;
    alarm.metrics.push_back(window.names()[series.column].text);
  }
  if (alarm.metrics.empty()) return;
  plan_->told = true;
  alarm.confidence = 0.8;
  alarm.why = fmt::format("{} moved after step {}, at which {}", alarm.metrics[0], plan_->step, plan_->what);
  if (is_reckless) alarm.title = title_of(*leap_);
  alarms.push_back(std::move(alarm));
  for (Series& series : series_) series.moved[0] = series.moved[1] = 0;
}

// By how much norms have grown before this step, over those of a few steps earlier.
void Together::see_growth() {
  grown_.reset();
  if (steps_ < kFirst / 2) return;
  for (const Series& series : series_) {
    if (!grows_before_instability(series.role) || series.last.size() < kGrowthSteps + 3) continue;
    const auto middle = [&series](size_t at) {
      std::array<double, 3> three = {series.last[at], series.last[at + 1], series.last[at + 2]};
      std::sort(three.begin(), three.end());
      return three[1];
    };
    double growth = middle(kGrowthSteps - 1) - middle(0);
    // An update grows with the rate, by plan; what is left beside it does not.
    if (series.role == Role::kUpdateNorm && rate_ && steps_ < 2 * kFirst) continue;
    if (growth > kGrowth) grown_ = series.column;
  }
}

// A loss above its usual on all ranks.
void Together::see_losses(const Frame& frame, const Window& window, const Marks& astray,
                          std::vector<Alarm>& alarms) {
  const auto& cells = frame.values[*loss_];
  usual_loss_.resize(window.slots(), std::numeric_limits<float>::quiet_NaN());
  const bool is_fit = steps_ >= kFirst && past_.fit(sorted_);
  const size_t stride = std::max<size_t>(1, cells.size() / kRanks);
  double sum = 0;
  size_t n = 0;
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
      if (off > 0) sum -= std::log(std::max(past_.rarity(off) / 2, kRarest));
    }
    if ((slot + static_cast<uint64_t>(steps_)) % stride == 0) past_.add(std::abs(off), kPastSteps * kRanks);
    usual += static_cast<float>(capped(off) * std::max(kLevel, 1.0 / static_cast<double>(steps_ + 1)));
  }
  if (n < 2) return;
  const size_t counted = std::min(n, kRanks);
  keep(oddness_, sum * static_cast<double>(counted) / static_cast<double>(n), kWindows.back());
  // All ranks in one step, or in a few that follow each other.
  double rarest = 1, within = 0;
  size_t steps = 0;
  for (size_t back = 1; back <= oddness_.size(); ++back) {
    within += oddness_[oddness_.size() - back];
    if (std::find(kWindows.begin(), kWindows.end(), back) == kWindows.end()) continue;
    const double p = gamma_beyond(within, counted * back);
    if (p < rarest) steps = back;
    rarest = std::min(rarest, p);
  }
  if (rarest > 0.05) told_ = false;
  if (rarest > kByChance || told_) return;
  const int64_t since = frame.step - static_cast<int64_t>(steps) + 1;
  told_ = true;
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

// A model that only guesses has the worst loss that it should ever have: at the beginning of a training all
// ranks above all of its first step are too much. Few ranks, or a model trained before, may differ by more
// than a tenth.
void Together::see_start(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  if (first_step_ >= kFirst || steps_ >= kFirst || climb_told_) return;
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
  climb_told_ = true;
  const std::string& metric = window.names()[*loss_].text;
  Alarm alarm{.cause = Cause::kUnstable, .since = frame.step, .metrics = {metric}, .confidence = 0.8};
  alarm.why =
      fmt::format("{} is above that of the untrained model on all ranks at step {}", metric, frame.step);
  raise(std::move(alarm), alarms);
}

// A loss that climbs above the best that it was, or of a beginning above that of a model that only guesses.
void Together::see_climb(const Frame& frame, const Window& window, std::vector<Alarm>& alarms) {
  const auto& told = medians_[*loss_];
  if (!told || !(*told > 0) || !std::isfinite(*told)) return;
  const std::string& metric = window.names()[*loss_].text;
  const double value = std::log(*told);
  if (steps_ == 0 || restart_step_ == frame.step) fast_ = slow_ = best_ = value;
  see_start(frame, window, alarms);
  keep(roughness_, std::abs(value - fast_), kPastSteps);
  fast_ += (value - fast_) / 4;
  slow_ += (value - slow_) * kLevel;
  // Before that the slow mean still is of the first steps.
  if (steps_ == 16) best_ = slow_;
  if (steps_ >= 16) best_ = std::min(best_, slow_);
  if (steps_ < 20) return;
  // Of means with weights 1/4 and 1/16 the errors are those of seven and 31 values.
  const double error = (1.4826 * median_of(roughness_) + 1e-3) * std::sqrt(1.0 / 7 + 1.0 / 31);
  const double climb = (fast_ - best_) / error;
  if (climb < 2) {
    climbs_since_ = frame.step + 1;
    climb_told_ = false;
  }
  if (climb < (is_fast() ? kClimbFast : kClimb) || climb_told_) return;
  climb_told_ = true;
  // Samples come at once, what comes loose gathers way.
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

// What follows a planned change is its.
void Together::raise(Alarm alarm, std::vector<Alarm>& alarms) const {
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

std::vector<Alarm> Together::step(const Frame& frame, const Window& window, const Marks& astray) {
  std::vector<Alarm> alarms;
  if (steps_ == 0) first_step_ = frame.step;
  take_medians(frame, window, astray);
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

}  // namespace culprit::core::numerics
