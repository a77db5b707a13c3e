#include <boost/test/unit_test.hpp>

#include "base/text.h"
#include "core/rules/keys.h"
#include "fixtures.h"

namespace culprit::rules {
namespace {

// A whole rule with one thing replaced.
std::string changed(std::string_view from, std::string_view to) {
  std::string text =
      "rule {\n"
      "  id = \"a.b\", engine = 1, title = \"t\",\n"
      "  category = \"hardware\", component = \"gpu\", severity = \"error\",\n"
      "  match = { template = \"fault <n>\" },\n"
      "  remedy = \"r\",\n"
      "  examples = { hit = { \"fault 1\" }, miss = { \"fine\" } },\n"
      "}\n";
  const size_t at = text.find(from);
  BOOST_REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

struct Case {
  std::string_view from, to;
  std::string_view error;  // the beginning of the error, without "a.lua:"
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string errors = errors_of(changed(c.from, c.to));
    const std::string want = "a.lua:" + std::string(c.error);
    BOOST_TEST(errors.substr(0, want.size()) == want, errors << "--- instead of\n" << want);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_rule_is_taken) { BOOST_TEST(errors_of(changed("t", "t")) == ""); }

BOOST_AUTO_TEST_CASE(an_error_points_at_its_key_or_value) {
  check({
      {"title = \"t\"", "titel = \"t\"",
       "1:1: error[missing-key]: title is missing: what happened, in a few words\n"
       "     1 | rule {\n"
       "a.lua:2:27: error[unknown-key]: 'titel' is no key of a rule; did you mean 'title'?\n"
       "     2 |   id = \"a.b\", engine = 1, titel = \"t\",\n"
       "       |                           ^~~~~\n"},
      {"\"gpu\"", "\"gpus\"",
       "3:38: error[bad-value]: component 'gpus' is none of: gpu gpu_memory nvlink pcie network nccl_comm "
       "host_memory host_kernel storage cpu cuda_runtime driver framework user_code user_config user_data "
       "dependency platform numeric unknown; did you mean 'gpu'?\n"
       "     3 |   category = \"hardware\", component = \"gpus\", severity = \"error\",\n"
       "       |                                      ^~~~~~\n"},
      {"\"t\"", "5",
       "2:35: error[wrong-type]: title has to be a text, not a number\n"
       "     2 |   id = \"a.b\", engine = 1, title = 5,\n"
       "       |                                   ^\n"},
      {"template = \"fault <n>\"", "template = \"fault <n\"",
       "4:24: error[bad-pattern]: template 'fault <n': '<' at place 7 begins no hole; write '<<' for a '<'\n"
       "     4 |   match = { template = \"fault <n\" },\n"
       "       |                        ^~~~~~~~~~\n"},
      {"remedy", "\tremedy = \"r\", wibble = \"ä\", remedy",
       "5:18: error[unknown-key]: 'wibble' is no key of a rule\n"
       "     5 |   \tremedy = \"r\", wibble = \"ä\", remedy = \"r\",\n"
       "       |   \t              ^~~~~~\n"},
      {"\"fine\"", "\"a fault 2\"",
       "6:37: error[example-hit]: rule a.b: the example 'a fault 2' must not hit, and does\n"
       "     6 |   examples = { hit = { \"fault 1\" }, miss = { \"a fault 2\" } },\n"
       "       |                                     ^~~~\n"},
  });
}

BOOST_AUTO_TEST_CASE(each_fault_of_reads_has_its_code) {
  check({
      {"remedy", "reads = \"x(?P<op>.)\", remedy",
       "5:3: error[bad-value]: reads is only for rules with `observes`"},
      {"remedy", "observes = \"peer\", reads = \"(\", remedy",
       "5:30: error[bad-pattern]: reads '(': missing )"},
      {"remedy", "observes = \"peer\", reads = \"ran for .\", remedy",
       "5:30: error[bad-pattern]: reads 'ran for .': names no hole"},
      {"remedy", "observes = \"peer\", reads = \"(?P<sec>.)\", remedy",
       "5:30: error[unknown-hole]: reads '(?P<sec>.)': 'sec' is no hole that is read; did you mean 'seq'?"},
  });
}

BOOST_AUTO_TEST_CASE(each_fault_has_its_code) {
  check({
      {"\"a.b\"", "\"ab\"", "2:8: error[bad-value]: "},
      {"\"a.b\"", "\"A.b\"", "2:8: error[bad-value]: "},
      {"\"a.b\"", "\"\"", "2:8: error[bad-value]: id has to be 1 to 4000 bytes long"},
      {"engine = 1", "engine = 2", "2:24: error[bad-value]: engine 2 is not known: this program takes 1"},
      {"engine = 1", "engine = 1.5", "2:24: error[wrong-type]: engine has to be a whole number"},
      {"engine = 1", "engine = -1", "2:24: error[wrong-type]: engine has to be a whole number"},
      {"remedy = \"r\",", "", "1:1: error[missing-key]: remedy is missing"},
      {"template", "regex = \"(\", template", "4:21: error[bad-pattern]: match.regex '(': missing )"},
      {"template = \"fault <n>\"", "", "4:3: error[missing-key]: match has neither a template nor a regex"},
      {"\"fault <n>\"", "\"<n>\"", "4:24: error[bad-pattern]: template '<n>': a template of holes alone"},
      {"\"fault <n>\"", "\"<a>: <a>\"",
       "4:24: error[bad-pattern]: match.template '<a>: <a>': the hole 'a' stands twice"},
      {"\"fault <n>\"", "\"f <n>\"", "4:24: error[no-literal]: 'f <n>' has no 3 fixed characters"},
      {"\"fault <n>\"", "{}", "4:24: error[wrong-type]: match.template has to be a text or a list of texts"},
      {"\"fault <n>\"", "{ 1 }",
       "4:24: error[wrong-type]: match.template has to be a text or a list of texts"},
      {"\"fault 1\"", "\"fault\"", "6:16: error[example-not-hit]: rule a.b: the example 'fault' has to hit"},
      {"hit = { \"fault 1\" }, ", "", "6:3: error[missing-key]: examples.hit is missing"},
      {", miss = { \"fine\" }", "", "6:3: error[missing-key]: examples.miss is missing"},
      {"remedy", "window = { at_least = 2 }, remedy", "5:3: error[missing-key]: window.span is missing"},
      {"remedy", "window = { span = \"9\" }, remedy",
       "5:21: error[bad-value]: window.span '9' is no duration"},
      {"remedy", "window = { span = \"8d\" }, remedy",
       "5:21: error[bad-value]: window.span '8d' is no duration"},
      {"remedy", "window = { span = \"1s\", at_least = 1001 }, remedy", "5:38: error[bad-value]: "},
      {"remedy", "window = { span = \"1s\", distinct = \"m\" }, remedy",
       "5:38: error[bad-value]: 'm' is no hole of the rule's match"},
      {"remedy", "window = { span = \"1s\", after = \"x.y\" }, remedy",
       "5:35: error[unknown-rule]: window.after names 'x.y', which is no rule"},
      {"remedy", "window = { span = \"1s\", unless = \"x.y\" }, remedy",
       "5:36: error[unknown-rule]: window.unless names 'x.y', which is no rule"},
      {"remedy", "window = { span = \"1s\", spam = 1 }, remedy",
       "5:27: error[unknown-key]: 'window.spam' is no key of a rule; did you mean 'window.span'?"},
      {"remedy", "when = true, remedy",
       "5:10: error[wrong-type]: when has to be a function, not true or false"},
      {"remedy", "source = { \"log\", \"lug\" }, remedy", "5:12: error[bad-value]: source 'lug' is none of"},
      {"remedy", "\"x\", remedy", "1:1: error[unknown-key]: the rule holds a value without a key"},
      {"remedy", "when = function() return error('why') end, remedy",
       "5:1: error[example-not-hit]: rule a.b: the example 'fault 1' has to hit: a.lua:5: rule a.b: when: "
       "why"},
      {"remedy", "when = function(e) return e.n.x.y end, remedy", "5:1: error[example-not-hit]: "},
      {"remedy", "when = function(e)\n return e.num == '1' end, remedy",
       "6:1: error[example-not-hit]: rule a.b: the example 'fault 1' has to hit: a.lua:6: rule a.b: when: "
       "there "
       "is no 'num' here"},
      {"template = \"fault <n>\" }",
       "template = \"fault <port>\" }, when = function(e) return e.prot == '1' end",
       "4:1: error[example-not-hit]: rule a.b: the example 'fault 1' has to hit: a.lua:4: rule a.b: when: "
       "there "
       "is no 'prot' here; did you mean 'port'?"},
      {"remedy", "when = function(e, w) return e.rank == nil and w.cuont == 1 end, remedy",
       "5:1: error[example-not-hit]: rule a.b: the example 'fault 1' has to hit: a.lua:5: rule a.b: when: "
       "there "
       "is no 'cuont' here; did you mean 'count'?"},
      {"title = \"t\"", "title = \"t <texd> <n> <text> < 5\"",
       "2:35: error[unknown-hole]: <texd> in the title is no hole of the rule's match; did you mean "
       "'text'?\n"},
      {"remedy", "window = { span = \"1s\", distinct = \"m\" }, remedy",
       "5:38: error[bad-value]: 'm' is no hole of the rule's match; did you mean 'n'?"},
      {"remedy", "when = function(e) return false end, remedy",
       "6:16: error[example-not-hit]: rule a.b: the example 'fault 1' has to hit: it matches, but its window "
       "or"},
      {"}\n", "} }\n", "7:1: error[syntax]: unexpected symbol near '}'"},
      {"rule {", "local x = nil + 1\nrule {",
       "1:1: error[script]: attempt to perform arithmetic on a nil value"},
      {"rule {", "while true do end\nrule {", "1:1: error[over-budget]: used more than 1000000 instructions"},
  });
}

// A finding counts with another rule's hit within the span, whichever comes first.
BOOST_AUTO_TEST_CASE(a_rule_on_findings_may_ask_for_another_rule) {
  const std::string other =
      "rule { id = \"a.cause\", engine = 1, title = \"t\", category = \"unknown\", component = \"unknown\", "
      "severity = \"info\", source = { \"log\", \"finding\" }, match = { template = \"cause <n>\" }, remedy "
      "= \"r\", "
      "examples = { hit = { \"cause 1\" }, miss = { \"-\" } } }\n";
  const auto with = [&](const std::string& source, const std::string& hit, const std::string& miss) {
    return errors_of(other + rule_text("a.b", source +
                                                  " window = { span = \"10m\", with = \"a.cause\" }, "
                                                  "examples = { hit = { " +
                                                  hit + " }, miss = { " + miss + " } },"));
  };
  const std::string finding = "source = \"finding\",";
  BOOST_TEST(with(finding, R"("cause 1\nfault 1", "fault 1\ncause 1")", R"("fault 1", "cause 1")") == "");
  BOOST_TEST(with(finding, R"("fault 1")", R"("-")").find("[example-not-hit]") != std::string::npos);
  BOOST_TEST(with(finding, R"("Nov 21 02:12:01 node-3 fault 1\nNov 21 02:12:01 node-4 cause 1")", R"("-")")
                 .find("[example-not-hit]") != std::string::npos);  // of another host
  BOOST_TEST(with("", R"("cause 1\nfault 1")", R"("-")").find("only for rules whose source is") !=
             std::string::npos);
  BOOST_TEST(errors_of(rule_text("a.b", finding + " window = { span = \"1m\", with = \"x.y\" },"))
                 .find("[unknown-rule]: window.with names 'x.y'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_miss_example_at_which_the_function_fails_proves_nothing) {
  const std::string text =
      changed("remedy", "when = function(e) if e.n == '2' then error('why') end return true end, remedy");
  std::string with = text;
  with.replace(with.find("\"fine\""), 6, "\"fault 2\"");
  BOOST_TEST(errors_of(text) == "");
  BOOST_TEST(
      errors_of(with).find("error[example-failed]: rule a.b: the example 'fault 2' proves nothing: ") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_errors_of_all_files_are_reported_in_order_and_nothing_is_taken) {
  std::string errors;
  const auto set = load_all({{"b.lua", rule_text("b.b", "wrong = 1, window = { span = 'x' },")},
                             {"a.lua", rule_text("a.a") + "rule { id = 'a.c' }"},
                             {"c.lua", rule_text("c.c")}},
                            &errors);
  BOOST_TEST(!set);
  std::vector<size_t> places;
  for (const char* part : {"a.lua:5:1: error[missing-key]: engine", "a.lua:5:1: error[missing-key]: title",
                           "a.lua:5:1: error[missing-key]: examples", "b.lua:4:3: error[unknown-key]",
                           "b.lua:4:32: error[bad-value]: window.span"}) {
    places.push_back(errors.find(part));
    BOOST_TEST(places.back() != std::string::npos, errors << "lacks " << part);
  }
  BOOST_TEST(std::is_sorted(places.begin(), places.end()));
  BOOST_TEST(errors.find("c.lua") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_id_stands_once_over_all_files) {
  std::string errors;
  load_all({{"a.lua", rule_text("a.a")}, {"b.lua", "\n" + rule_text("a.a")}}, &errors);
  BOOST_TEST(errors.find("b.lua:2:1: error[duplicate-id]: id 'a.a' stands already at a.lua:1\n") == 0u,
             errors);
}

BOOST_AUTO_TEST_CASE(rules_come_in_order_of_ids_whatever_the_order_of_files) {
  const std::vector<RuleText> files = {{"1", rule_text("m.b") + rule_text("m.a")},
                                       {"2", rule_text("a.z", "window = { span = '1s', unless = 'm.b' },")}};
  const auto one = load_all(files);
  const auto other = load_all({files[1], files[0]});
  BOOST_REQUIRE((one && other));
  std::string ids;
  for (size_t i = 0; i < one->rules().size(); ++i) {
    ids += one->rules()[i].id + " ";
    BOOST_TEST(one->rules()[i].text_hash == other->rules()[i].text_hash);
  }
  BOOST_TEST(ids == "a.z m.a m.b ");
}

BOOST_AUTO_TEST_CASE(a_family_of_rules_is_a_loop_and_its_errors_name_the_call) {
  const std::string loop =
      "for i, component in ipairs { \"gpu\", \"pcie\" } do\n"
      "  rule { id = \"f.x\" .. i, engine = 1, title = \"t\" .. i, category = \"hardware\", component = "
      "component,\n"
      "    severity = \"error\", match = { template = \"fault \" .. i .. \": <n>\" }, remedy = \"r\",\n"
      "    examples = { hit = { \"fault \" .. i .. \": x\" }, miss = { \"fault\" } } }\n"
      "end\n";
  const auto set = load_all({{"a.lua", loop}});
  BOOST_REQUIRE(set);
  BOOST_TEST(set->rules()[1].id == "f.x2");
  BOOST_TEST(static_cast<int>(set->rules()[1].component) == static_cast<int>(Component::kPcie));
  // A computed key has no position of its own: the call's position is reported, without a caret.
  const std::string computed = "local t = { id = \"a.b\" }\nt.ingine = 1\nrule(t)\n";
  BOOST_TEST(
      errors_of(computed).find("a.lua:3:1: error[unknown-key]: 'ingine' is no key of a rule; did you mean "
                               "'engine'?\n     3 | rule(t)\n") != std::string::npos,
      errors_of(computed));
}

BOOST_AUTO_TEST_CASE(an_override_changes_what_it_may_and_nothing_else) {
  const std::string base = rule_text("a.a") + rule_text("a.b");
  const auto set = load_all({{"a", base},
                             {"b",
                              "override { id = 'a.a', severity = 'warning', action = 'check' }\n"
                              "override { id = 'a.b', enabled = false }"}});
  BOOST_REQUIRE(set);
  BOOST_TEST(static_cast<int>(set->rules()[0].severity) == static_cast<int>(Severity::kWarning));
  BOOST_TEST(static_cast<int>(set->rules()[0].action) == static_cast<int>(ActionKind::kCheck));
  BOOST_TEST((set->rules()[0].enabled && !set->rules()[1].enabled));
  const auto without = load_all({{"a", base}});
  BOOST_TEST(set->rules()[0].text_hash == without->rules()[0].text_hash);
  BOOST_TEST(errors_of("override { id = 'x.y' }").find("error[unknown-rule]: override names 'x.y'") !=
             std::string::npos);
  BOOST_TEST(errors_of("override { id = 'x.y', title = 't' }").find("error[unknown-key]: 'title'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_must_differ_for_the_next_attempt_is_stated_or_follows_from_the_action) {
  const struct {
    const char* keys;
    Restart first, after_steps;
    bool stated;
  } rows[] = {
      {"restart = 'later'", Restart::kLater, Restart::kLater, true},
      {"restart = { 'never', 'same' }", Restart::kNever, Restart::kSame, true},
      {"action = 'isolate'", Restart::kElsewhere, Restart::kElsewhere, false},
      {"action = 'fix'", Restart::kNever, Restart::kNever, false},
      {"", Restart::kUnknown, Restart::kUnknown, false},
  };
  for (const auto& row : rows) {
    const auto set = load_all({{"a", rule_text("a.a", row.keys)}});
    BOOST_REQUIRE(set);
    const Rule& rule = set->rules()[0];
    BOOST_TEST((rule.restart == row.first && rule.restart_after_steps == row.after_steps), row.keys);
    BOOST_TEST(rule.restart_stated == row.stated, row.keys);
    const std::vector<RuleText> files{{"a", rule_text("a.a", row.keys)}};
    BOOST_TEST(unstated(*set, files).empty() == row.stated, row.keys);
  }
  BOOST_TEST(errors_of(rule_text("a.a", "restart = 'nevre'")).find("did you mean 'never'?") !=
             std::string::npos);
  BOOST_TEST(errors_of(rule_text("a.a", "restart = { 'never', 'same', 'later' }"))
                 .find("restart is one word, or two") != std::string::npos);
  const auto changed = load_all(
      {{"a", rule_text("a.a", "restart = 'never'")}, {"b", "override { id = 'a.a', restart = 'same' }"}});
  BOOST_REQUIRE(changed);
  BOOST_TEST((changed->rules()[0].restart == Restart::kSame));
  BOOST_TEST((changed->rules()[0].overridden[0].restart == Restart::kNever));
}

BOOST_AUTO_TEST_CASE(what_a_rule_declares_of_its_lines_is_every_word_of_its_key) {
  const Rule plain = load_all({{"a.lua", rule_text("site.room.kill")}})->rules()[0];
  BOOST_TEST((plain.ends == ProcessEnd::kUnknown && plain.observes == Observes::kNothing));
  for (const std::string_view key : {"ends", "observes"})
    for (const std::string_view word : split(find_key(rule_keys(), key)->words, ' ')) {
      std::string errors;
      const auto set = load_all({{"a.lua", rule_text("a.b", fmt::format("{} = '{}'", key, word))}}, &errors);
      BOOST_REQUIRE_MESSAGE(set, errors);
      const Rule& rule = set->rules()[0];
      BOOST_TEST((key == "ends" ? to_string(rule.ends) : to_string(rule.observes)) == word);
    }
  BOOST_TEST(errors_of(rule_text("a.b", "ends = 'died'")).find("bad-value") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rule_next_to_a_broken_one_that_it_needs_is_not_blamed) {
  const std::string errors = errors_of(rule_text("a.a", "wrong = 1,") +
                                       rule_text("a.b", "window = { span = '1s', after = 'a.a' },"));
  BOOST_TEST(errors.find("unknown-key") != std::string::npos);
  BOOST_TEST(errors.find("example") == std::string::npos, errors);
}

BOOST_AUTO_TEST_CASE(the_errors_reported_of_one_file_are_bounded_and_that_is_reported) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "rule { id = 'a.b', wrong = 1 }\n";
  const std::string errors = errors_of(text);
  BOOST_TEST(errors.find("error[limit]: more than 100 errors in this file") != std::string::npos);
  BOOST_TEST(std::count(errors.begin(), errors.end(), '\n') < 500);
}

BOOST_AUTO_TEST_CASE(line_ends_of_every_kind_and_a_mark_give_the_same_places) {
  const std::string text = changed("remedy", "wibble = 1, remedy");
  const std::string want = errors_of(text);
  BOOST_TEST(want.find("a.lua:5:3: error[unknown-key]") == 0u, want);
  for (const char* end : {"\r\n", "\r", "\n\r"}) {
    std::string other;
    for (char c : text) other += c == '\n' ? std::string(end) : std::string(1, c);
    BOOST_TEST(errors_of(other) == want);
  }
  BOOST_TEST(errors_of("\xef\xbb\xbf" + text) == want);
  BOOST_TEST(errors_of("\xef\xbb\xbf" + changed("t", "t")) == "");
}

BOOST_AUTO_TEST_CASE(hostile_texts_are_reported_in_one_line_each) {
  const struct {
    std::string text;
    std::string_view error;
  } cases[] = {
      {"", "a.lua: error[no-rule]: holds no rule\n"},
      {"-- nothing", "a.lua: error[no-rule]: holds no rule\n"},
      {std::string("\0\0\0", 3), "a.lua:1:1: error[syntax]: "},
      {std::string(5 << 20, ' '), "a.lua: error[limit]: a rule file has at most"},
      {std::string(4 << 20, ' '), "a.lua: error[no-rule]"},
      {std::string(4 << 20, 'x'), "a.lua: error[over-budget]: "},
      {std::string(4 << 20, '('), "a.lua: error[syntax]: C stack overflow"},
      {std::string(4 << 20, '\n'), "a.lua: error[no-rule]"},
      {"local s = 'open", "a.lua:1:1: error[syntax]: unfinished string near <eof>\n"},
      {"local s = [[open", "a.lua:1:1: error[syntax]: unfinished long string"},
      {"--[==[ open", "a.lua:1:1: error[syntax]: unfinished long comment"},
      {"rule {", "a.lua:1:1: error[syntax]: "},
      {"rule", "a.lua:1:1: error[syntax]: "},
      {"rule {}", "a.lua:1:1: error[missing-key]: "},
      {"error('\x1b[31m\xff')", "a.lua:1:1: error[script]: \\x1b[31m"},
      {"rule { [\"\x1b[2J\"] = 1 }", "a.lua:1:1: error["},
      {"error('" + std::string(5000, 'x') + "')", "a.lua:1:1: error[script]: xxx"},
      {"#!/usr/bin/lua", "a.lua:1:1: error[syntax]: "},
      {"\x1bLuaT", "a.lua: error[syntax]: attempt to load a binary chunk"},
  };
  for (const auto& c : cases) {
    const std::string errors = errors_of(c.text);
    BOOST_TEST(errors.substr(0, c.error.size()) == c.error, errors.substr(0, 300) << "--- instead of\n"
                                                                                  << c.error);
    BOOST_TEST(errors.find('\x1b') == std::string::npos);
    BOOST_TEST(errors.size() < 8000u);
  }
}

BOOST_AUTO_TEST_CASE(braces_and_keys_within_texts_and_comments_are_no_keys) {
  check({{"remedy = \"r\"",
          "remedy = \"} wibble = {\", -- { wibble =\n --[[ wibble = 1 } ]] title = [==[ ]] wibble = } ]==], "
          "wibble = 2",
          "6:56: error[unknown-key]: 'wibble' is no key of a rule\n"}});
}

BOOST_AUTO_TEST_CASE(a_rule_with_a_text_left_to_fill_in_is_proven_and_runs_nowhere) {
  const std::string open = rule_text("a.open", "title = \"FILL IN a title: what happened\"");
  const auto set = load_all({{"a.lua", rule_text("a.whole") + open}});
  BOOST_REQUIRE(set);
  BOOST_TEST_REQUIRE(set->left_open().size() == 1U);
  BOOST_TEST(set->left_open()[0].rule == "a.open");
  BOOST_TEST(
      set->left_open()[0].error.what ==
      "rule a.open: its title is left open: write a title: what happened in place of the text from FILL "
      "IN on");
  BOOST_TEST(!set->rules()[0].enabled);
  Scanner scanner(set->matcher());
  scanner.begin("fault 1");
  const auto matches = scanner.match(0, 7, "fault 1", TextSource::kLog);
  BOOST_TEST_REQUIRE(matches.size() == 1U);
  BOOST_TEST(set->rules()[matches[0].rule].id == "a.whole");
  BOOST_TEST(errors_of(rule_text("a.open",
                                 "remedy = \"FILL IN\", examples = { hit = { \"no\" }, miss = { \"-\" } }"))
                 .find("example-not-hit") != std::string::npos);
}

}  // namespace culprit::rules
