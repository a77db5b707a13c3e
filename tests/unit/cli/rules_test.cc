#include "cli/rules.h"

#include <boost/test/unit_test.hpp>

#include "core/rules/keys.h"

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_CASE(every_key_stands_in_both_references) {
  const std::string markdown = keys_markdown(), lua = keys_lua();
  for (const auto keys : {rules::rule_keys(), rules::override_keys()})
    for (const rules::Key& key : keys) {
      const std::string name(key.path.substr(key.path.rfind('.') + 1));
      BOOST_TEST_CONTEXT(key.path) {
        BOOST_TEST(markdown.find("| `" + std::string(key.path) + "` |") != std::string::npos);
        BOOST_TEST(lua.find("---@field " + name + (key.required ? " " : "? ")) != std::string::npos);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_shown_error_keeps_terminals_safe) {
  rules::RuleError error{"a\x1b[31m.lua", 1, 3, 2, "syntax", "near '\x1b]0;x\a'", "x\x1b[2J"};
  for (bool color : {false, true}) {
    std::string shown = show_error(error, color);
    BOOST_TEST(shown.find("\x1b[2J") == std::string::npos);
    BOOST_TEST(shown.find("\x1b]0") == std::string::npos);
    BOOST_TEST((shown.find('\x1b') != std::string::npos) == color);
    BOOST_TEST(std::count(shown.begin(), shown.end(), '\n') == 3);
  }
}
