#include "app/daemon/self/error_report.h"

#include <boost/test/unit_test.hpp>
#include <vector>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(error_report)

namespace {

// Seconds with a report, for a trouble that is checked each second.
template <class At>
std::vector<std::string> output(int64_t seconds, At trouble_at) {
  ErrorReport error_report;
  std::vector<std::string> out;
  for (int64_t s = 0; s < seconds; ++s)
    if (const auto words = error_report.look(trouble_at(s), "over", s * kNsPerSecond))
      out.push_back(std::to_string(s) + " " + *words);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trouble_is_reported_at_once_each_hour_and_when_it_is_over) {
  const auto reported = output(9000, [](int64_t s) { return s >= 5 && s < 8000 ? "refused" : ""; });
  const std::vector<std::string> expected = {"5 refused", "3605 refused", "7205 refused", "8000 over"};
  BOOST_TEST(reported == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(another_wording_is_reported_a_minute_later) {
  const auto reported = output(100, [](int64_t s) { return s < 10 ? "refused" : "no such host"; });
  const std::vector<std::string> expected = {"0 refused", "60 no such host"};
  BOOST_TEST(reported == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_comes_and_goes_or_changes_its_words_for_a_day_does_not_flood) {
  constexpr int64_t kDay = 86'400;
  BOOST_TEST(output(kDay, [](int64_t s) { return s % 10 < 5 ? "cut" : ""; }).size() < 70u);
  BOOST_TEST(output(kDay, [](int64_t s) { return "attempt " + std::to_string(s); }).size() < 35u);
  // After an hour without trouble, the next one is reported at once.
  const auto reported = output(2 * kDay, [](int64_t s) {
    return s < kDay ? std::to_string(s) : s == kDay + 7200 ? "cut" : "";
  });
  BOOST_TEST(reported.at(reported.size() - 2) == std::to_string(kDay + 7200) + " cut");
}

BOOST_AUTO_TEST_SUITE_END()
