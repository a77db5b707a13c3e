// Rarity of a distance among past distances: quantiles of the past, extended by a power law (Hill), because
// training metrics have heavy tails. Also a bet on rarities: without a fault, its winnings over steps exceed
// x in at most one of x tries (an e-value). Plain values; one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace culprit::numerics {

class Tail {
 public:
  // Keeps the last `most` distances.
  void add(float distance, size_t most) {
    if (past_.size() < most) {
      past_.push_back(distance);
    } else {
      past_[next_++ % most] = distance;
    }
  }
  size_t size() const { return past_.size(); }
  // Fits the tail to the distances so far; `room` is scratch memory. False: the distances allow no fit.
  bool fit(std::vector<float>& room);
  // Share of the past at this distance or farther.
  double rarity(double distance) const {
    if (distance > tail_) return share_ * std::pow(distance / tail_, -power_);
    if (distance > body_[0]) return 0.125;
    if (distance > body_[1]) return 0.25;
    return distance > body_[2] ? 0.5 : 1.0;
  }
  float median() const { return body_[2]; }

 private:
  std::vector<float> past_;
  uint32_t next_ = 0;
  float tail_ = 0, share_ = 0, power_ = 0;  // start of the tail, its share, and the exponent
  float body_[3] = {0, 0, 0};               // distances that 1/8, 1/4 and 1/2 of the past exceed
};

// Assumption of the bet: a faulty rank has rarities of density p^(kBetPower - 1) in a share kBetShare of its
// steps, and those of a healthy rank in the others.
constexpr double kBetShare = 0.2, kBetPower = 0.3;
// Cost per step. It prevents wins by a temporary constant offset (a data domain learned later).
constexpr double kBetCost = 0.2;

inline double bet(double p) {
  return std::log(1 - kBetShare + kBetShare * kBetPower * std::pow(std::max(p, 1e-15), kBetPower - 1)) -
         kBetCost;
}

}  // namespace culprit::numerics
