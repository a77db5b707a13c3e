// The distances of an iteration's sequence to those before it. Equal to dtw_distance, but computes several
// pairs at once, for the lengths in iterations.cc. Each progress line needs ten distances, which took nearly
// half the time of a whole run. Pure; an object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace culprit::logs {

class Warp {
 public:
  static constexpr size_t kPairs = 16;  // distances computed at once

  // Writes the distance of `now` to each of `others` (at most kPairs) to `out`.
  void distances(std::span<const uint32_t> now, std::span<const std::span<const uint32_t>> others,
                 double* out);

 private:
  static constexpr size_t kMost = 256;  // symbols; longer sequences use dtw_distance
  // One cell of kPairs matrices, for vector instructions.
  typedef int16_t Cell __attribute__((vector_size(2 * kPairs)));

  bool narrow(std::span<const uint32_t> from, Cell* to, size_t lane);
  bool place(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t pair);
  void pass();
  void pass_cells();
  void pass_avx2();

  Cell a_[kMost + 1] = {}, b_[kMost + 1] = {};  // symbols, from 1 on
  Cell row_[kMost + 1];                         // of the matrix; column 0 is the empty prefix
  Cell outside_[2 * kMost + 1];                 // by kMost + j - i: a large value outside the pair's band
  std::vector<uint32_t> wide_;                  // symbols of more than 16 bits, in the order of their numbers
  std::array<size_t, kPairs> rows_, columns_, longer_, bands_, cost_;
  size_t rows_max_ = 0, columns_max_ = 0, band_max_ = 0;
};

}  // namespace culprit::logs
