#include "core/logs/dtw.h"

#include <boost/test/unit_test.hpp>

using culprit::logs::dtw_distance;
using Sequence = std::vector<uint32_t>;

BOOST_AUTO_TEST_CASE(equal_sequences_are_at_distance_zero) {
  BOOST_TEST(dtw_distance(Sequence{1, 2, 3}, Sequence{1, 2, 3}) == 0);
  BOOST_TEST(dtw_distance(Sequence{}, Sequence{}) == 0);
}

BOOST_AUTO_TEST_CASE(each_foreign_event_costs_its_share) {
  BOOST_TEST(dtw_distance(Sequence{1, 2, 3, 4}, Sequence{1, 7, 3, 4}) == 0.25);
  BOOST_TEST(dtw_distance(Sequence{1, 2}, Sequence{5, 6}) == 1.0);
}

BOOST_AUTO_TEST_CASE(the_distance_is_symmetric_and_bounded) {
  uint64_t state = 1;
  const auto random = [&](size_t n) {
    Sequence s;
    for (size_t i = 0; i < n; ++i)
      s.push_back(static_cast<uint32_t>((state = state * 6364136223846793005u + 1) >> 61));
    return s;
  };
  for (size_t n = 1; n < 60; n += 3) {
    const Sequence a = random(n), b = random(61 - n);
    const double d = dtw_distance(a, b);
    BOOST_TEST(d == dtw_distance(b, a));
    BOOST_TEST(d >= 0);
    BOOST_TEST(d <= 1);
  }
}

BOOST_AUTO_TEST_CASE(giving_up_never_gives_more_than_the_bound) {
  const Sequence a{1, 2, 3, 4, 5, 6, 7, 8}, b{11, 12, 13, 14, 15, 16, 17, 18};
  BOOST_TEST(dtw_distance(a, b, 0.25) == 0.25);
  BOOST_TEST(dtw_distance(a, a, 0.25) == 0);
}
