// Along an anti-diagonal of the matrix (i + j = d) no cell needs another one, so eight are computed at a
// time. The cells of a diagonal stand at their i; only the last three diagonals are kept.
#include "core/logs/iterations_warp.h"

#include <algorithm>

#include "core/logs/dtw.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace culprit::logs {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kMost = 256;  // symbols: longer sequences take the general way
// More than any path costs, and it stays below 2^15 however many steps are added to it.
constexpr uint16_t kFar = 0x3fff;

using Row = uint16_t[kMost + 2 * kLanes];

// cells[i] = min(left[i], left[i - 1], corner[i - 1]) + (a[i - 1] != b[i]) for `count` cells, rounded up to
// lanes.
void diagonal(const uint16_t* a, const uint16_t* b, const uint16_t* corner, const uint16_t* left,
              uint16_t* cells, size_t count) {
#if defined(__SSE2__)
  const auto at = [](const uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
  for (size_t i = 0; i < count; i += kLanes) {
    const __m128i from = _mm_min_epi16(_mm_min_epi16(at(left + i), at(left + i - 1)), at(corner + i - 1));
    const __m128i equal = _mm_cmpeq_epi16(at(a + i), at(b + i));  // -1 where they are
    _mm_storeu_si128(reinterpret_cast<__m128i*>(cells + i),
                     _mm_add_epi16(from, _mm_add_epi16(equal, _mm_set1_epi16(1))));
  }
#else
  for (size_t i = 0; i < count; ++i)
    cells[i] = static_cast<uint16_t>(std::min({left[i], left[i - 1], corner[i - 1]}) + (a[i] != b[i]));
#endif
}

// Copies in 16 bits; false where a symbol has more.
bool narrow(std::span<const uint32_t> from, uint16_t* to) {
  uint32_t all = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = static_cast<uint16_t>(from[i]);
    all |= from[i];
  }
  return all <= 0xffff;
}

// The cost of the best path within `band` of the diagonal; at least one path stays within it.
uint32_t path_cost(const uint16_t* a, size_t n, const uint16_t* b_reversed, size_t m, size_t band) {
  Row rows[3];
  std::fill_n(&rows[0][0], sizeof rows / sizeof(uint16_t), kFar);
  uint16_t* corner = rows[0] + kLanes;
  uint16_t* left = rows[1] + kLanes;
  uint16_t* cells = rows[2] + kLanes;
  corner[0] = 0;
  for (size_t d = 2; d <= n + m; ++d) {
    const size_t first = std::max({size_t{1}, d > m ? d - m : 0, d > band ? (d - band + 1) / 2 : 0});
    const size_t last = std::min({n, d - 1, (d + band) / 2});
    diagonal(a + first - 1, b_reversed + (m + first - d), corner + first, left + first, cells + first,
             last - first + 1);
    // What the lanes wrote beyond, and what an older diagonal left before, is no cell.
    cells[first - 1] = cells[last + 1] = kFar;
    uint16_t* const oldest = corner;
    corner = left;
    left = cells;
    cells = oldest;
  }
  return left[n];
}

}  // namespace

double warp_distance(std::span<const uint32_t> whole_a, std::span<const uint32_t> whole_b) {
  const size_t longer = std::max(whole_a.size(), whole_b.size());
  if (longer == 0 || longer > kMost) return dtw_distance(whole_a, whole_b);
  std::span<const uint32_t> a = whole_a, b = whole_b;
  const auto [begin, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto skip = static_cast<size_t>(begin - a.begin());
  a = a.subspan(skip), b = b.subspan(skip);
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a = a.first(a.size() - 1), b = b.first(b.size() - 1);
  const size_t n = a.size(), m = b.size();
  if (n == 0 || m == 0) return static_cast<double>(std::max(n, m)) / static_cast<double>(longer);
  // Loads of whole lanes reach beyond the ends; what they read there goes into no cell.
  uint16_t first[kMost + kLanes] = {}, second[kMost + kLanes] = {};
  if (!narrow(a, first) || !narrow(b, second)) return dtw_distance(whole_a, whole_b);
  std::reverse(second, second + m);
  const size_t band = std::max<size_t>({4, longer / 10, (n > m ? n - m : m - n) + 1});
  return static_cast<double>(path_cost(first, n, second, m, band)) / static_cast<double>(longer);
}

}  // namespace culprit::logs
