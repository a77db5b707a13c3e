// Rows of what healthy jobs taught, as the database gives them. With a database:
// tests/e2e/cases_cluster_pools.py.
#include "store/postgres/pool_store.h"

#include <boost/test/unit_test.hpp>

#include "store/postgres/columns.h"

using namespace culprit;
using namespace culprit::store::postgres;

BOOST_AUTO_TEST_SUITE(pools_of_members)

namespace {

constexpr TimeNs kToday = 1'800'000'000 * kNsPerSecond;

std::vector<std::string> taught_row() {
  return {to_hex("job/1"),  "3", "user 1000", "its word",  "500", "12",
          to_hex("a pool"), "",  "y",         "2026-12-01"};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_is_what_a_run_taught_or_that_it_was_taken_back) {
  const auto found = taught_of(taught_row(), kToday);
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST((found->job == "job/1" && found->run == 3u && found->owner == "user 1000"));
  BOOST_TEST((found->time_ns == 500 && found->forms == 12u && found->text == "a pool"));
  BOOST_TEST((found->member == "y" && found->forgotten.empty()));
  auto row = taught_row();
  row[6] = "";
  row[7] = "root";
  const auto back = taught_of(row, kToday);
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST((back->text.empty() && back->forgotten == "root at y"));
}

BOOST_AUTO_TEST_CASE(rows_of_another_form_teach_nothing) {
  const std::pair<size_t, std::string> wrong[] = {
      {0, ""},
      {0, "zz"},
      {0, to_hex(std::string(5000, 'a'))},
      {1, "-1"},
      {1, "4294967296"},
      {2, ""},
      {2, std::string(600, 'o')},
      {3, std::string(600, 'w')},
      {4, "0"},
      {4, std::to_string(kToday + 2 * 24LL * 3600 * kNsPerSecond)},
      {5, "x"},
      {6, ""},
      {6, "zz"},
      {6, std::string(2 * PoolStore::kTextBytes + 2, 'a')},
      {7, "root"},
      {8, ""},
      {8, std::string(600, 'm')}};
  for (const auto& [column, text] : wrong) {
    auto row = taught_row();
    row[column] = text;
    BOOST_TEST(!taught_of(row, kToday).has_value(), column << " " << text.substr(0, 40));
  }
  BOOST_TEST(!taught_of({"key"}, kToday).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
