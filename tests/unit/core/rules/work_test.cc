// What a load of rules may cost: a counted budget, a stop on request, a bounded list of errors.
#include <boost/test/unit_test.hpp>

#include "fixtures.h"

namespace culprit::rules {
namespace {

std::string rules_of(size_t n, std::string_view match, std::string_view more = "") {
  std::string out;
  for (size_t i = 0; i < n; ++i)
    out += rule_text(fmt::format("a.r{:05}", i),
                     fmt::format("match = {{ {} }}, {}", fmt::format(fmt::runtime(match), i), more));
  return out;
}

// The first error of a load; empty where it took the rules.
std::string first_error(const std::string& text, LoadOptions options) {
  const RuleText file{"a.lua", text};
  const auto set = Ruleset::load({&file, 1}, std::move(options));
  return set ? "" : format_error(set.error()[0]);
}

LoadOptions within(uint64_t work) { return {.work = work}; }

// A wording each, one wording for all, and general rules that give way to none.
const std::pair<const char*, const char*> kKinds[] = {
    {"template = {{ 'fault <n>', 'case {} <n>' }}", ""},
    {"template = 'fault <n>'", ""},
    {"template = 'fault <n>'", "general = true,"},
    {"template = 'fault <n>'", "window = { span = '1s' },"}};

}  // namespace

BOOST_AUTO_TEST_CASE(the_work_of_proving_is_linear_in_the_number_of_rules) {
  constexpr uint64_t kARule = 500'000;
  for (const auto& [match, more] : kKinds)
    for (const size_t n : {100, 1000, 4000})
      BOOST_TEST(first_error(rules_of(n, match, more), within(n * kARule)) == "", n << " of " << match);
}

BOOST_AUTO_TEST_CASE(a_budget_that_is_spent_is_an_error_with_file_and_line) {
  const std::string text = rules_of(1000, "template = 'fault <n>'");
  const std::string reading = first_error(text, within(20'000'000));
  BOOST_TEST(reading.starts_with("a.lua:"), reading);
  BOOST_TEST(
      reading.find(":1: error[over-budget]: reading and proving the rules takes more work than one load "
                   "may\n") != std::string::npos,
      reading);
  const std::string costly = text + rule_text("b.x",
                                              "when = function() local n = 0 for i = 1, 30000 do n = i end "
                                              "return true end,");
  const std::string proving = first_error(costly, within(200'000'000));
  BOOST_TEST(proving.starts_with("a.lua:4001:13: error[over-budget]: rule b.x: reading and proving the rules "
                                 "takes more work than one "
                                 "load may; 1000 rules proven before it; the most, "),
             proving);
  BOOST_TEST(proving.find(" %, went into b.x (a.lua:4001)\n") != std::string::npos, proving);
}

BOOST_AUTO_TEST_CASE(a_load_ends_when_it_is_asked_to) {
  const std::string loop = "for i = 1, 300000 do local x = i end\n";
  for (const std::string& text : {rules_of(500, "template = 'fault <n>'"), loop + rule_text("a.a")}) {
    size_t asked = 0;
    BOOST_TEST(first_error(text, {.stop = [&] { return ++asked == 0; }}) == "");
    BOOST_REQUIRE(asked > 100);
    for (const size_t after : {size_t{1}, asked / 4, asked / 2, asked - 1}) {
      size_t now = 0;
      const std::string error = first_error(text, {.stop = [&] { return ++now >= after; }});
      BOOST_TEST(error.starts_with("a.lua:"), error);
      BOOST_TEST(error.find("error[stopped]: ") != std::string::npos, error);
      BOOST_TEST(error.find("stopped before all rules were proven") != std::string::npos, error);
      BOOST_TEST(now == after);  // then the load goes on no further
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_has_a_bounded_number_of_errors_of_every_kind) {
  std::string keys = "local t = {} for i = 1, 5000 do t['k' .. i] = 1 end rule(t)\n", same;
  for (int i = 0; i < 1000; ++i) same += rule_text("a.a");
  const std::string texts[] = {
      rules_of(1000, "template = 'other <n>'"),                                                  // not proven
      rules_of(1000, "template = 'fault <n>'", "window = { span = '1s', after = 'no.rule' },"),  // of no rule
      std::move(same), std::move(keys)};
  for (const std::string& text : texts) {
    const std::string errors = errors_of(text);
    size_t count = 0;
    for (size_t at = 0; (at = errors.find("error[", at)) != std::string::npos; ++at) ++count;
    BOOST_TEST(count == kErrorsPerFile + 1, errors.substr(0, 200));
    BOOST_TEST(errors.find("error[limit]: more than 100 errors in this file") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_restricted_scanner_finds_of_its_rules_what_the_whole_one_finds) {
  const auto set = Ruleset::shipped();
  Scanner whole(set->matcher()), restricted(set->matcher());
  const auto has = [](std::span<const RuleMatch> matches, uint32_t rule) {
    return std::any_of(matches.begin(), matches.end(), [&](const RuleMatch& m) { return m.rule == rule; });
  };
  size_t found = 0;
  for (uint32_t i = 0; i < set->rules().size(); ++i) {
    restricted.restrict_to({&i, 1});
    for (const auto* texts : {&set->rules()[i].hit, &set->rules()[i].miss})
      for (const std::string& text : *texts) {
        whole.begin(text);
        restricted.begin(text);
        for (const TextSource source : {TextSource::kLog, TextSource::kKernel}) {
          const bool expected = has(whole.match(0, text.size(), text, source), i);
          BOOST_TEST(has(restricted.match(0, text.size(), text, source), i) == expected,
                     set->rules()[i].id << ": " << text);
          whole.begin(text);
          restricted.begin(text);
          found += expected;
        }
      }
  }
  BOOST_TEST(found > set->rules().size());
}

}  // namespace culprit::rules
