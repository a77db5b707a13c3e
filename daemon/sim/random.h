// The simulator's random numbers: SplitMix64, only with integers and exact binary fractions, so that a seed
// gives the same numbers on every machine and compiler. A value; one owner.
#pragma once

#include <cstdint>

namespace culprit::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  // Uniform in 0 .. n - 1; n = 0 gives 0. The bias of the multiply-shift is below 2^-32 for the small n
  // used here.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : ((next() >> 32) * n) >> 32; }
  // Uniform in lo .. hi, both inclusive; spans of more than 32 bits use the remainder.
  int64_t range(int64_t lo, int64_t hi) {
    const uint64_t span = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
    const uint64_t step = span >> 32 ? next() % span : below(span);
    return static_cast<int64_t>(static_cast<uint64_t>(lo) + step);
  }
  bool chance(uint32_t percent) { return below(100) < percent; }
  bool per_mille(uint32_t n) { return below(1000) < n; }
  double real() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // An independent sequence, named by `tag`.
  Random fork(uint64_t tag) const {
    Random other(state_ ^ (tag * 0xd1342543de82ef95ull + 0x2545f4914f6cdd1dull));
    other.next();
    return Random(other.next());
  }

 private:
  uint64_t state_;
};

}  // namespace culprit::sim
