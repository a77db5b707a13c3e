#include "cli/remote.h"

#include <boost/test/unit_test.hpp>

#include "cli/layout.h"

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(remote)

BOOST_AUTO_TEST_CASE(one_long_text_makes_no_row_of_a_table_wider_than_the_terminal) {
  const std::string title(150, 'x');
  const std::string wide = table({{"JOB", "WHAT", "WHERE"}, {"a", title, "here"}}, false, 1, 80);
  for (size_t at = 0, end; (end = wide.find('\n', at)) != wide.npos; at = end + 1)
    BOOST_TEST(columns_of(wide.substr(at, end - at)) <= 80u);
  BOOST_TEST(wide.find("x…  here\n") != wide.npos);
  // What fits stays whole, and where the others take all of it 20 columns are left.
  BOOST_TEST(table({{"JOB", "WHAT"}, {"a", "short"}}, false, 1, 80) == "JOB  WHAT\na    short\n");
  BOOST_TEST(
      table({{"JOB", "WHAT"}, {title, title}}, false, 1, 80).find("  " + std::string(19, 'x') + "…\n") !=
      std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
