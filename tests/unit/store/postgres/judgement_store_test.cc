// Rows of judgements as the database gives them. With a database: tests/e2e/cases_cluster_people.py.
#include "store/postgres/judgement_store.h"

#include <boost/test/unit_test.hpp>

#include "store/postgres/columns.h"

using namespace culprit;
using namespace culprit::store::postgres;

BOOST_AUTO_TEST_SUITE(judgements_of_members)

namespace {

constexpr TimeNs kNow = 1'800'000'000 * kNsPerSecond;

std::vector<std::string> row() {
  return {"key",       to_hex("job/1"),
          "d0a1b2c3d", "y",
          "3",         "100",
          "200",       "rule:x",
          "t",         "alice",
          "500",       "site.x",
          "z",         "2026-11-30 10:00:00"};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row_is_a_judgement_of_the_run_as_its_member_numbers_it) {
  const auto found = judgement_of(row(), "x", kNow);
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST((found->job == "job/1" && found->id == "d0a1b2c3d" && found->right));
  BOOST_TEST((found->by == "alice at z" && found->time_ns == 500 && found->rule == "site.x"));
  BOOST_TEST((found->seen->member == "y" && found->seen->run == 3u && found->seen->kind == "rule:x"));
  BOOST_TEST(judgement_of(row(), "z", kNow)->by == "alice");
}

BOOST_AUTO_TEST_CASE(rows_of_another_form_are_no_judgements) {
  const std::pair<size_t, std::string> wrong[] = {
      {1, ""},
      {1, "zz"},
      {1, to_hex(std::string(5000, 'a'))},
      {2, "d1"},
      {2, "d0A1B2C3D"},
      {4, "-1"},
      {4, "4294967296"},
      {5, "x"},
      {6, "99"},
      {7, ""},
      {7, std::string(600, 'k')},
      {9, std::string(600, 'w')},
      {10, "0"},
      {10, std::to_string(kNow + 2 * 24LL * 3600 * kNsPerSecond)}};
  for (const auto& [column, text] : wrong) {
    auto bad = row();
    bad[column] = text;
    BOOST_TEST(!judgement_of(bad, "x", kNow).has_value(), column << " " << text.substr(0, 40));
  }
  BOOST_TEST(!judgement_of({"key"}, "x", kNow).has_value());
}

BOOST_AUTO_TEST_CASE(bytes_are_written_in_digits_and_read_back) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  BOOST_TEST((from_hex(to_hex(bytes)) == bytes));
  for (const char* text : {"0", "0g", "AB", " 0"}) BOOST_TEST(!from_hex(text).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
