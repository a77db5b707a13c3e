#include "core/detect/numerics/overflow.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace culprit::core::numerics {

namespace {

constexpr uint32_t kHalved = 16;

bool is_gradient(Role role) {
  return role == Role::kGradNorm || role == Role::kGradPart || role == Role::kReduced;
}
bool spoils(Role role) {
  return role == Role::kLoss || role == Role::kParamNorm || role == Role::kUpdateNorm;
}

}  // namespace

// Of ranks that tell it and had a number there before: in a pipeline most may never have a loss. At the first
// step it is all that tell it.
bool Overflow::is_lost(const Frame& frame, uint32_t number, const Marks& astray, bool first) {
  Column& column = columns_[number];
  const auto& cells = frame.values[number];
  column.sound.resize(std::max(column.sound.size(), cells.size()));
  bad_ = told_ = 0;
  size_t sound = 0;
  for (uint32_t slot = 0; slot < cells.size(); ++slot) {
    if (!is_told(cells[slot]) || (slot < astray.size() && astray[slot])) continue;
    const bool finite = std::isfinite(cells[slot]);
    sound += finite;
    if (!first && !column.sound[slot] && !finite) continue;
    column.sound[slot] |= finite;
    ++told_;
    bad_ += !finite;
  }
  return told_ > 0 && (first ? sound == 0 : 2 * bad_ > told_);
}

std::optional<Overflow::Alarm> Overflow::step(const Frame& frame, const Window& window, const Marks& astray) {
  columns_.resize(std::max(columns_.size(), frame.values.size()));
  std::vector<uint32_t> lost;
  bool spoilt = false, gradients = false;
  size_t bad = 0, told = 0;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (!is_gradient(role) && !spoils(role)) continue;
    Column& column = columns_[number];
    if (!is_lost(frame, number, astray, first_)) {
      // What is told only now and then is as it was when it was told last.
      if (told_ > 0) column.since.reset();
      continue;
    }
    if (!column.since) column.since = frame.step;
    if (lost.empty() || *column.since < *columns_[lost[0]].since) bad = bad_, told = told_;
    lost.insert(lost.empty() || *column.since < *columns_[lost[0]].since ? lost.begin() : lost.end(), number);
    spoilt |= spoils(role);
    gradients |= is_gradient(role);
  }
  first_ = false;
  skipped_ = gradients && !spoilt ? skipped_ + 1 : 0;
  if (!spoilt && skipped_ <= kHalved) {
    if (lost.empty()) why_.clear();
    return {};
  }
  const auto name = [&](uint32_t number) { return window.names()[number].text; };
  Alarm alarm{.since = *columns_[lost[0]].since, .metrics = {}, .why = {}};
  for (const uint32_t number : lost) alarm.metrics.push_back(name(number));
  if (why_.empty()) {
    why_ = fmt::format("{} is not finite on {} of {} ranks from step {} on", alarm.metrics[0], bad, told,
                       alarm.since);
    const auto later =
        std::find_if(lost.begin(), lost.end(), [&](uint32_t n) { return *columns_[n].since > alarm.since; });
    if (later != lost.end())
      why_ += fmt::format(", {} from step {} on", name(*later), *columns_[*later].since);
  }
  alarm.why = why_;
  return alarm;
}

}  // namespace culprit::core::numerics
