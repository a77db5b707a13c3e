// A confirmed diagnosis becomes a rule of its cause: it fires on the fault again, and on nothing else.
#include "app/confirm/rule.h"

#include <boost/test/unit_test.hpp>

#include "app/confirm/line.h"
#include "app/confirm/pattern.h"
#include "core/logs/mask.h"
#include "core/rules/ruleset.h"

namespace culprit::app {
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
  const rules::Rule output = loaded(rule);
  BOOST_TEST(output.id == "site.retimer");
  BOOST_TEST(output.title == "Retimer loses its lock");
  BOOST_TEST(output.remedy == "Cause: A firmware before 3 drops it. Update the firmware.");
  BOOST_TEST((output.component == Component::kNvlink && output.action == ActionKind::kIsolate));
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
  say("node-2", 900, "quarantine of tenant scratch volume is stuck");
  const ConfirmedRule rule = made();
  BOOST_TEST(has(rule.pattern, "retimer"));
  bool told = false;
  for (const std::string& note : rule.notes) told = told || has(note, "after the first sign on other hosts");
  BOOST_TEST(told);
}

BOOST_AUTO_TEST_CASE(wordings_of_one_message_become_one_pattern) {
  const std::string a[] = {"WARNING link 3 of node-1 retrained 4 times, code 17",
                           "ERROR link 5 of node-2 retrained 9 times, code 17"};
  BOOST_TEST(pattern_of(a, {"node-1", "node-2"}) == "link <_> of <_> retrained <_> times, code 17");
}

BOOST_AUTO_TEST_CASE(a_number_that_names_the_error_stays_unless_it_varies) {
  const std::string one[] = {"OSError: [Errno 116] Stale handle of shard 31"};
  BOOST_TEST(pattern_of(one, {}) == "OSError: [Errno 116] Stale handle of shard");
  const std::string two[] = {one[0], "OSError: [Errno 5] Stale handle of shard 2"};
  BOOST_TEST(pattern_of(two, {}) == "OSError: [Errno <_>] Stale handle of shard");
}

BOOST_AUTO_TEST_CASE(names_of_hosts_and_of_the_job_are_holes_however_they_are_spelt) {
  const std::string one[] = {"evicting worker pod=alpha-prod of vega: no lease from bravo"};
  BOOST_TEST(pattern_of(one, {"alpha-prod", "bravo", "vega"}) ==
             "evicting worker pod=<_> of <_>: no lease from");
}

struct NoMark {
  const char* line;
  uint64_t count;
  const char* why;
};
const NoMark kNoMarks[] = {
    {"host stats: rss=1067.8GiB page_cache=9.2GiB load1=29.42 fds=1622", 40, "measurements"},
    {"cache pool: enqueue tag 4 for slot of shard", 1, "no word of trouble"},
    {"cache pool: enqueue tag 4 for slot of shard", 9, ""},
    {"Exception raised from checkPeers at a.cpp:12 (most recent call first):", 1, "head of what follows"},
    {"container trainer terminated, exitCode=137 reason=Error", 1, "was ended, not why"},
    {"slurmstepd: error: JOB 7 cancelled: licence server of the site is unreachable", 1, ""},
    {"retimer bank 3 lost phase lock", 1, ""},
    {"reader waited 7.2 s for part 41, the array may be slow", 1, "supposes a cause"},
    {"link 3 failed its self-test with error 5, the cable may be damaged", 1, ""},
};
BOOST_AUTO_TEST_CASE(a_line_that_tells_no_cause_is_no_mark) {
  const ConsequenceWords of_cascades(library.get());
  for (const NoMark& one : kNoMarks) {
    const std::string written[] = {one.line};
    const std::string why = why_no_mark(one.line, pattern_of(written, {}), one.count, of_cascades);
    BOOST_TEST((*one.why ? has(why, one.why) : why.empty()), one.line << ": " << why);
  }
}

BOOST_AUTO_TEST_CASE(a_line_of_several_hosts_at_once_asks_for_several) {
  lines.clear();
  d.evidence.clear();
  d.hosts.clear();
  for (int i = 1; i <= 5; ++i)
    say("node-" + std::to_string(i), 10 + i, "uplink of leaf 4 is down, error budget spent");
  context.job_hosts = {"node-1", "node-2", "node-3", "node-4", "node-5", "node-6", "node-7"};
  const ConfirmedRule rule = made();
  const rules::Rule one = loaded(rule);
  BOOST_REQUIRE(one.window);
  BOOST_TEST((one.window->by == rules::Scope::kJob && one.window->at_least == 3u && one.when != 0));
  BOOST_TEST((one.blame == rules::Blame::kJob));
  context.job_hosts.resize(5);  // all of them: a fault of the job
  BOOST_TEST(!loaded(made()).window);
}

BOOST_AUTO_TEST_CASE(a_line_that_comes_again_and_again_without_a_word_of_failure_must_come_so_again) {
  lines.clear();
  d.evidence.clear();
  for (int i = 0; i < 9; ++i)
    say("node-2", 100 + 4 * i, "loader waited " + std::to_string(i + 3) + " s for its next shard, stalled");
  const rules::Rule one = loaded(made());
  BOOST_REQUIRE(one.window);
  BOOST_TEST((one.window->by == rules::Scope::kHost && one.window->at_least == 3u));
  BOOST_TEST(one.window->span_ns == 30 * kNsPerSecond);
}

BOOST_AUTO_TEST_CASE(a_hole_that_names_the_accused_gets_its_name) {
  d.hosts[0].ranks = {9};
  say("node-2", 12, "retimer of rank 9 lost phase lock for good");
  lines.erase(lines.begin(), lines.begin() + 2);
  d.evidence.erase(d.evidence.begin(), d.evidence.begin() + 2);
  BOOST_TEST(loaded(made()).any[0].text == "retimer of rank <rank> lost phase lock for good");
  d.hosts[0].ranks = {8};  // another one is accused
  BOOST_TEST(loaded(made()).any[0].text == "retimer of rank <_> lost phase lock for good");
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

BOOST_AUTO_TEST_CASE(the_line_that_a_person_chose_is_taken_whatever_speaks_against_it_as_a_mark) {
  say("node-2", 5, "cache pool: enqueue tag 4 for slot of shard");
  words.line = "2026-11-21 02:12:09 node-2 cached[311]: cache pool: enqueue tag 4 for slot of shard";
  const ConfirmedRule rule = made();
  BOOST_TEST(rule.pattern == "cache pool: enqueue tag <_> for slot of shard");
  BOOST_TEST(has(rule.notes.at(0), "as you say"));
  d.rule = "nvidia.xid.79";  // that a rule knows the diagnosis is no reason either
  BOOST_TEST(made().pattern == rule.pattern);
}

BOOST_AUTO_TEST_CASE(a_chosen_line_that_successful_jobs_write_or_that_has_nothing_fixed_is_refused) {
  words.line = "7";
  BOOST_TEST(has(refused(), "nothing in the line is fixed"));
  words.line = "retimer bank 11 lost phase lock after 8412 us on node-2";
  const detect::Pool pool = pool_of({words.line});
  context.pool = &pool;
  BOOST_TEST(has(refused(), "successful jobs write it too"));
}

BOOST_AUTO_TEST_CASE(where_no_line_is_a_mark_by_itself_a_person_gets_them_all_to_choose_from) {
  lines.clear(), d.evidence.clear();
  say("node-2", 10, "cache pool: enqueue tag 4 for slot of shard");
  const auto rule = make();
  BOOST_REQUIRE(!rule);
  BOOST_TEST((rule.error().code == ErrorCode::kNotFound));
  const std::vector<LineChoice> choices = lines_of(report, d, context);
  BOOST_TEST_REQUIRE(choices.size() == 1U);
  BOOST_TEST(has(choices[0].why_not, "no word of trouble"));
  words.line = choices[0].line;
  BOOST_TEST(has(made().text, "enqueue tag <_> for slot"));
}

// A slow host without a line of its own.
struct SlowHost : Fixture {
  SlowHost() {
    lines.clear();
    d.evidence.clear();
    d.detector = "comm";
    d.title = "A host is slow as a whole";
    d.symptom = Symptom::kSlowdown;
    see("comm: A host is slow as a whole", "node-2", 100);
  }
  void see(const std::string& text, const std::string& host, int64_t seconds) {
    const TimeNs time = seconds * 1'000'000'000;
    report.findings.push_back({text, host, {}, {}, time, time});
  }
};

BOOST_FIXTURE_TEST_CASE(a_finding_and_what_was_seen_with_it_make_a_rule_on_findings, SlowHost) {
  see("gpu_health gpu.thermal_throttle: GPU 5, 92 C", "node-3", 100);  // another host
  see("host_health host.cpu_stolen: 31 % of the last minute", "node-2", 160);
  see("gpu_health gpu.power_brake: GPU 5, 70 C", "node-2", 90'000);  // much later
  const ConfirmedRule rule = made();
  const rules::RuleText file{"x.lua", rule.text};
  const auto set = rules::Ruleset::load({&file, 1});
  BOOST_REQUIRE(set);
  BOOST_REQUIRE((*set)->rules().size() == 2u);
  const rules::Rule &main = (*set)->rules()[0], &helper = (*set)->rules()[1];
  BOOST_TEST(helper.any[0].text == "host_health host.cpu_stolen:");
  BOOST_TEST((helper.severity == Severity::kInfo && main.severity == Severity::kError));
  BOOST_TEST((main.sources == rules::bit(rules::TextSource::kFinding)));
  BOOST_TEST(main.any[0].text == "comm: A host is slow as a whole");
  BOOST_TEST(main.window->with == helper.id);
  BOOST_TEST(main.window->span_ns == 600 * kNsPerSecond);
  BOOST_TEST((main.symptom == Symptom::kSlowdown && main.blame == rules::Blame::kHost));
}

BOOST_FIXTURE_TEST_CASE(a_rule_of_the_library_may_come_with_a_finding, SlowHost) {
  context.fired.push_back(
      {"nvidia.xid.63", "NVRM: Xid (PCI:0000:3b:00): 63, pid=1, Row remap", "node-2", 90'000'000'000});
  const ConfirmedRule rule = made();
  BOOST_TEST(has(rule.text, "with = \"nvidia.xid.63\""));
  BOOST_TEST(!has(rule.text, ".seen\","));
}

BOOST_FIXTURE_TEST_CASE(a_line_beside_a_finding_about_lines_is_no_company, SlowHost) {
  report.findings.clear();
  d.detector = "silence";
  d.title = "it fell silent 40 s before its peers";
  see("silence: " + d.title, "node-2", 100);
  context.fired.push_back(
      {"storage.disk.io", "blk_update_request: I/O error, dev sda, sector 7", "node-2", 90'000'000'000});
  BOOST_TEST(has(refused(), "nothing else was seen of node-2"));
}

BOOST_FIXTURE_TEST_CASE(a_finding_that_tells_no_fault_from_another_is_refused, SlowHost) {
  BOOST_TEST(has(refused(), "is found for many faults, and nothing else was seen of node-2"));
  see("host_health host.cpu_stolen: 31 % of the last minute", "node-2", 160);
  context.others.push_back({"jobs/ok", true, "", searching(lines), report.findings});
  BOOST_TEST(has(refused(), "the successful job jobs/ok has the finding too"));
}

BOOST_FIXTURE_TEST_CASE(a_place_in_a_program_tells_enough, SlowHost) {
  report.findings.clear();
  d.detector = "stacks";
  d.title = "Rank 19 is in the data loader (torch/utils/data/dataloader.py:_try_get_data:1133)";
  see("stacks: " + d.title, "node-2", 100);
  BOOST_TEST(loaded(made()).any[0].text == "stacks: Rank <_> is in the data loader (<_>:_try_get_data:<_>)");
  report.findings[0].text = "stacks: Rank 19 never joined all_reduce #13 of default_pg";
  BOOST_TEST(has(refused(), "is found for many faults"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
