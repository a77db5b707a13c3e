// Random numbers of the communication simulator. Each draw is a function of its key (seed, rank, step,
// purpose), not of the order of draws. So a job with a fault differs from the same job without it only by
// the fault. Integers only: a seed gives the same bytes on every machine. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/hash.h"

namespace culprit::sim {

constexpr int64_t kUnit = 1 << 16;  // fixed point: 65,536 is one

constexpr uint64_t scaled(uint64_t value, int64_t factor) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(value) * static_cast<uint64_t>(factor) >> 16);
}

// 2^(q / 65,536) in units of 1 / 65,536; the error of the cubic is below 2e-4.
constexpr int64_t exp2_unit(int64_t q) {
  const int64_t whole = std::clamp<int64_t>(q >> 16, -15, 20), f = q & 0xffff;
  const int64_t cubic = kUnit + ((f * (45'580 + ((f * (14'822 + ((f * 5'134) >> 16))) >> 16))) >> 16);
  return whole < 0 ? cubic >> -whole : cubic << whole;
}

// Standard normal number in units: the sum of four uniform numbers, hence at most 3.5 in magnitude. The
// caller adds tails.
constexpr int64_t normal_unit(uint64_t word) {
  int64_t sum = -131'070;
  for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>(word >> (16 * i) & 0xffff);
  return (sum * 113'512) >> 16;
}

// Exponential number with mean one, in units: minus the logarithm of a uniform number, linear between
// powers of two.
constexpr int64_t exponential_unit(uint64_t word) {
  const int zeros = std::countl_zero(word | 1);
  const auto fraction = static_cast<int64_t>((zeros < 63 ? word << (zeros + 1) : 0) >> 48);
  return ((((zeros + 1) << 16) - fraction) * 45'426) >> 16;  // ln 2
}

// Lognormal factor in units; `sigma` is the deviation of log2, in units.
constexpr int64_t lognormal_unit(uint64_t word, int64_t sigma) {
  return exp2_unit((sigma * normal_unit(word)) >> 16);
}

}  // namespace culprit::sim
