#include "core/logs/iterations_warp.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "core/logs/dtw.h"

using culprit::logs::dtw_distance;
using culprit::logs::Warp;
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

namespace {
// One object for all: earlier calls must have no effect.
void check(const Sequence& now, const std::vector<Sequence>& others) {
  static Warp warp;
  std::vector<std::span<const uint32_t>> spans(others.begin(), others.end());
  std::vector<double> out(others.size());
  warp.distances(now, spans, out.data());
  for (size_t i = 0; i < others.size(); ++i) BOOST_REQUIRE(out[i] == dtw_distance(others[i], now));
}
}  // namespace

BOOST_AUTO_TEST_CASE(distances_are_those_of_dynamic_time_warping_at_every_length) {
  Random random;
  for (int round = 0; round < 600; ++round) {
    const uint32_t symbols = 1 + random.below(round % 2 ? 4 : 60);
    const Sequence now = random.sequence(random.below(257), symbols);
    std::vector<Sequence> others(1 + random.below(Warp::kPairs));
    for (Sequence& s : others) s = random.sequence(random.below(257), symbols);
    check(now, others);
  }
}

BOOST_AUTO_TEST_CASE(sequences_that_share_most_of_their_events_are_measured_alike) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const Sequence now = random.sequence(1 + random.below(256), 40);
    std::vector<Sequence> others(10, now);
    for (Sequence& s : others)
      for (uint32_t edits = random.below(20); edits > 0 && s.size() > 1; --edits) {
        const auto at = static_cast<ptrdiff_t>(random.below(static_cast<uint32_t>(s.size())));
        if (edits % 3 == 0)
          std::rotate(s.begin() + at, s.end() - 1, s.end());
        else if (edits % 3 == 1)
          s.pop_back();
        else
          s[static_cast<size_t>(at)] = random.below(40);
      }
    check(now, others);
  }
}

BOOST_AUTO_TEST_CASE(long_sequences_and_large_symbols_are_measured_too) {
  Random random;
  const Sequence a = random.sequence(300, 5), b = random.sequence(280, 5), c = random.sequence(200, 5);
  check(a, {b, c});
  check(c, {a, b, c});
  // Their lower 16 bits are equal.
  const Sequence low = random.sequence(100, 9), high = random.sequence(90, 9, 0x10000);
  check(low, {high, low});
  // More large symbols in one call than fit in 16 bits with the small ones.
  const Sequence many = random.sequence(250, 0x10000, 0xff00), more = random.sequence(256, 0x10000, 0xff00);
  check(low, {many, more, high});
  check(many, {more, low, many, high});
}
