#include "core/logs/dtw.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace culprit::logs {

double dtw_distance(std::span<const uint32_t> a, std::span<const uint32_t> b, double give_up) {
  const size_t longer = std::max(a.size(), b.size());
  if (longer == 0) return 0;
  // Equal prefixes and suffixes cost nothing; an optimal path follows the diagonal there.
  while (!a.empty() && !b.empty() && a.front() == b.front()) a = a.subspan(1), b = b.subspan(1);
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a = a.first(a.size() - 1), b = b.first(b.size() - 1);
  if (a.empty() || b.empty())
    return std::min(give_up, static_cast<double>(std::max(a.size(), b.size())) / static_cast<double>(longer));
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  const size_t band = std::max<size_t>({4, longer / 10, difference + 1});
  constexpr uint32_t kFar = 1u << 30;
  const auto limit = static_cast<uint32_t>(give_up * static_cast<double>(longer));
  std::vector<uint32_t> above(b.size() + 1, kFar), row(b.size() + 1, kFar);
  above[0] = 0;
  for (size_t i = 1; i <= a.size(); ++i) {
    const size_t first = i > band ? i - band : 1;
    const size_t last = std::min(b.size(), i + band);
    std::fill(row.begin(), row.end(), kFar);
    uint32_t best = kFar;
    for (size_t j = first; j <= last; ++j) {
      const uint32_t from = std::min({above[j], above[j - 1], row[j - 1]});
      row[j] = from + (a[i - 1] == b[j - 1] ? 0 : 1);
      best = std::min(best, row[j]);
    }
    if (best > limit) return give_up;
    std::swap(row, above);
  }
  return std::min(give_up, static_cast<double>(above[b.size()]) / static_cast<double>(longer));
}

}  // namespace culprit::logs
