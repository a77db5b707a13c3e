// A confirmed diagnosis becomes a rule of its cause: it fires on the fault again, and on nothing else.
#include "cli/confirm_rule.h"

#include <boost/test/unit_test.hpp>

#include "cli/confirm_pattern.h"
#include "core/logs/mask.h"
#include "core/rules/ruleset.h"

namespace culprit::cli {
namespace {

// node-2 speaks first in words of its own; then all others time out.
struct Fixture {
  Report report;
  Diagnosis d;
  RuleWords words;
  ConfirmContext context;
  std::vector<Occurrence> lines;  // of the job
  std::shared_ptr<rules::Ruleset> library = rules::Ruleset::shipped();
  Fixture() {
    d.id = "d1";
    d.title = "node-2 alone showed signs before the job stopped";
    d.category = Category::kPlatform, d.component = Component::kStorage;
    d.stage = Stage::kIterative;
    d.remedy = "Run the vendor's diagnostics.";
    d.hosts.resize(1);
    d.hosts[0].host = "node-2";
    say("node-2", 10, "retimer bank 11 lost phase lock after 8412 us on node-2");
    say("node-2", 11, "retimer bank 4 lost phase lock after 1318 us on node-2");
    for (const char* host : {"node-1", "node-3", "node-4"})
      say(host, 600,
          "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
          "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600405 milliseconds before timing out.");
    context.known = library.get();
    context.job = searching(lines);
  }
  void say(const std::string& host, int64_t seconds, const std::string& text) {
    d.evidence.push_back({host, "a.log", 1, std::nullopt, text, kNoTime, {}, {}});
    lines.push_back({text, host, seconds * 1'000'000'000});
  }
  static SearchLogs searching(const std::vector<Occurrence>& in) {
    return [&in](const std::vector<std::string>& patterns) {
      std::vector<Occurrences> out(patterns.size());
      for (size_t i = 0; i < patterns.size(); ++i) {
        const Fires fires(patterns[i]);
        for (const Occurrence& o : in)
          if (fires.in(o.message)) ++out[i].count, out[i].lines.push_back(o);
      }
      return out;
    };
  }
  Result<ConfirmedRule> make() { return rule_of(report, d, words, context); }
  ConfirmedRule made() {
    auto rule = make();
    BOOST_REQUIRE_MESSAGE(rule, (rule ? "" : rule.error().text));
    return *rule;
  }
  std::string refused() {
    const auto rule = make();
    BOOST_REQUIRE(!rule);
    return rule.error().text;
  }
  static rules::Rule loaded(const ConfirmedRule& rule) {
    const rules::RuleText file{"x.lua", rule.text};
    const auto set = rules::Ruleset::load({&file, 1});
    BOOST_REQUIRE(set);
    return (*set)->rules()[0];
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
bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

BOOST_FIXTURE_TEST_SUITE(confirm_rule, Fixture)

BOOST_AUTO_TEST_CASE(the_pattern_is_the_cause_alone_with_holes_of_all_occurrences) {
  const ConfirmedRule rule = made();
  BOOST_TEST(rule.pattern == "retimer bank <_> lost phase lock after <_> us on");
  const rules::Rule one = loaded(rule);
  BOOST_TEST(one.any.size() == 1u);
  BOOST_TEST((one.blame == rules::Blame::kHost));
  BOOST_TEST(one.hit.size() == 2u);
  BOOST_TEST(has(one.miss.at(0), "Watchdog caught"));  // a cascade of the same failure
  BOOST_TEST(has(rule.notes.at(0), "it follows from another fault"));
  BOOST_TEST(has(rule.proof.at(0), "2 lines on node-2"));
  BOOST_TEST(made().id == rule.id);  // the same id again
}

BOOST_AUTO_TEST_CASE(the_text_is_general_and_what_nobody_said_is_left_open) {
  const rules::Rule open = loaded(made());
  for (const std::string& text : {open.title, open.remedy}) BOOST_TEST(has(text, kFillIn));
  BOOST_TEST(!has(open.title, "node-2"));
  BOOST_TEST(open.title.find_first_of("0123456789") == std::string::npos);
  BOOST_TEST((open.category == Category::kUnknown && open.component == Component::kUnknown));
  words = {"site.retimer",
           "Retimer loses its lock",
           "A firmware before 3 drops it",
           "Update the firmware",
           "hardware",
           "nvlink",
           "isolate",
           "ada"};
  const ConfirmedRule rule = made();
  BOOST_TEST(!rule.open);
  const rules::Rule said = loaded(rule);
  BOOST_TEST(said.id == "site.retimer");
  BOOST_TEST(said.title == "Retimer loses its lock");
  BOOST_TEST(said.remedy == "Cause: A firmware before 3 drops it. Update the firmware.");
  BOOST_TEST((said.component == Component::kNvlink && said.action == ActionKind::kIsolate));
  BOOST_TEST(has(rule.text, "Confirmed by ada"));
}

BOOST_AUTO_TEST_CASE(what_successful_jobs_write_never_enters) {
  const detect::Pool pool = pool_of({"retimer bank 3 lost phase lock after 1 us on node-9"});
  context.pool = &pool;
  BOOST_TEST(has(refused(), "successful jobs write it too"));
  context.pool = nullptr;
  std::vector<Occurrence> other{{"retimer bank 7 lost phase lock after 55 us on node-8", "node-8", 5}};
  context.others.push_back({"jobs/ok", true, "", searching(other)});
  BOOST_TEST(has(refused(), "the successful job jobs/ok writes it too (1 line)"));
  context.others[0] = {"jobs/bad", false, "Something else", searching(other)};
  BOOST_TEST(
      has(made().proof.back(), "of the failed job jobs/bad it hits 1 line; its verdict was: Something else"));
}

BOOST_AUTO_TEST_CASE(what_came_after_the_first_sign_on_other_hosts_never_enters) {
  say("node-2", 900, "quarantine of tenant scratch volume is pending");
  const ConfirmedRule rule = made();
  BOOST_TEST(has(rule.pattern, "retimer"));
  bool told = false;
  for (const std::string& note : rule.notes) told = told || has(note, "after the first sign on other hosts");
  BOOST_TEST(told);
}

BOOST_AUTO_TEST_CASE(wordings_of_one_message_become_one_pattern) {
  const std::string a[] = {"WARNING link 3 of node-1 retrained 4 times, code 17",
                           "ERROR link 5 of node-2 retrained 9 times, code 17"};
  BOOST_TEST(pattern_of(a, {"node-1", "node-2"}) == "link <_> of node-<_> retrained <_> times, code 17");
}

BOOST_AUTO_TEST_CASE(a_number_that_names_the_error_stays_unless_it_varies) {
  const std::string one[] = {"OSError: [Errno 116] Stale handle of shard 31"};
  BOOST_TEST(pattern_of(one, {}) == "OSError: [Errno 116] Stale handle of shard");
  const std::string two[] = {one[0], "OSError: [Errno 5] Stale handle of shard 2"};
  BOOST_TEST(pattern_of(two, {}) == "OSError: [Errno <_>] Stale handle of shard");
}

BOOST_AUTO_TEST_CASE(a_traceback_counts_for_its_exception) {
  context.job = {};
  d.evidence.clear();
  d.evidence.push_back(
      {"node-2",
       "a.log",
       1,
       std::nullopt,
       "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nFabricError: port 3 "
       "is gone for good",
       kNoTime,
       {},
       {}});
  BOOST_TEST(made().pattern == "FabricError: port <_> is gone for good");
}

BOOST_AUTO_TEST_CASE(what_makes_no_rule_is_refused_in_a_sentence) {
  words.id = "Not An Id";
  BOOST_TEST(!make().has_value());
  words.id.clear();
  d.evidence.clear();
  BOOST_TEST(has(refused(), "no line of it is fit"));
  d.rule = "nvidia.xid.79";
  BOOST_TEST(has(refused(), "nvidia.xid.79 knows it already"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::cli
