#include "cli/help_page.h"

#include <boost/test/unit_test.hpp>

#include "cli/layout.h"
#include "cli/verbs.h"

using namespace culprit;
using namespace culprit::cli;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void check_width(const Command& app, std::vector<std::string> path, size_t width) {
  Command fresh(kAboutCulprit, "culprit");
  Run run;
  add_verbs(fresh, run);
  std::vector<std::string> words = path;
  words.emplace_back("--help");
  for (const std::string& line : lines_of(fresh.parse(words).text))
    BOOST_TEST(columns_of(line) <= width, width << ": " << line);
  for (const Command& verb : app.subcommands()) {
    std::vector<std::string> below = path;
    below.push_back(verb.name());
    check_width(verb, below, width);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(help_page)

BOOST_AUTO_TEST_CASE(no_line_of_any_help_is_wider_than_the_terminal) {
  Command app(kAboutCulprit, "culprit");
  Run run;
  add_verbs(app, run);
  for (const size_t width : {80u, 100u}) {
    setenv("COLUMNS", std::to_string(width).c_str(), 1);
    check_width(app, {}, width);
  }
  unsetenv("COLUMNS");
}

BOOST_AUTO_TEST_CASE(verbs_are_grouped_by_task) {
  Command app(kAboutCulprit, "culprit");
  Run run;
  add_verbs(app, run);
  const std::string text = app.parse({"--help"}).text;
  size_t at = 0;
  for (const char* part :
       {"\nVerbs that diagnose:\n  run ", "\nVerbs that watch:\n  status ", "\nVerbs that act:\n  confirm ",
        "\nVerbs for rules", "\n  rules ", "\nVerbs for the data", "\n  evidence ", "\nVerbs to set up",
        "\n  doctor ", "\nOptions:\n"}) {
    const size_t found = text.find(part, at);
    BOOST_REQUIRE_MESSAGE(found != text.npos, part);
    at = found;
  }
  BOOST_TEST(text.find("bench") == text.npos);
}

BOOST_AUTO_TEST_CASE(an_option_says_its_values_its_range_and_its_default) {
  Command app("", "x");
  std::string format = "text";
  uint32_t top = 3;
  app.add_option("--format,-f", format, "How")->one_of({"text", "json"})->show_default();
  app.add_option("--top", top, "Rows")->between(1u, 8u)->show_default();
  const std::string text = app.parse({"--help"}).text;
  BOOST_TEST(text.find("-f, --format text|json  How [default: text]") != text.npos, text);
  BOOST_TEST(text.find("--top N                 Rows [1 to 8; default: 3]") != text.npos, text);
}

BOOST_AUTO_TEST_CASE(a_command_that_is_too_long_can_be_pasted) {
  const HelpPage page{
      "", "x", {}, "\nExamples:\n  culprit diagnose one two 'three four'  # why\n  culprit x"};
  BOOST_TEST(help_text(page, 100).ends_with("  culprit diagnose one two 'three four'  # why\n  culprit x\n"));
  BOOST_TEST(
      help_text(page, 40).ends_with("\n  # why\n  culprit diagnose one two 'three four'\n  culprit x\n"));
  const HelpPage longer{"", "x", {}, "\nExamples:\n  culprit diagnose one two 'three four' five | jq ."};
  const std::string text = help_text(longer, 40);
  BOOST_TEST(text.ends_with("\n  culprit diagnose one two \\\n     'three four' five | jq .\n"), text);
}

BOOST_AUTO_TEST_SUITE_END()
