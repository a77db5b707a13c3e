// The cells of one matrix depend on each other, cells of different matrices do not. So a vector holds the
// same cell of several pairs, each with its own length and band.
#include "core/logs/iterations_warp.h"

#include <algorithm>

#include "core/logs/dtw.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace culprit::logs {
namespace {

// More than any path costs, and below 2^15 after adding any number of steps.
constexpr int16_t kFar = 0x3fff;

#if defined(__SSE2__)
struct Lanes {
  __m128i low, high;
};
template <class Cell>
Lanes load(const Cell& cell) {
  const auto* at = reinterpret_cast<const __m128i*>(&cell);
  return {_mm_load_si128(at), _mm_load_si128(at + 1)};
}
template <class Cell>
void store(Cell& cell, Lanes v) {
  auto* at = reinterpret_cast<__m128i*>(&cell);
  _mm_store_si128(at, v.low);
  _mm_store_si128(at + 1, v.high);
}
Lanes least(Lanes a, Lanes b) { return {_mm_min_epi16(a.low, b.low), _mm_min_epi16(a.high, b.high)}; }
Lanes most(Lanes a, Lanes b) { return {_mm_max_epi16(a.low, b.low), _mm_max_epi16(a.high, b.high)}; }
Lanes plus_differs(Lanes from, Lanes a, Lanes b) {
  const __m128i one = _mm_set1_epi16(1);
  return {_mm_add_epi16(from.low, _mm_add_epi16(one, _mm_cmpeq_epi16(a.low, b.low))),
          _mm_add_epi16(from.high, _mm_add_epi16(one, _mm_cmpeq_epi16(a.high, b.high)))};
}
#else
template <class Cell>
Cell load(const Cell& cell) {
  return cell;
}
template <class Cell>
void store(Cell& cell, const Cell& v) {
  cell = v;
}
template <class Cell>
Cell least(Cell a, const Cell& b) {
  for (size_t p = 0; p < a.of.size(); ++p) a.of[p] = std::min(a.of[p], b.of[p]);
  return a;
}
template <class Cell>
Cell most(Cell a, const Cell& b) {
  for (size_t p = 0; p < a.of.size(); ++p) a.of[p] = std::max(a.of[p], b.of[p]);
  return a;
}
template <class Cell>
Cell plus_differs(Cell from, const Cell& a, const Cell& b) {
  for (size_t p = 0; p < a.of.size(); ++p)
    from.of[p] = static_cast<int16_t>(from.of[p] + (a.of[p] != b.of[p]));
  return from;
}
#endif

// Copies symbols to one lane in 16 bits; false if a symbol needs more.
template <class Cell>
bool narrow(std::span<const uint32_t> from, Cell* to, size_t lane) {
  uint32_t all = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    to[i + 1].of[lane] = static_cast<int16_t>(from[i]);
    all |= from[i];
  }
  return all <= 0xffff;
}

}  // namespace

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
  const size_t band = std::max<size_t>({4, longer_[pair] / 10, difference + 1});
  for (size_t d = kMost - std::min(band, kMost); d <= kMost + std::min(band, kMost); ++d)
    outside_[d].of[pair] = 0;
  rows_[pair] = a.size();
  columns_[pair] = b.size();
  rows_max_ = std::max(rows_max_, a.size());
  columns_max_ = std::max(columns_max_, b.size());
  band_max_ = std::max(band_max_, band);
  return true;
}

void Warp::pass() {
  Cell far;
  far.of.fill(kFar);
  const auto lanes_far = load(far);
  std::fill(row_, row_ + columns_max_ + 1, far);
  row_[0].of.fill(0);
  for (size_t i = 1; i <= rows_max_; ++i) {
    const size_t first = i > band_max_ ? i - band_max_ : 1;
    const size_t last = std::min(columns_max_, i + band_max_);
    const auto symbol = load(a_[i]);
    auto corner = load(row_[first - 1]), left = lanes_far;
    // Cells before the band are not read, except the one that is the corner of the next row.
    store(row_[first - 1], lanes_far);
    for (size_t j = first; j <= last; ++j) {
      const auto above = load(row_[j]);
      const auto cell = plus_differs(least(least(above, corner), left), symbol, load(b_[j]));
      left = most(cell, load(outside_[kMost + j - i]));
      corner = above;
      store(row_[j], left);
    }
    for (size_t p = 0; p < kPairs; ++p)
      if (rows_[p] == i) cost_[p] = static_cast<size_t>(row_[columns_[p]].of[p]);
  }
}

void Warp::distances(std::span<const uint32_t> now, std::span<const std::span<const uint32_t>> others,
                     double* out) {
  rows_max_ = columns_max_ = band_max_ = 0;
  rows_.fill(0);
  Cell far;
  far.of.fill(kFar);
  std::fill(std::begin(outside_), std::end(outside_), far);
  for (size_t p = 0; p < others.size(); ++p)
    if (!place(others[p], now, p)) out[p] = dtw_distance(others[p], now), rows_[p] = 0;
  pass();
  for (size_t p = 0; p < others.size(); ++p)
    if (rows_[p] != 0) out[p] = static_cast<double>(cost_[p]) / static_cast<double>(longer_[p]);
}

}  // namespace culprit::logs
