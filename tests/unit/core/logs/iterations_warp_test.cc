#include "core/logs/iterations_warp.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "core/logs/dtw.h"

using culprit::logs::dtw_distance;
using culprit::logs::warp_distance;
using Sequence = std::vector<uint32_t>;

namespace {
struct Random {
  uint64_t state = 7;
  uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % n);
  }
  Sequence sequence(size_t size, uint32_t symbols, uint32_t from = 0) {
    Sequence s;
    for (size_t i = 0; i < size; ++i) s.push_back(from + below(symbols));
    return s;
  }
};
}  // namespace

BOOST_AUTO_TEST_CASE(the_distance_is_that_of_dynamic_time_warping_at_every_length) {
  Random random;
  for (int round = 0; round < 4000; ++round) {
    const uint32_t symbols = 1 + random.below(round % 2 ? 4 : 60);
    const Sequence a = random.sequence(random.below(257), symbols),
                   b = random.sequence(random.below(257), symbols);
    BOOST_REQUIRE(warp_distance(a, b) == dtw_distance(a, b));
  }
}

BOOST_AUTO_TEST_CASE(sequences_that_share_most_of_their_events_are_measured_alike) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    const Sequence a = random.sequence(1 + random.below(256), 40);
    Sequence b = a;
    for (uint32_t edits = random.below(20); edits > 0 && !b.empty(); --edits) {
      const size_t at = random.below(static_cast<uint32_t>(b.size()));
      if (edits % 3 == 0)
        std::rotate(b.begin() + static_cast<ptrdiff_t>(at), b.end() - 1, b.end());
      else if (edits % 3 == 1)
        b.pop_back();
      else
        b[at] = random.below(40);
    }
    BOOST_REQUIRE(warp_distance(a, b) == dtw_distance(a, b));
  }
}

BOOST_AUTO_TEST_CASE(long_sequences_and_large_symbols_are_measured_too) {
  Random random;
  const Sequence a = random.sequence(300, 5), b = random.sequence(280, 5);
  BOOST_TEST(warp_distance(a, b) == dtw_distance(a, b));
  const Sequence c = random.sequence(100, 9, 0x10000), d = random.sequence(90, 9, 0);
  BOOST_TEST(warp_distance(c, d) == dtw_distance(c, d));  // their lower 16 bits are alike
  BOOST_TEST(warp_distance(c, d) > 0.5);
}
