#include "core/detect/numerics/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"

namespace culprit::numerics {

namespace {

constexpr uint8_t kNotSeen = 255;
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

bool is_shown(const Name& name) {
  if (name.text.find('/') != std::string::npos) return false;
  return name.role != Role::kOther && name.role != Role::kTiming && name.role != Role::kDataStage;
}

}  // namespace

void Curves::add(const Frame& frame, const Window& window, const std::vector<float>& odd) {
  if (taken_++ % every_ != 0) return;
  if (points_.size() >= limits::kNumericPoints) {
    // Keep every second point, and halve the points so far.
    for (size_t i = 1; i * 2 < points_.size(); ++i) points_[i] = std::move(points_[i * 2]);
    points_.resize((points_.size() + 1) / 2);
    every_ *= 2;
    if ((taken_ - 1) % every_ != 0) return;
  }
  for (uint32_t column = 0; column < frame.values.size(); ++column) {
    if (!is_shown(window.names()[column])) continue;
    if (std::find(columns_.begin(), columns_.end(), column) == columns_.end()) columns_.push_back(column);
  }
  Point point;
  point.step = frame.step;
  for (const uint32_t column : columns_) {
    room_.clear();
    bool not_finite = false;
    if (column < frame.values.size()) {
      for (const double value : frame.values[column]) {
        if (!is_reported(value)) continue;
        not_finite |= !std::isfinite(value);
        if (!std::isnan(value)) room_.push_back(value);
      }
    }
    point.not_finite.push_back(not_finite);
    point.median.push_back(kNone);
    point.worst.push_back(kNone);
    if (room_.empty()) continue;
    const auto middle = room_.begin() + static_cast<ptrdiff_t>(room_.size() / 2);
    std::nth_element(room_.begin(), middle, room_.end());
    const double median = *middle;
    const auto [least, most] = std::minmax_element(room_.begin(), room_.end());
    point.median.back() = static_cast<float>(median);
    point.worst.back() = static_cast<float>(*most - median >= median - *least ? *most : *least);
  }
  point.odd.assign(window.slots(), kNotSeen);
  for (uint32_t slot = 0; slot < point.odd.size(); ++slot) {
    if (frame.is_seen(slot))
      point.odd[slot] = static_cast<uint8_t>(254 * (slot < odd.size() ? odd[slot] : 0));
  }
  points_.push_back(std::move(point));
}

NumericCurves Curves::result(const Window& window) const {
  NumericCurves reported;
  reported.ranks = window.slots();
  std::vector<const Point*> points;
  for (const Point& point : points_) points.push_back(&point);
  std::stable_sort(points.begin(), points.end(),
                   [](const Point* a, const Point* b) { return a->step < b->step; });
  for (const Point* point : points) reported.steps.push_back(point->step);
  for (size_t i = 0; i < columns_.size(); ++i) {
    NumericCurves::Curve curve{.metric = window.names()[columns_[i]].text, .median = {}, .worst = {}};
    for (const Point* point : points) {
      curve.median.push_back(i < point->median.size() ? point->median[i] : kNone);
      curve.worst.push_back(i < point->worst.size() ? point->worst[i] : kNone);
      if (i < point->not_finite.size() && point->not_finite[i])
        curve.not_finite.push_back(static_cast<uint32_t>(curve.median.size() - 1));
    }
    reported.curves.push_back(std::move(curve));
  }
  std::vector<std::pair<uint64_t, uint32_t>> oddest;  // by sum of outlier scores
  for (uint32_t slot = 0; slot < window.slots(); ++slot) {
    uint64_t sum = 0;
    for (const Point* point : points) {
      if (slot < point->odd.size() && point->odd[slot] != kNotSeen) sum += point->odd[slot];
    }
    oddest.emplace_back(~sum, slot);
  }
  const size_t rows = std::min(limits::kNumericRows, oddest.size());
  std::partial_sort(oddest.begin(), oddest.begin() + static_cast<ptrdiff_t>(rows), oddest.end());
  oddest.resize(rows);
  for (const auto& [sum, slot] : oddest) {
    NumericCurves::Row row{.rank = window.rank(slot), .host = {}, .odd = {}};
    if (!window.host(slot).empty()) row.host = window.host(slot);
    for (const Point* point : points) {
      const bool is_there = slot < point->odd.size() && point->odd[slot] != kNotSeen;
      row.odd.push_back(is_there ? static_cast<float>(point->odd[slot]) / 254 : kNone);
    }
    reported.rows.push_back(std::move(row));
  }
  std::sort(reported.rows.begin(), reported.rows.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return reported;
}

}  // namespace culprit::numerics
