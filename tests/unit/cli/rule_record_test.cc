// What a daemon's history says of rules, and which of them need a look.
#include "cli/rule_record.h"

#include <boost/test/unit_test.hpp>

#include "core/rules/ruleset.h"

namespace culprit::cli {
namespace {

std::string rule_text(const std::string& id, const std::string& more = "") {
  return "rule { id = \"" + id +
         "\", engine = 1, title = \"t\", category = \"unknown\", component = \"unknown\", severity = "
         "\"error\", "
         "match = { template = \"fault <n>\" }, remedy = \"r\", examples = { hit = { \"fault 1\" }, miss = { "
         "\"fine\" } }, " +
         more + " }\n";
}

std::shared_ptr<rules::Ruleset> rules_of(const std::string& site, const std::string& library) {
  const rules::RuleText files[] = {{"site.lua", site}, {"library:x.lua", library}};
  auto set = rules::Ruleset::load(files);
  BOOST_REQUIRE(set);
  return *set;
}

std::vector<Json> items(const char* text) { return Json::parse(text).get<std::vector<Json>>(); }

std::string shown(const std::vector<RuleRemark>& remarks) {
  std::string out;
  for (const RuleRemark& one : remarks)
    out += std::string(to_string(one.kind)) + " " + one.rule + ": " + one.sentence + "\n";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rule_record)

BOOST_AUTO_TEST_CASE(the_record_of_a_rule_is_what_its_diagnoses_and_people_say) {
  const RuleRecords records = records_of(
      items(R"([{"rule":"s.a","job":"j1","run":0,"state":"confirmed","last_ns":50},
                {"rule":"s.a","job":"j2","run":1,"state":"refuted","last_ns":70},
                {"rule":"s.a","job":"j3","run":0,"state":"withdrawn","last_ns":60},
                {"rule":null,"detector":"comm","job":"j1","run":0,"state":"open"}])"),
      items(
          R"([{"id":"j1","run":0,"well":false},{"id":"j2","run":1,"well":true},{"id":"j3","run":0,"well":true}])"));
  BOOST_REQUIRE(records.size() == 1u);
  const RuleRecord& r = records.at("s.a");
  BOOST_TEST((r.fired == 3 && r.confirmed == 1 && r.refuted == 1 && r.last_ns == 70));
  BOOST_TEST((r.healthy_jobs == std::set<std::string>{"j2"}));  // a withdrawn one said nothing
}

BOOST_AUTO_TEST_CASE(noisy_overlapping_and_stale_rules_are_told_in_that_order) {
  const auto set = rules_of(rule_text("s.old") + rule_text("s.never") + rule_text("s.noisy") +
                                rule_text("s.same") + rule_text("s.helper", "severity = \"info\","),
                            rule_text("l.same") + rule_text("l.never"));
  RuleRecords records;
  records["s.old"] = {.fired = 1, .last_ns = 10};
  records["s.noisy"] = {.fired = 3, .refuted = 2, .last_ns = 100, .healthy_jobs = {"ok"}};
  records["s.same"].last_ns = 100;
  for (int i = 0; i < 3; ++i) add_line({"s.same", "l.same"}, records);
  BOOST_TEST(shown(remarks_on(*set, records, 50)) ==
             "noisy s.noisy: it fired in 1 job that ended well, such as ok\n"
             "noisy s.noisy: people refuted it 2 times and confirmed it 0 times\n"
             "overlapping s.same: l.same fires on each of its 3 lines of kept evidence too, and on no other\n"
             "stale s.never: it never fired\n"
             "stale s.old: it fired last on 1970-01-01\n");
}

BOOST_AUTO_TEST_CASE(a_rule_with_lines_of_its_own_overlaps_with_none) {
  const auto set = rules_of(rule_text("s.wide"), rule_text("l.narrow"));
  RuleRecords records;
  records["s.wide"].last_ns = 100;
  for (int i = 0; i < 4; ++i) add_line({"s.wide", "l.narrow"}, records);
  add_line({"s.wide"}, records);
  const auto remarks = remarks_on(*set, records, 50);
  BOOST_REQUIRE(remarks.size() == 1u);
  BOOST_TEST(remarks[0].rule == "l.narrow");  // the wide one covers it
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
