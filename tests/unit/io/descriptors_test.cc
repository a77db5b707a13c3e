#include "io/descriptors.h"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

using namespace culprit::io;

BOOST_AUTO_TEST_SUITE(descriptors)

BOOST_AUTO_TEST_CASE(inputs_leave_a_reserve_of_the_limit) {
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const struct {
    rlim_t limit;
    size_t inputs;
  } cases[] = {{256, 192}, {1024, 768}, {4096, 3840}};
  for (const auto& row : cases) {
    if (row.limit > before.rlim_max) continue;
    const rlimit now{row.limit, before.rlim_max};
    BOOST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
    BOOST_TEST(input_descriptors() == row.inputs);
    BOOST_TEST(!is_reserved(static_cast<int>(row.inputs) - 1));
    BOOST_TEST(is_reserved(static_cast<int>(row.inputs)));
    BOOST_TEST(!is_reserved(-1));
  }
  raise_descriptor_limit();
  rlimit after{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &after) == 0);
  BOOST_TEST(after.rlim_cur == std::min<rlim_t>(before.rlim_max, 131'072));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

BOOST_AUTO_TEST_SUITE_END()
