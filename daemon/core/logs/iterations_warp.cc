// Along an anti-diagonal of the matrix (i + j = d) no cell needs another one, so eight are computed at a time. The
// cells of a diagonal stand at their i; only the last three diagonals are kept.
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

// cells[i] = min(left[i], left[i - 1], corner[i - 1]) + (a[i - 1] != b[i]) for `count` cells, rounded up to lanes.
void diagonal(const uint16_t* a, const uint16_t* b, const uint16_t* corner, const uint16_t* left, uint16_t* cells,
              size_t count) {
#if defined(__SSE2__)
  const auto at = [](const uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
  for (size_t i = 0; i < count; i += kLanes) {
    const __m128i from =
        _mm_min_epi16(_mm_min_epi16(at(left + i), at(left + i - 1)), at(corner + i - 1));
    const __m128i equal = _mm_cmpeq_epi16(at(a + i), at(b + i));  // -1 where they are
    _mm_storeu_si128(reinterpret_cast<__m128i*>(cells + i),
                     _mm_add_epi16(from, _mm_add_epi16(equal, _mm_set1_epi16(1))));
  }
#else
  for (size_t i = 0; i < count; ++i)
    cells[i] = static_cast<uint16_t>(std::min({left[i], left[i - 1], corner[i - 1]}) + (a[i] != b[i]));
#endif
}

}  // namespace
}  // namespace culprit::logs
