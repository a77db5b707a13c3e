// ActivityBins (job_log.h): lines of one writer over time.
#include <algorithm>

#include "core/logs/job_log.h"

namespace culprit::logs {

void ActivityBins::add(TimeNs time, uint32_t n) {
  if (time == kNoTime) return;
  if (counts.empty()) counts.assign(bins, 0), origin_ns = time, width_ns = kNsPerSecond;
  while (time < origin_ns || time >= origin_ns + width_ns * static_cast<TimeNs>(bins)) {
    const bool left = time < origin_ns;  // extends the range towards the time
    if (left) {
      origin_ns -= width_ns * static_cast<TimeNs>(bins);
      for (size_t i = bins; i-- > bins / 2;) counts[i] = counts[2 * i - bins] + counts[2 * i + 1 - bins];
      std::fill(counts.begin(), counts.begin() + bins / 2, 0);
    } else {
      for (size_t i = 0; i < bins / 2; ++i) counts[i] = counts[2 * i] + counts[2 * i + 1];
      std::fill(counts.begin() + bins / 2, counts.end(), 0);
    }
    width_ns *= 2;
  }
  counts[static_cast<size_t>((time - origin_ns) / width_ns)] += n;
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
