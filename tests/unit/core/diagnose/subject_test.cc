#include "core/diagnose/subject.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::diagnose;

namespace {

struct Row {
  const char* title;
  std::vector<std::string> names, values;
  const char* text;
  const char* headline;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_headline_names_what_the_line_is_about) {
  const Row rows[] = {
      {"Module is not installed", {"module"}, {"einops"}, "x", "Module is not installed: einops"},
      {"Rank was killed", {"pid", "local_rank"}, {"17", "3"}, "x", "Rank was killed: local rank 3"},
      {"Ranks are behind", {"ranks"}, {"3, 5"}, "x", "Ranks are behind: ranks 3, 5"},
      {"No such file", {"path"}, {"'/data/x'."}, "x", "No such file: /data/x"},
      {"No such file", {"path"}, {"/data/x'"}, "x", "No such file: /data/x"},
      {"No such file", {"what"}, {"it is gone: '/data/x'"}, "x", "No such file: it is gone: '/data/x'"},
      {"Peer refused", {"peer"}, {"10.0.0.3<4791>"}, "x", "Peer refused: 10.0.0.3<4791>"},
      {"Value is not accepted: <what>", {"what"}, {"bad label"}, "x", "Value is not accepted: bad label"},
      {"Assertion failed: <what>", {"what"}, {""}, "AssertionError", "Assertion failed: \"AssertionError\""},
      {"Checkpoint is damaged",
       {},
       {},
       "RuntimeError: cut off",
       "Checkpoint is damaged: \"RuntimeError: cut off\""},
  };
  for (const Row& row : rows) {
    rules::Rule rule;
    rule.title = row.title;
    rule.holes = row.names;
    logs::RuleLine line;
    line.holes = row.values;
    line.text = row.text;
    BOOST_TEST(headline(rule, line) == row.headline);
  }
}

BOOST_AUTO_TEST_CASE(a_headline_shows_no_marks_and_numbers_of_lines_that_wait) {
  rules::Rule rule;
  rule.title = "Ring timed out";
  rule.holes = {"timed_out", "op", "waited_s"};
  rule.observes = Observes::kCollective;
  logs::RuleLine line;
  line.holes = {"gave up", "reduce_all", "600"};
  BOOST_TEST(headline(rule, line) == "Ring timed out: reduce_all");
}

BOOST_AUTO_TEST_CASE(a_headline_stays_short_however_long_the_line_is) {
  rules::Rule rule;
  rule.title = "CUDA call failed";
  logs::RuleLine line;
  line.text = std::string(5000, 'x');
  BOOST_TEST(headline(rule, line).size() <= 164u);
}
