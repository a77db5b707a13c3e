#include "base/shell.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;

BOOST_AUTO_TEST_SUITE(shell)

BOOST_AUTO_TEST_CASE(a_word_is_quoted_as_far_as_a_shell_needs_it) {
  const std::pair<const char*, const char*> cases[] = {
      {"runs/a-1.log:12", "runs/a-1.log:12"},
      {"", "''"},
      {"a b", "'a b'"},
      {"it's", "'it'\\''s'"},
      {"$(id)", "'$(id)'"},
      {"größe", "'größe'"},
      {"a\nb", "$'a\\012b'"},
      {"\x1b[2J'\\", "$'\\033[2J\\047\\134'"},
      {"\xff", "$'\\377'"},
      {"\xe2\x80\xae", "$'\\342\\200\\256'"},  // text that runs from right to left hides what follows
      {"~root", "'~root'"},
      {"*", "'*'"},
  };
  for (const auto& [text, word] : cases) BOOST_TEST(shell_word(text) == word);
}

BOOST_AUTO_TEST_CASE(a_last_argument_is_no_option) {
  BOOST_TEST(last_argument("llama") == "llama");
  BOOST_TEST(last_argument("-rf") == "-- -rf");
  BOOST_TEST(last_argument("-\n") == "-- $'-\\012'");
}

BOOST_AUTO_TEST_SUITE_END()
