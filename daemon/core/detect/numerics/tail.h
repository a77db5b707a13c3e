// How rare a distance is among those seen before: quantiles of the past, and beyond them a power (Hill), as
// the tails of training metrics are heavy. And what a rarity is worth as a bet, whose winnings over steps
// grow beyond x in at most one of x tries where nothing is wrong (an e-value). Plain values; one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace culprit::core::numerics {

class Tail {
 public:
  // `most` distances are kept, the last ones.
  void add(float distance, size_t most) {
    if (past_.size() < most) {
      past_.push_back(distance);
    } else {
      past_[next_++ % most] = distance;
    }
  }
  size_t size() const { return past_.size(); }
  // By what was added until now; `room` is for its own use. False: they say nothing.
  bool fit(std::vector<float>& room);
  // The share of the past that was as far or farther.
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
  float tail_ = 0, share_ = 0, power_ = 0;  // where the tail begins, of how many, how it falls
  float body_[3] = {0, 0, 0};               // beyond which 1/8, 1/4, 1/2 of the past lie
};

// In a share of steps the faulty are as odd as p^(kBetPower - 1) says, else as all others.
constexpr double kBetShare = 0.2, kBetPower = 0.3;
// What stands still for a while (a domain of data that is learned later) must not win: each step costs a
// little.
constexpr double kBetCost = 0.2;

inline double bet(double p) {
  return std::log(1 - kBetShare + kBetShare * kBetPower * std::pow(std::max(p, 1e-15), kBetPower - 1)) -
         kBetCost;
}

}  // namespace culprit::core::numerics
