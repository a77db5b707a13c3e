#include "core/rules/near.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::rules;
using Stop = NearRule::Stop;

namespace {

std::string rule(const std::string& id, const std::string& match, const std::string& hit,
                 const std::string& more = "") {
  return "rule { id = \"" + id +
         "\", engine = 1, title = \"t\", category = \"platform\", component = \"platform\", severity = "
         "\"error\", "
         "remedy = \"r\", match = { " +
         match + " }, " + more + " examples = { hit = [[" + hit + "]], miss = \"all is well\" } }\n";
}

std::shared_ptr<Ruleset> rules_of(const std::string& text) {
  const RuleText file{"t.lua", text};
  auto set = Ruleset::load({&file, 1});
  if (!set) BOOST_FAIL(format_error(set.error()[0]));
  return *set;
}

}  // namespace

BOOST_AUTO_TEST_CASE(where_a_rule_stopped_fitting_a_line_is_reported) {
  const auto set =
      rules_of(rule("a.template", "template = \"port <port> flapped <n> times\"", "port a flapped 3 times") +
               rule("a.regex", "regex = [[disk (?P<d>\\w+) (?:failed|went) away at sector \\d+]]",
                    "disk a went away at sector 1") +
               rule("a.except", "template = \"fan <fan> stopped\", except = [[fan 0]]", "fan 1 stopped") +
               rule("a.kernel", "template = \"cpu <cpu> stalled\"", "cpu 1 stalled", "source = \"kernel\",") +
               rule("a.general", "template = \"flapped\"", "flapped", "general = true,"));
  const struct {
    const char* line;
    const char* id;
    Stop stop;
    const char* wanted;
    const char* missing;
  } rows[] = {
      {"port hsn3 flapped 4 times", "a.template", Stop::kFound, "", ""},
      {"port hsn3 flapped 4 times", "a.general", Stop::kGeneral, "", ""},
      {"port hsn3 is up", "a.template", Stop::kWording, "flapped <n> times", " flapped "},
      {"disk sda failed away at section", "a.regex", Stop::kWording, "sector \\d+", " away at sector "},
      {"fan 0 stopped", "a.except", Stop::kExcept, "", ""},
      {"cpu 3 stalled", "a.kernel", Stop::kSource, "", ""},
  };
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.line << " " << row.id) {
      const auto near = nearest_rules(*set, {row.line}, TextSource::kLog, 10);
      const auto found = std::find_if(near.begin(), near.end(),
                                      [&](const NearRule& n) { return set->rules()[n.rule].id == row.id; });
      BOOST_REQUIRE((found != near.end()));
      BOOST_TEST((found->stop == row.stop));
      BOOST_TEST(found->wanted == row.wanted);
      if (*row.missing) BOOST_TEST(!found->missing.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(rules_that_share_nothing_with_a_line_are_not_near) {
  const auto set = rules_of(rule("a.b", "template = \"port <port> flapped\"", "port a flapped"));
  for (const char* line : {"", "step 1 ok", "p", "the loss is 2.31"})
    BOOST_TEST_CONTEXT(line) BOOST_TEST(nearest_rules(*set, {line}, TextSource::kLog, 10).empty());
}

BOOST_AUTO_TEST_CASE(a_wording_that_the_header_takes_a_part_of_is_told_where_the_message_begins) {
  const auto set = rules_of(rule("a.b", "regex = [[rank \\d+: fan lost]]", "a rank 13: fan lost"));
  const std::string line = "rank 13: fan lost";
  const auto near = nearest_rules(*set, {line, 9}, TextSource::kLog, 10);
  BOOST_TEST_REQUIRE(near.size() == 1U);
  BOOST_TEST((near[0].stop == Stop::kHeader));
  BOOST_TEST(hidden_by_header(set->rules()[0], line) == "the message begins after 'rank 13: '");
  BOOST_TEST(hidden_by_header(set->rules()[0], "rank 13: fan found") == "");
  BOOST_TEST(hidden_by_header(set->rules()[0], "a rank 13: fan lost") == "");
}
