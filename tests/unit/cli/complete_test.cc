#include "cli/complete.h"

#include <boost/test/unit_test.hpp>

#include "cli/verbs.h"

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(completion)

BOOST_AUTO_TEST_CASE(the_word_that_is_typed_is_recognised_by_its_place) {
  Command app(kAboutCulprit, "culprit");
  Run run;
  add_verbs(app, run);
  struct Case {
    std::vector<std::string> words;
    Wanted wanted;
    std::string prefix, job;
  };
  const std::vector<Case> cases = {
      {{"report", "lla"}, Wanted::kJob, "lla", ""},
      {{"report", "--format", "json", ""}, Wanted::kJob, "", ""},
      {{"report", "--format=json", ""}, Wanted::kJob, "", ""},
      {{"confirm", "my job", "d"}, Wanted::kDiagnosis, "d", "my job"},
      {{"confirm", "--wrong", "j", ""}, Wanted::kDiagnosis, "", "j"},
      {{"evidence", "cat", "--job", "j", "--path", "/v"}, Wanted::kSource, "/v", "j"},
      {{"evidence", "cat", "--job=j", "--path=/v"}, Wanted::kSource, "/v", "j"},
      {{"rules", "explain", "nvidia."}, Wanted::kRule, "nvidia.", ""},
      {{"diagnose", "runs/"}, Wanted::kNothing, "runs/", ""},
      {{"report", "--for"}, Wanted::kNothing, "--for", ""},
      {{"report", "--", "-odd"}, Wanted::kJob, "-odd", ""},
      {{"rep"}, Wanted::kNothing, "rep", ""},
      {{}, Wanted::kNothing, "", ""},
  };
  for (const Case& c : cases) {
    const Completing got = completing(app, c.words);
    BOOST_TEST((got.wanted == c.wanted), (c.words.empty() ? "" : c.words.back()));
    BOOST_TEST(got.prefix == c.prefix);
    BOOST_TEST(got.job == c.job);
  }
  BOOST_TEST(completing(app, {"report", "--server", "unix:/x", "j"}).server == "unix:/x");
}

BOOST_AUTO_TEST_CASE(quotes_of_bash_are_taken_off_and_nothing_is_run) {
  const std::pair<const char*, const char*> cases[] = {{"my\\ job", "my job"},     {"'my jo", "my jo"},
                                                       {"\"a\\\"b", "a\"b"},       {"'a\\b'", "a\\b"},
                                                       {"$(id)`id`", "$(id)`id`"}, {"a\\", "a\\"}};
  for (const auto& [typed, word] : cases) BOOST_TEST(without_quotes(typed) == word);
}

BOOST_AUTO_TEST_SUITE_END()
