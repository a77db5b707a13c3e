#include "core/detect/numerics/overflow.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace culprit::numerics {

namespace {

constexpr uint32_t kHalved = 16;

bool is_gradient(Role role) {
  return role == Role::kGradNorm || role == Role::kGradPart || role == Role::kReduced;
}
bool spoils(Role role) {
  return role == Role::kLoss || role == Role::kParamNorm || role == Role::kUpdateNorm;
}

}  // namespace

// Counts only ranks that had a finite value before, because most ranks of a pipeline may never have a loss.
// At the first step it counts all ranks.
Overflow::Count Overflow::count(const std::vector<double>& cells, const Marks& astray, Marks& sound) const {
  Count out;
  sound.resize(std::max(sound.size(), cells.size()));
  for (uint32_t slot = 0; slot < cells.size(); ++slot) {
    if (!is_reported(cells[slot]) || (slot < astray.size() && astray[slot])) continue;
    const bool finite = std::isfinite(cells[slot]);
    sound[slot] |= finite;
    if (!first_ && !sound[slot]) continue;
    ++out.reported;
    out.lost += !finite;
  }
  return out;
}

std::optional<Alarm> Overflow::step(const Frame& frame, const Window& window, const Marks& astray) {
  columns_.resize(std::max(columns_.size(), frame.values.size()));
  std::vector<uint32_t> lost;
  std::vector<Count> counts(frame.values.size());
  bool spoilt = false;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (!is_gradient(role) && !spoils(role)) continue;
    Column& column = columns_[number];
    const Count c = counts[number] = count(frame.values[number], astray, column.sound);
    if (c.reported == 0) continue;  // not reported: the previous state remains
    if (first_ ? c.lost < c.reported : 2 * c.lost <= c.reported) {
      column.since.reset();
      continue;
    }
    if (!column.since) column.since = frame.step;
    lost.push_back(number);
    spoilt |= spoils(role);
  }
  first_ = false;
  skipped_ = lost.empty() || spoilt ? 0 : skipped_ + 1;
  if (lost.empty()) why_.clear();
  if (!spoilt && skipped_ <= kHalved) return {};
  const auto since = [&](uint32_t number) { return *columns_[number].since; };
  const auto name = [&](uint32_t number) { return window.names()[number].text; };
  std::stable_sort(lost.begin(), lost.end(), [&](uint32_t a, uint32_t b) { return since(a) < since(b); });
  Alarm alarm{.cause = Cause::kOverflow, .since = since(lost[0])};
  alarm.confidence = 0.9;  // a fault is certain, its cause is not
  for (const uint32_t number : lost) alarm.metrics.push_back(name(number));
  if (why_.empty()) {
    why_ = fmt::format("{} is not finite on {} of {} ranks from step {} on", name(lost[0]),
                       counts[lost[0]].lost, counts[lost[0]].reported, alarm.since);
    if (since(lost.back()) > alarm.since)
      why_ += fmt::format(", {} from step {} on", name(lost.back()), since(lost.back()));
  }
  alarm.why = why_;
  return alarm;
}

}  // namespace culprit::numerics
