#include "core/logs/activity.h"

#include <boost/test/unit_test.hpp>
#include <random>

using namespace culprit;
using namespace culprit::logs;

namespace {

// All lines of a long time without bins.
double lines_of(const ActivityBins& bins) { return bins.between(-(TimeNs{1} << 60), TimeNs{1} << 60); }

}  // namespace

BOOST_AUTO_TEST_CASE(counts_of_any_size_are_exact) {
  BinCounts counts;
  std::vector<uint32_t> plain(64);
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    const size_t bin = random() % plain.size();
    const uint32_t n = 1u << (random() % (i < 2000 ? 4 : i < 3000 ? 12 : 22));
    counts.add(bin, n);
    plain[bin] += n;
    if (i % 100 == 0)
      for (size_t b = 0; b < counts.size(); ++b) BOOST_REQUIRE_EQUAL(counts[b], plain[b]);
  }
  BOOST_TEST(counts.size() == plain.size());
  for (size_t b = 0; b < plain.size(); ++b) BOOST_TEST(counts[b] == plain[b]);
}

BOOST_AUTO_TEST_CASE(every_line_stays_counted_while_the_time_grows_on_both_sides) {
  ActivityBins bins;
  std::mt19937 random(2);
  TimeNs first = 1000 * kNsPerSecond, last = first;
  for (int i = 0; i < 5000; ++i) {
    if (i % 3 == 0) last += static_cast<TimeNs>(random() % 60) * kNsPerSecond;
    if (i % 50 == 0) first -= static_cast<TimeNs>(random() % 600) * kNsPerSecond;
    bins.add(i % 2 == 0 ? first : last, 1);
    BOOST_REQUIRE_EQUAL(lines_of(bins), i + 1);
  }
  BOOST_TEST(bins.counts.size() <= bins.bins);
}

BOOST_AUTO_TEST_CASE(lines_are_in_the_bins_of_their_times) {
  ActivityBins bins;
  for (int s = 0; s < 1000; ++s) bins.add(s * kNsPerSecond, 3);
  BOOST_TEST(bins.between(0, 400 * kNsPerSecond) == 1200);
  BOOST_TEST(bins.between(400 * kNsPerSecond, 1000 * kNsPerSecond) == 1800);
  BOOST_TEST(bins.between(2000 * kNsPerSecond, 3000 * kNsPerSecond) == 0);
}
