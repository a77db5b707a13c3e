#include "core/rules/library_tables.h"

#include <boost/test/unit_test.hpp>

#include "core/rules/line_share.h"
#include "core/rules/matcher.h"

namespace culprit::rules {

BOOST_AUTO_TEST_CASE(what_the_build_knows_of_a_wording_is_what_its_analysis_gives) {
  size_t wordings = 0;
  const std::shared_ptr<Ruleset> shipped = Ruleset::shipped();
  for (size_t i = 0; i < shipped->rules().size(); i += 7)  // an analysis takes a fifth of a millisecond
    for (const Pattern& pattern : shipped->rules()[i].any) {
      const auto known = library_wording(pattern.regex);
      BOOST_REQUIRE_MESSAGE(known.has_value(), pattern.regex);
      const std::string same = "(?:" + pattern.regex + ")";  // the library does not contain it
      BOOST_REQUIRE(!library_wording(same).has_value());
      const auto fresh = analyse(same);
      BOOST_REQUIRE(fresh.has_value());
      BOOST_TEST(
          (known->holes == fresh->holes && known->literals == fresh->literals && known->also == fresh->also),
          pattern.regex);
      ++wordings;
    }
  BOOST_TEST(wordings > 300u);
}

BOOST_AUTO_TEST_CASE(the_compiled_literals_are_those_of_the_shipped_rules_alone) {
  const std::shared_ptr<Ruleset> shipped = Ruleset::shipped();
  BOOST_TEST(!library_database(shipped->matcher()->literal_hash()).empty());
  std::vector<Rule> fewer(shipped->rules().begin(), shipped->rules().end());
  for (size_t i = 0; i < 20; ++i) fewer[i].enabled = false;  // one rule may share its literals
  const auto other = Matcher::create(fewer);
  BOOST_REQUIRE(other.has_value());
  BOOST_TEST(library_database((*other)->literal_hash()).empty());
}

BOOST_AUTO_TEST_CASE(a_text_is_as_common_as_its_rarest_piece) {
  BOOST_TEST(line_share("err") == 1.0);  // too short to be counted
  BOOST_TEST(line_share("error") > 10 * kRareShare);
  BOOST_TEST(line_share("ERROR") == line_share("error"));
  BOOST_TEST(line_share("out of memory") < kRareShare);
  BOOST_TEST(line_share("fallen off the bus") < line_share("fallen off"));
  BOOST_TEST(line_share("2024-11-23") == line_share("1987-01-30"));  // digits are alike
  BOOST_TEST(line_share("81978002") < line_share("fault"));          // one number of a hundred million
}

// Each of these texts alone stands in many lines.
BOOST_AUTO_TEST_CASE(of_all_texts_that_a_match_needs_the_rarest_is_looked_for) {
  const struct {
    const char* regex;
    std::vector<std::string> literals;
    size_t also;
  } cases[] = {
      {"error: .* fallen off the bus", {" fallen off the bus"}, 1},
      {"(?:error|failed): .* fallen off", {" fallen off"}, 1},
      {"error", {"error"}, 0},
      // The texts that share the one looked for must stand in the line whole.
      {"NOT_SUPPORTED_BY_A|NOT_SUPPORTED_BY_B", {"not_supported_by_"}, 1},
  };
  for (const auto& row : cases) {
    const auto wording = analyse(row.regex);
    BOOST_REQUIRE(wording.has_value());
    BOOST_TEST(wording->literals == row.literals, boost::test_tools::per_element());
    BOOST_TEST(wording->also.size() == row.also, row.regex);
  }
}

}  // namespace culprit::rules
