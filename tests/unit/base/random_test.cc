// Random numbers of the kernel.
#include "base/random.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

using namespace culprit;

BOOST_AUTO_TEST_SUITE(random_numbers)

BOOST_AUTO_TEST_CASE(all_bytes_are_filled_and_no_number_is_zero_or_comes_twice) {
  std::string large(1 << 20, '\0');  // more than the kernel gives at once
  BOOST_REQUIRE(fill_random(large.data(), large.size()));
  BOOST_TEST(large.substr(large.size() - 64) != std::string(64, '\0'));
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_number());
  BOOST_TEST(seen.size() == 1000u);
  BOOST_TEST(!seen.contains(0));
}

BOOST_AUTO_TEST_SUITE_END()
