// A confirmed diagnosis becomes a rule that fires on its lines and not on those of successful jobs.
#include "cli/confirm_rule.h"

#include <boost/test/unit_test.hpp>

#include "core/logs/mask.h"
#include "core/rules/ruleset.h"

namespace culprit::cli {
namespace {

struct Fixture {
  Report report;
  Diagnosis d;
  Fixture() {
    d.id = "d1";
    d.title = "Fabric port <x> flaps";
    d.category = Category::kHardware, d.component = Component::kNetwork;
    d.stage = Stage::kIterative;
    d.hosts.resize(1);
    d.hosts[0].host = "node-3\n os.exit()";
    quote("2026-11-21 02:12:09 node-3 fabricd[311]: port hsn3 flapped 4 times within 12 s");
  }
  void quote(const std::string& text) {
    d.evidence.push_back({"node-3", "a.log", 1, std::nullopt, text, kNoTime, {}, {}});
  }
  Result<ConfirmedRule> make(const detect::Pool* pool = nullptr, const std::string& id = "") {
    return rule_of(report, d, id, pool);
  }
  static detect::Pool pool_of(const std::vector<std::string>& messages) {
    detect::Pool pool;
    pool.jobs = 1;
    for (const std::string& m : messages) {
      detect::PoolForm form;
      form.text = logs::form_text(m);
      pool.forms.push_back(form);
    }
    return pool;
  }
};

BOOST_FIXTURE_TEST_SUITE(confirm_rule, Fixture)

BOOST_AUTO_TEST_CASE(the_rule_loads_with_its_examples_and_says_what_broke) {
  const auto rule = make();
  BOOST_REQUIRE_MESSAGE(rule, (rule ? "" : rule.error().text));
  BOOST_CHECK(rule->id.starts_with("site.network."));
  const rules::RuleText file{"x.lua", rule->text};
  const auto set = rules::Ruleset::load({&file, 1});
  BOOST_REQUIRE(set);
  const rules::Rule& loaded = (*set)->rules()[0];
  BOOST_CHECK_EQUAL(loaded.title, "Fabric port x flaps");
  BOOST_CHECK(loaded.blame == rules::Blame::kHost);
  BOOST_CHECK(loaded.any.at(0).text.find("flapped") != std::string::npos);
  BOOST_CHECK_NE(rule->text.find("iterative stage"), std::string::npos);
  BOOST_CHECK_EQUAL(make()->id, rule->id);  // the same id again
}

BOOST_AUTO_TEST_CASE(a_line_that_successful_jobs_write_is_left_out_and_the_rule_refused_where_none_remains) {
  quote("2026-11-21 02:12:10 node-3 fabricd[311]: link manager restarts in disorder");
  const detect::Pool one = pool_of({"link manager restarts in disorder"});
  const auto rule = make(&one);
  BOOST_REQUIRE(rule);
  BOOST_CHECK_EQUAL(rule->notes.size(), 1u);
  BOOST_CHECK_EQUAL(rule->text.find("disorder"), std::string::npos);
  const detect::Pool both =
      pool_of({"link manager restarts in disorder", "port hsn9 flapped 1 times within 3 s"});
  const auto refused = make(&both);
  BOOST_REQUIRE(!refused);
  BOOST_CHECK_NE(refused.error().text.find("it would fire in successful jobs"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(where_no_line_is_quoted_the_indicating_templates_serve) {
  d.evidence.clear();
  report.indicating.push_back({"port <*> flapped <*> times", 0.9, 3, {}, {}, "", kNoTime});
  report.indicating.push_back({"step <*> done", 0.1, 3, {}, {}, "", kNoTime});
  const auto rule = make();
  BOOST_REQUIRE_MESSAGE(rule, (rule ? "" : rule.error().text));
  BOOST_CHECK_NE(rule->text.find("port <_> flapped <_> times"), std::string::npos);
  BOOST_CHECK_EQUAL(rule->text.find("step <_> done"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_traceback_counts_for_its_exception) {
  d.evidence.clear();
  quote(
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nFabricError: port 3 is gone for "
      "good");
  const auto rule = make();
  BOOST_REQUIRE_MESSAGE(rule, (rule ? "" : rule.error().text));
  BOOST_CHECK_EQUAL(rule->text.find("Traceback"), std::string::npos);
  BOOST_CHECK_NE(rule->text.find("FabricError"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_makes_no_rule_is_refused_in_a_sentence) {
  const auto bad_id = make(nullptr, "Not An Id");
  BOOST_CHECK(!bad_id);
  d.evidence.clear();
  BOOST_CHECK_NE(make().error().text.find("no line of it is fit"), std::string::npos);
  quote("1 2 3");
  BOOST_CHECK(!make());
  d.rule = "nvidia.xid.79";
  BOOST_CHECK_NE(make().error().text.find("nvidia.xid.79 knows it already"), std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::cli
