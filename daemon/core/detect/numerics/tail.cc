#include "core/detect/numerics/tail.h"

namespace culprit::numerics {

namespace {

constexpr double kTailShare = 0.06;  // share of the past that is its tail
constexpr size_t kTailLeast = 8;
constexpr double kPowerMax = 8;  // steepest accepted tail

}  // namespace

bool Tail::fit(std::vector<float>& room) {
  room = past_;
  const size_t n = room.size();
  if (n < 8 * kTailLeast) return false;
  const auto at = [&room](size_t k) {
    std::nth_element(room.begin(), room.begin() + static_cast<ptrdiff_t>(k), room.end(), std::greater<>());
    return room[k];
  };
  body_[2] = at(n / 2);
  body_[1] = at(n / 4);
  body_[0] = at(n / 8);
  const size_t k = std::max(kTailLeast, static_cast<size_t>(kTailShare * static_cast<double>(n)));
  tail_ = at(k);
  if (tail_ <= 0) return false;
  double logs = 0;
  for (size_t i = 0; i < k; ++i) logs += std::log(room[i] / tail_);
  power_ = static_cast<float>(std::min(kPowerMax, 1 / (logs / static_cast<double>(k) + 1e-9)));
  share_ = static_cast<float>(k) / static_cast<float>(n);
  return true;
}

}  // namespace culprit::numerics
