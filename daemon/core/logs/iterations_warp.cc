// The cells of one matrix depend on each other, but cells of different matrices do not. So each vector holds
// the same cell of several pairs, each pair with its own length and band.
#include "core/logs/iterations_warp.h"

#include <algorithm>

#include "core/logs/dtw.h"

namespace culprit::logs {
namespace {

// Exceeds the cost of any path, and stays below 2^15 after adding any number of steps.
constexpr int16_t kFar = 0x3fff;

// Symbols from here on are renumbered to fit in 16 bits: symbols of named tracks are hashes.
constexpr uint32_t kWide = 0xff00, kWideMost = 0x100;

}  // namespace

// Copies symbols to one lane in 16 bits; false if too many of them are wider.
bool Warp::narrow(std::span<const uint32_t> from, Cell* to, size_t lane) {
  for (size_t i = 0; i < from.size(); ++i) {
    uint32_t symbol = from[i];
    if (symbol >= kWide) {
      const auto at = std::find(wide_.begin(), wide_.end(), symbol);
      if (at == wide_.end() && wide_.size() == kWideMost) return false;
      symbol = kWide + static_cast<uint32_t>(at - wide_.begin());
      if (at == wide_.end()) wide_.push_back(from[i]);
    }
    to[i + 1][lane] = static_cast<int16_t>(symbol);
  }
  return true;
}

// False: this pair uses dtw_distance.
bool Warp::place(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t pair) {
  rows_[pair] = 0;
  longer_[pair] = std::max(a.size(), b.size());
  if (longer_[pair] > kMost) return false;
  // Skips equal prefixes and suffixes, as dtw_distance does.
  while (!a.empty() && !b.empty() && a.front() == b.front()) a = a.subspan(1), b = b.subspan(1);
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a = a.first(a.size() - 1), b = b.first(b.size() - 1);
  if (a.empty() || b.empty()) return false;
  if (!narrow(a, a_, pair) || !narrow(b, b_, pair)) return false;
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  bands_[pair] = std::min(kMost, std::max<size_t>({4, longer_[pair] / 10, difference + 1}));
  rows_[pair] = a.size();
  columns_[pair] = b.size();
  rows_max_ = std::max(rows_max_, a.size());
  columns_max_ = std::max(columns_max_, b.size());
  band_max_ = std::max(band_max_, bands_[pair]);
  return true;
}

// Always inlined, so that it is compiled for the same processor as its caller.
inline __attribute__((always_inline)) void Warp::pass_cells() {
  const Cell far = Cell{} + kFar;
  std::fill(outside_ + kMost - band_max_, outside_ + kMost + band_max_ + 1, far);
  for (size_t p = 0; p < kPairs; ++p)
    if (rows_[p] != 0)
      for (size_t d = kMost - bands_[p]; d <= kMost + bands_[p]; ++d) outside_[d][p] = 0;
  std::fill(row_, row_ + columns_max_ + 1, far);
  row_[0] = Cell{};
  for (size_t i = 1; i <= rows_max_; ++i) {
    const size_t first = i > band_max_ ? i - band_max_ : 1;
    const size_t last = std::min(columns_max_, i + band_max_);
    const Cell symbol = a_[i];
    Cell corner = row_[first - 1], left = far;
    // Cells before the band are not read, except the one that is the corner of the next row.
    row_[first - 1] = far;
    for (size_t j = first; j <= last; ++j) {
      const Cell above = row_[j], outside = outside_[kMost + j - i];
      Cell cell = above < corner ? above : corner;
      cell = cell < left ? cell : left;
      cell -= symbol != b_[j];  // true is -1
      left = cell > outside ? cell : outside;
      corner = above;
      row_[j] = left;
    }
    for (size_t p = 0; p < kPairs; ++p)
      if (rows_[p] == i) cost_[p] = static_cast<size_t>(row_[columns_[p]][p]);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void Warp::pass_avx2() { pass_cells(); }
#endif

void Warp::pass() {
#if defined(__x86_64__)
  static const bool kAvx2 = __builtin_cpu_supports("avx2");
  if (kAvx2) return pass_avx2();
#endif
  pass_cells();
}

void Warp::distances(std::span<const uint32_t> now, std::span<const std::span<const uint32_t>> others,
                     double* out) {
  rows_max_ = columns_max_ = band_max_ = 0;
  rows_.fill(0);
  wide_.clear();
  for (size_t p = 0; p < others.size(); ++p)
    if (!place(others[p], now, p)) out[p] = dtw_distance(others[p], now), rows_[p] = 0;
  if (rows_max_ > 0) pass();
  for (size_t p = 0; p < others.size(); ++p)
    if (rows_[p] != 0) out[p] = static_cast<double>(cost_[p]) / static_cast<double>(longer_[p]);
}

}  // namespace culprit::logs
