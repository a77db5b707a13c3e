#include "core/detect/logs/contrast.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace culprit;
using namespace culprit::detect;

namespace {

std::vector<UnitCount> counts(const std::vector<std::pair<uint32_t, uint64_t>>& list) {
  std::vector<UnitCount> out;
  for (const auto& [unit, count] : list) out.push_back({unit, count, kNoTime, kNoTime});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_that_alone_writes_a_line_scores_and_others_do_not) {
  const Contrast c = contrast(counts({{5, 40}}), std::vector<double>(64, 1.0));
  BOOST_TEST(c.top_unit == 5u);
  BOOST_TEST(c.top > chance_of(64));
  BOOST_TEST(c.absent == 0);
}

BOOST_AUTO_TEST_CASE(who_writes_none_of_what_all_write_is_below_them) {
  std::vector<std::pair<uint32_t, uint64_t>> list;
  for (uint32_t u = 0; u < 15; ++u) list.emplace_back(u, 100);
  const Contrast c = contrast(counts(list), std::vector<double>(16, 1.0));
  BOOST_TEST(c.absent < -chance_of(16));
  BOOST_TEST(c.z[0] == 0);
}

BOOST_AUTO_TEST_CASE(a_host_of_twice_the_ranks_may_write_twice_the_lines) {
  std::vector<double> exposure(8, 1.0);
  exposure[3] = 2;
  std::vector<std::pair<uint32_t, uint64_t>> list;
  for (uint32_t u = 0; u < 8; ++u) list.emplace_back(u, u == 3 ? 200 : 100);
  BOOST_TEST(contrast(counts(list), exposure).top < 0.1);
}

BOOST_AUTO_TEST_CASE(a_spread_that_all_hosts_have_is_no_contrast) {
  std::vector<std::pair<uint32_t, uint64_t>> list;
  for (uint32_t u = 0; u < 9; ++u) list.emplace_back(u, 100 + 100 * u);
  BOOST_TEST(contrast(counts(list), std::vector<double>(9, 1.0)).top < chance_of(9));
}
