#include "core/logs/activity.h"

#include <algorithm>
#include <utility>

namespace culprit::logs {

void BinCounts::put(size_t bin, uint32_t count) {
  for (size_t i = 0; i < width_; ++i) bytes_[bin * width_ + i] = static_cast<uint8_t>(count >> (8 * i));
}

void BinCounts::add(size_t bin, uint32_t n) {
  if (n == 0) return;
  if (width_ == 1 && bin < bytes_.size() && n <= 255u - bytes_[bin]) {
    bytes_[bin] = static_cast<uint8_t>(bytes_[bin] + n);
    return;
  }
  const uint32_t count = n + (bin < size() ? (*this)[bin] : 0);
  uint8_t width = width_;
  while (width < sizeof count && (count >> (8 * width)) != 0) width *= 2;
  if (width > width_) {
    const BinCounts before = *this;
    width_ = width;
    bytes_.assign(before.size() * width, 0);
    for (size_t i = 0; i < before.size(); ++i) put(i, before[i]);
  }
  if (bin >= size()) bytes_.resize((bin + 1) * width_);
  put(bin, count);
}

void ActivityBins::add(TimeNs time, uint32_t n) {
  if (time == kNoTime) return;
  if (origin_ns == kNoTime) origin_ns = time, width_ns = kNsPerSecond;
  while (time < origin_ns || time >= origin_ns + width_ns * static_cast<TimeNs>(bins)) {
    // Extends the range towards the time.
    const bool left = time < origin_ns;
    if (left) origin_ns -= width_ns * static_cast<TimeNs>(bins);
    const size_t first = left ? bins / 2 : 0;
    BinCounts joined;
    for (size_t i = 0; i < counts.size(); ++i) joined.add(first + i / 2, counts[i]);
    counts = std::move(joined);
    width_ns *= 2;
  }
  counts.add(static_cast<size_t>((time - origin_ns) / width_ns), n);
}

double ActivityBins::between(TimeNs from, TimeNs to) const {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const TimeNs begin = origin_ns + static_cast<TimeNs>(i) * width_ns;
    const TimeNs overlap = std::min(to, begin + width_ns) - std::max(from, begin);
    if (overlap > 0) sum += counts[i] * static_cast<double>(overlap) / static_cast<double>(width_ns);
  }
  return sum;
}

}  // namespace culprit::logs
