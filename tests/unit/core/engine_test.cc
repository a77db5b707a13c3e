#include "core/engine.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::core;

namespace {

// A job of some hosts with one file each that prints steps; one host writes `extra` after its last step.
std::vector<std::string> job(size_t hosts, size_t steps, size_t faulty, std::string_view extra) {
  std::vector<std::string> files(hosts);
  for (size_t h = 0; h < hosts; ++h) {
    for (size_t s = 0; s < steps; ++s)
      files[h] +=
          fmt::format("2026-11-21 02:{:02}:{:02},000 INFO step={} loss=2.{}\n", s / 60, s % 60, s, s % 10);
    if (h == faulty) files[h] += std::string(extra);
  }
  return files;
}

struct Fed {
  Report report;
  size_t findings = 0;
};

const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

Fed feed(const std::vector<std::string>& files, EngineOptions options = {}) {
  if (!options.rules) options.rules = shipped();
  options.live = true;
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  Fed out;
  for (size_t f = 0; f < files.size(); ++f) {
    SourceInfo info;
    info.file = fmt::format("node-{}.log", f);
    info.host = fmt::format("node-{}", f);
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({static_cast<SourceId>(f), 0, 0, files[f], files[f].size(), true}, info, batch);
    Input lines = LogInput{&batch};
    out.findings += engine.step({&lines, 1}, kNoTime).size();
  }
  out.report = engine.report();
  return out;
}

constexpr std::string_view kXid =
    "2026-11-21 02:01:40,500 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n";

}  // namespace

BOOST_AUTO_TEST_CASE(a_healthy_job_has_no_verdict_no_diagnoses_no_suspects_and_misses_nothing) {
  const Report r = feed(job(8, 100, 0, "")).report;
  BOOST_TEST(!r.verdict.has_value());
  BOOST_TEST(r.diagnoses.empty());
  BOOST_TEST(r.suspects.empty());
  BOOST_TEST(r.missing.empty());
  BOOST_TEST(r.indicating.empty());
}

BOOST_AUTO_TEST_CASE(a_gpu_that_fell_off_the_bus_is_the_verdict_and_its_host_the_first_suspect) {
  const Fed fed = feed(job(8, 100, 5, kXid));
  BOOST_REQUIRE(fed.report.verdict.has_value());
  const Diagnosis& d = fed.report.diagnoses[*fed.report.verdict];
  BOOST_TEST((d.category == Category::kHardware));
  BOOST_TEST((d.component == Component::kGpu));
  BOOST_REQUIRE(!fed.report.suspects.empty());
  BOOST_TEST(*fed.report.suspects[0].host == "node-5");
  BOOST_TEST(d.evidence.at(0).file == "node-5.log");
  BOOST_TEST(*d.evidence[0].line == 101u);
  BOOST_TEST(d.iteration.value_or(-1) == 99);
  BOOST_TEST(fed.findings == 1u);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_program_on_all_hosts_accuses_no_host) {
  auto files = job(4, 50, 9, "");
  for (auto& f : files)
    f += "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'hidden_size'\n";
  const Report r = feed(files).report;
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST((r.diagnoses[0].category == Category::kUser));
  BOOST_TEST(r.suspects.empty());
}

BOOST_AUTO_TEST_CASE(a_traceback_that_the_job_survived_is_no_diagnosis) {
  auto files = job(4, 20, 9, "");
  std::string more =
      "2026-11-21 02:00:20,100 Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n"
      "ValueError: cache is cold\n";
  for (int s = 20; s < 90; ++s)
    more += fmt::format("2026-11-21 02:{:02}:{:02},000 INFO step={} loss=2.{}\n", s / 60, s % 60, s, s % 10);
  files[1] += more;
  BOOST_TEST(feed(files).report.diagnoses.empty());
}

BOOST_AUTO_TEST_CASE(what_the_pool_of_healthy_jobs_has_is_no_evidence) {
  detect::Pool pool;
  for (int i = 0; i < 3; ++i) {
    Engine healthy({{}, {}, {}, shipped()});
    logs::LineParser parser{logs::ParseOptions{}, healthy.make_scanner()};
    logs::LogBatch batch;
    const std::string text = job(1, 50, 0, kXid)[0];
    Input opened = SourceOpened{};
    healthy.step({&opened, 1}, kNoTime);
    parser.parse({0, 0, 0, text, text.size(), true}, {}, batch);
    Input lines = LogInput{&batch};
    healthy.step({&lines, 1}, kNoTime);
    healthy.add_to(pool);
  }
  EngineOptions options;
  options.pool = pool;
  BOOST_TEST(feed(job(8, 100, 5, kXid), std::move(options)).report.diagnoses.empty());
}

BOOST_AUTO_TEST_CASE(the_report_may_be_asked_for_again_and_again) {
  Engine engine({});
  BOOST_TEST(to_json(engine.report()) == to_json(engine.report()));
}

BOOST_AUTO_TEST_CASE(the_same_inputs_give_the_same_report) {
  const auto files = job(6, 80, 2, kXid);
  BOOST_TEST(to_json(feed(files).report) == to_json(feed(files).report));
}

namespace {

// Hosts that write one line per second; `silent` stops after `until` seconds, the others continue to `end`.
std::vector<std::string> chatter(size_t hosts, size_t silent, size_t until, size_t end) {
  std::vector<std::string> files(hosts);
  for (size_t h = 0; h < hosts; ++h)
    for (size_t s = 0; s < (h == silent ? until : end); ++s)
      files[h] += fmt::format("2026-11-21 02:{:02}:{:02},000 INFO step={} loss=2.{}\n", s / 60, s % 60,
                              h == silent || s < until ? s : until, s % 10);
  return files;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_that_falls_silent_while_its_peers_wait_is_named) {
  const Report r = feed(chatter(8, 3, 120, 400)).report;
  BOOST_REQUIRE(!r.suspects.empty());
  BOOST_TEST(*r.suspects[0].host == "node-3");
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST(r.diagnoses[*r.verdict].detector.value_or("") == "silence");
}

BOOST_AUTO_TEST_CASE(a_job_whose_logs_are_cut_off_for_all_at_once_is_no_failure) {
  const Report r = feed(chatter(8, 99, 120, 120)).report;
  BOOST_TEST(r.diagnoses.empty());
  BOOST_TEST(r.suspects.empty());
}

BOOST_AUTO_TEST_CASE(a_fatal_line_counts_next_to_thousands_of_lines_without_times) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("[rank{}]: step {} took 12 ms\n", i % 8, i / 8);
  const Report r = feed({text, std::string(kXid)}).report;
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST((r.diagnoses[*r.verdict].component == Component::kGpu));
}

BOOST_AUTO_TEST_CASE(each_step_of_the_method_can_be_left_out) {
  for (bool detect::Steps::*step :
       {&detect::Steps::cross_job, &detect::Steps::spatial, &detect::Steps::temporal, &detect::Steps::order,
        &detect::Steps::silence, &detect::Steps::shapes}) {
    detect::Steps steps;
    steps.*step = false;
    const Report r = feed(job(8, 100, 5, kXid), {.job = {}, .pool = {}, .steps = steps}).report;
    BOOST_TEST(r.job.lines == 801u);
    if (step == &detect::Steps::shapes)
      BOOST_TEST(r.diagnoses.size() <= 1u);
    else
      BOOST_TEST(r.verdict.has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_traceback_at_the_end_of_a_long_log_is_the_verdict) {
  auto files =
      job(1, 3000, 0, "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n");
  const Report r = feed(files).report;
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST(r.diagnoses[0].rule.value_or("") == "python.mistake.keyerror");
}

BOOST_AUTO_TEST_CASE(what_was_read_and_not_kept_is_a_problem_of_the_report) {
  std::string text(limits::kLineBytes + 1, 'x');
  text += "\n";
  for (int i = 0; i < 50'001; ++i) text += "ValueError: bad shape\n";
  const Report r = feed({text}).report;
  BOOST_REQUIRE(r.problems.size() == 2u);
  BOOST_TEST(r.problems[0].file == "");
  BOOST_TEST(r.problems[0].what.ends_with(
      " lines that match rules are counted, but not kept: of these rules the first and last lines are, and "
      "those of each writer"));
  BOOST_TEST(r.problems[1].file == "node-0.log");
}

namespace {

// Tracebacks without times: more than a job keeps.
std::string tracebacks(size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i)
    text += fmt::format(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: bad shape {}\n", i);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_fault_before_in_or_after_a_storm_of_tracebacks_is_the_verdict) {
  const std::string storm = tracebacks(35'000);
  for (const std::string& end :
       {std::string(kXid) + storm, storm + std::string(kXid) + storm, storm + std::string(kXid)}) {
    const Report r = feed(job(4, 100, 2, end)).report;
    BOOST_REQUIRE(r.verdict.has_value());
    BOOST_TEST(r.diagnoses[*r.verdict].rule.value_or("") == "nvidia.xid.79");
  }
}

BOOST_AUTO_TEST_CASE(a_storm_of_tracebacks_at_the_end_of_a_log_is_a_fault) {
  const Report r = feed(job(1, 3000, 0, tracebacks(40'000))).report;
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST(r.diagnoses[*r.verdict].rule.value_or("") == "python.mistake.valueerror");
}

BOOST_AUTO_TEST_CASE(errors_that_are_not_kept_leave_open_whether_a_job_is_well) {
  std::vector<std::string> files = job(1, 100, 0, tracebacks(40'000));
  for (int s = 100; s < 2000; ++s)
    files[0] += fmt::format("2026-11-21 03:{:02}:{:02},000 INFO step={} loss=2.1\n", s / 60, s % 60, s);
  const Report r = feed(files).report;
  BOOST_TEST(r.diagnoses.empty());
  BOOST_REQUIRE(r.missing.size() == 1u);
  BOOST_TEST(r.missing[0].starts_with("whether one of "));
}

BOOST_AUTO_TEST_CASE(a_fault_at_the_end_of_a_long_training_is_not_taken_for_survived) {
  std::string text;
  for (int s = 0; s < 50'000; ++s)
    text += fmt::format("2026-11-21 {:02}:{:02}:{:02},000 INFO step={} loss=2.1\n", s / 3600, s / 60 % 60,
                        s % 60, s);
  text +=
      "2026-11-21 13:53:20,500 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n";
  const Report r = feed({text}).report;
  BOOST_REQUIRE(r.verdict.has_value());
  BOOST_TEST(r.diagnoses[*r.verdict].iteration.value_or(-1) == 49'999);
}

BOOST_AUTO_TEST_CASE(what_ends_a_job_from_outside_accuses_no_host) {
  for (const std::string_view line :
       {"slurmstepd: error: *** JOB 77 ON node-2 CANCELLED AT 2026-11-21T02:01:41 DUE TO TIME LIMIT ***\n",
        "2026-11-21 02:01:40,500 WARNING node received a preemption notice\n",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.69 GiB\n"}) {
    const Report r = feed(job(8, 100, 2, line)).report;
    BOOST_REQUIRE(r.verdict.has_value());
    BOOST_TEST(r.diagnoses[*r.verdict].action.targets.empty());
    BOOST_TEST(r.suspects.empty());
  }
}

BOOST_AUTO_TEST_CASE(an_xid_that_a_program_causes_is_no_diagnosis_where_no_program_failed) {
  constexpr std::string_view kProgram =
      "2026-11-21 02:01:40,500 kernel: NVRM: Xid (PCI:0000:9b:00): 43, pid=1, Reset Channel Verif Error.\n";
  BOOST_TEST(feed(job(8, 100, 5, kProgram)).report.diagnoses.empty());
  const auto failed = fmt::format(
      "{}2026-11-21 02:01:41,000 ERROR Traceback (most recent call last):\n"
      "  File \"t.py\", line 3, in f\nRuntimeError: CUDA error: unspecified\n",
      kProgram);
  BOOST_TEST(!feed(job(8, 100, 5, failed)).report.diagnoses.empty());
}

namespace {

// Two hosts of four ranks each that print steps; one rank writes `extra` after its last step.
std::vector<std::string> ranks(std::string_view extra) {
  std::vector<std::string> files(2);
  for (size_t s = 0; s < 100; ++s)
    for (size_t r = 0; r < 8; ++r) {
      const std::string head =
          fmt::format("[rank{}]: 2026-11-21 02:{:02}:{:02},000 INFO ", r, s / 60, s % 60);
      files[r / 4] += fmt::format("{}step={} loss=2.{}\n", head, s, s % 10);
      if (r == 6 && s == 99 && !extra.empty()) files[r / 4] += fmt::format("{}{}\n", head, extra);
    }
  files[1] += "2026-11-21 02:01:40,500 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off.\n";
  return files;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_differs_from_all_others_is_named_with_its_host) {
  const Report r = feed(ranks("ERROR device clock is stuck at 210 MHz")).report;
  BOOST_REQUIRE(!r.suspects.empty());
  BOOST_TEST(r.suspects[0].host.value_or("") == "node-1");
  const auto& why = r.suspects[0].why;
  BOOST_TEST(std::any_of(why.begin(), why.end(), [](const std::string& w) {
    return w.starts_with("only rank 6 of 8 ranks logged");
  }));
  const Report quiet = feed(ranks("")).report;
  BOOST_REQUIRE(!quiet.suspects.empty());
  for (const std::string& w : quiet.suspects[0].why) BOOST_TEST(!w.starts_with("of 8 ranks"));
}

BOOST_AUTO_TEST_CASE(of_two_hosts_the_one_that_stopped_with_the_progress_is_named) {
  const Report r = feed(chatter(2, 1, 120, 400)).report;
  BOOST_REQUIRE(!r.suspects.empty());
  BOOST_TEST(*r.suspects[0].host == "node-1");
}

BOOST_AUTO_TEST_CASE(a_pool_counts_the_lines_of_a_template_once_however_many_wordings_it_has) {
  std::string text = job(1, 50, 0, "")[0];
  for (int i = 0; i < 30; ++i)
    text += fmt::format("2026-11-21 02:01:{:02},000 INFO shard part{} is ready\n", i,
                        static_cast<char>('a' + i % 26));
  Engine engine({});
  logs::LineParser parser{logs::ParseOptions{}};
  logs::LogBatch batch;
  Input opened = SourceOpened{};
  engine.step({&opened, 1}, kNoTime);
  parser.parse({0, 0, 0, text, text.size(), true}, {}, batch);
  Input lines = LogInput{&batch};
  engine.step({&lines, 1}, kNoTime);
  detect::Pool pool;
  engine.add_to(pool);
  double sum = 0;
  for (const detect::PoolForm& f : pool.forms) sum += f.host_max;
  BOOST_TEST(sum == 80, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_rule_may_say_what_a_detectors_finding_means) {
  const std::vector<rules::RuleText> text = {{"site.lua", R"(rule {
    id = "site.gone", engine = 1, title = "A host of the fabric's row is gone", category = "platform",
    component = "network", severity = "error", source = "finding", remedy = "Look at the row's switch.",
    match = { regex = [[^(?:silence|spatial|temporal): ]] },
    examples = { hit = "silence: it wrote nothing more", miss = "fabric: it wrote nothing more" } })"}};
  auto set = rules::Ruleset::load(text);
  BOOST_REQUIRE(set.has_value());
  auto files = job(8, 100, 9, "");
  files[5].erase(files[5].size() * 9 / 10);
  files[5].erase(files[5].rfind('\n') + 1);
  for (size_t f = 0; f < files.size(); ++f)
    if (f != 5) files[f] += "2026-11-21 02:11:40,000 ERROR still waiting for a peer\n";
  EngineOptions options;
  options.rules = *set;
  const Report r = feed(files, std::move(options)).report;
  BOOST_TEST(std::any_of(r.diagnoses.begin(), r.diagnoses.end(),
                         [](const Diagnosis& d) { return d.rule.value_or("") == "site.gone"; }));
}

BOOST_AUTO_TEST_CASE(a_rule_that_the_shell_took_out_is_reported_and_makes_no_diagnosis) {
  constexpr std::string_view kRule = R"(rule { id = "site.flame", engine = 1, title = "The rack burns",
    category = "hardware", component = "gpu", severity = "fatal", remedy = "Water.",
    match = { template = "flames at rack <n>" }, when = function() return true end,
    examples = { hit = "flames at rack 7", miss = "all is well" } })";
  const auto set = rules::Ruleset::load({{rules::RuleText{"site.lua", std::string(kRule)}}});
  BOOST_REQUIRE(set.has_value());
  const auto files = job(4, 100, 2, "2026-11-21 02:01:40,500 ERROR flames at rack 7\n");
  const auto named = [](const Fed& fed) {
    bool out = false;
    for (const Diagnosis& d : fed.report.diagnoses) out = out || d.rule == "site.flame";
    return out;
  };
  EngineOptions options;
  options.rules = *set;
  const Fed before = feed(files, options);
  BOOST_TEST(named(before));
  BOOST_TEST(before.findings == 1u);
  options.quarantined = {"site.flame"};
  const Fed after = feed(files, options);
  BOOST_TEST(!named(after));
  BOOST_TEST(after.findings == 0u);
  bool reported = false;
  for (const Problem& p : after.report.problems)
    reported = reported || p.what.find("site.flame was running when the process died") != std::string::npos;
  BOOST_TEST(reported);
}

BOOST_AUTO_TEST_CASE(overruns_that_the_shell_saw_are_inputs_and_the_third_takes_the_rule_out) {
  const auto set = rules::Ruleset::shipped();
  for (const int overruns : {2, 3}) {
    EngineOptions options;
    options.rules = set;
    options.live = true;
    Engine engine(std::move(options));
    const std::string rule = set->rules()[0].id;
    for (int i = 0; i < overruns; ++i) {
      Input input = RuleOverran{rule};
      engine.step({&input, 1}, kNoTime);
    }
    for (int asked = 0; asked < 2; ++asked) {  // a report evaluates all findings again and keeps them
      const Report report = engine.report();
      BOOST_REQUIRE(report.problems.size() == 1u);
      BOOST_TEST((report.problems[0].what.find("not asked any more") != std::string::npos) ==
                 (overruns == 3));
    }
  }
}

BOOST_AUTO_TEST_CASE(logs_far_apart_in_time_are_not_called_healthy_together) {
  auto files = job(4, 100, 9, "");
  files[3] = "2026-09-02 02:00:00,000 INFO step=1 loss=2.1\n2026-09-02 02:00:01,000 INFO step=2 loss=2.1\n";
  const Report r = feed(files).report;
  BOOST_TEST(r.diagnoses.empty());
  BOOST_REQUIRE(!r.missing.empty());
  BOOST_TEST(r.missing.back().find("2 times far apart") != std::string::npos);
}

// One file that holds a line of another year has a length of its own, and hides no gap between the others.
BOOST_AUTO_TEST_CASE(a_file_with_a_line_of_another_year_hides_no_gap_between_jobs) {
  auto files = job(4, 100, 9, "");
  files[2] = "2023-03-17 02:00:00,000 INFO node prepared\n" + files[2];
  files[3] = "2026-09-02 02:00:00,000 INFO step=1 loss=2.1\n2026-09-02 02:00:01,000 INFO step=2 loss=2.1\n";
  const Report r = feed(files).report;
  BOOST_REQUIRE(!r.missing.empty());
  BOOST_TEST(r.missing.back().find("times far apart") != std::string::npos);
}
