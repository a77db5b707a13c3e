// Why a job stands, from its logs and other sources together.
#include "core/fuse/hang_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "core/engine.h"
#include "core/rules/library.h"

using namespace culprit;
using namespace culprit::core;
using namespace culprit::core::fuse;

namespace {

constexpr uint32_t kHosts = 4, kPerHost = 2;

std::string at(uint32_t second) {
  return fmt::format("2026-11-21 {:02}:{:02}:{:02},000", 2 + second / 3600, second / 60 % 60, second % 60);
}

JobFile job_of() {
  JobFile job;
  for (uint32_t h = 0; h < kHosts; ++h) job.hosts.push_back(fmt::format("node-{}", h));
  job.ranks_per_host = kPerHost;
  return job;
}

// Eight ranks. Those of the first host print steps; then watchdogs give up, but those of `silent`.
struct Logs {
  bool timed = true;  // lines of watchdogs have times
  std::set<uint32_t> silent = {};
  std::map<uint32_t, std::string> kernel = {};  // lines of the kernel, by host
  std::string end = {};                         // what the first host says after its last step
  std::map<uint32_t, std::string> last = {};    // what hosts say after the watchdogs
};

std::string watchdog(uint32_t rank, bool timed) {
  const std::string stamp = timed ? at(908) + " " : "";
  return fmt::format(
      "{1}[rank{0}]:[E ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=451, OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=600000) ran for "
      "600012 "
      "milliseconds before timing out.\n"
      "{1}[rank{0}]:[E ProcessGroupNCCL.cpp:1785] [PG 0 Rank {0}] Timeout at NCCL work: 451, last enqueued "
      "NCCL "
      "work: 451, last completed NCCL work: 450.\n",
      rank, stamp);
}

std::string reported_by_kernel(uint32_t host, const std::string& what) {
  return fmt::format("2026-11-21T02:05:00.000000+00:00 node-{} kernel: {}\n", host, what);
}

void feed(Engine& engine, SourceId source, const SourceInfo& info, const std::string& text) {
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  Input opened = SourceOpened{info};
  engine.step({&opened, 1}, kNoTime);
  parser.parse({source, 0, 0, text, text.size(), true}, info, batch);
  Input lines = LogInput{&batch};
  engine.step({&lines, 1}, kNoTime);
}

// The library, with a rule of a site for a sensor's line.
std::shared_ptr<rules::Ruleset> library_and(const std::string& id, const std::string& title,
                                            const std::string& fields) {
  std::vector<rules::RuleText> files;
  for (const rules::LibraryFile& file : rules::library())
    files.push_back({std::string(file.name), std::string(file.text)});
  const size_t proven = files.size();
  files.push_back(
      {"site.lua", fmt::format("rule {{ id = '{}', engine = 1, title = '{}', category = 'platform', "
                               "component = 'platform', severity = 'error', remedy = 'Look.', {} "
                               "match = {{ template = 'sensor reads <value> C' }}, examples = "
                               "{{ hit = 'sensor reads 45 C', miss = 'sensor found' }} }}",
                               id, title, fields)});
  auto set = rules::Ruleset::load(files, {.proven_files = proven});
  BOOST_REQUIRE(set);
  return *set;
}

Report judge(const Logs& logs, std::vector<Input> others = {},
             std::shared_ptr<rules::Ruleset> rules = rules::Ruleset::shipped()) {
  EngineOptions options{job_of()};
  options.rules = std::move(rules);
  Engine engine(std::move(options));
  SourceId source = 0;
  for (uint32_t h = 0; h < kHosts; ++h) {
    std::string text;
    for (uint32_t s = 0; s < 300 && h == 0; s += 2)
      text += at(s) + fmt::format(" INFO step={} loss=2.5\n", s / 2);
    if (h == 0 && !logs.end.empty()) text += at(300) + " INFO " + logs.end + "\n";
    if (h > 0) text += at(0) + " INFO ready\n";
    for (uint32_t r = h * kPerHost; r < (h + 1) * kPerHost; ++r)
      if (!logs.silent.contains(r)) text += watchdog(r, logs.timed);
    if (const auto last = logs.last.find(h); last != logs.last.end())
      text += at(1000) + " ERROR " + last->second + "\n";
    SourceInfo info;
    info.file = fmt::format("node-{}.log", h);
    info.host = fmt::format("node-{}", h);
    feed(engine, source++, info, text);
    const auto kernel = logs.kernel.find(h);
    if (kernel == logs.kernel.end()) continue;
    info.file = fmt::format("node-{}/messages", h);
    info.kind = SourceKind::kKernel;
    feed(engine, source++, info, reported_by_kernel(h, kernel->second));
  }
  engine.step(others, kNoTime);
  return engine.report();
}

const Diagnosis* verdict(const Report& report) {
  return report.verdict ? &report.diagnoses[*report.verdict] : nullptr;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hang_state)

// A line without a time has that of a line before it, here of the start of the job.
BOOST_AUTO_TEST_CASE(watchdogs_whose_lines_have_no_times_are_heard) {
  for (const bool timed : {true, false}) {
    const Report report = judge({timed, {5}, {}});
    BOOST_REQUIRE(report.hang);
    BOOST_TEST((report.hang->answer == HangAnswer::kMissing), timed);
    BOOST_TEST((report.hang->waited_for == std::vector<uint32_t>{5}), timed);
  }
}

BOOST_AUTO_TEST_CASE(a_job_whose_watchdogs_gave_up_did_not_end_well_whatever_one_rank_says) {
  for (const bool timed : {true, false}) {
    const Report report = judge({timed, {0, 1}, {}, "Training finished successfully"});
    BOOST_TEST((report.hang && report.hang->answer == HangAnswer::kMissing), timed);
  }
}

BOOST_AUTO_TEST_CASE(what_ranks_write_when_they_give_up_accuses_no_host) {
  const Report report = judge({true, {}, {}});
  BOOST_REQUIRE(report.hang);
  BOOST_TEST((report.hang->answer == HangAnswer::kUnfinished));
  BOOST_TEST(report.suspects.empty());
}

BOOST_AUTO_TEST_CASE(a_link_that_went_down_and_a_wait_of_all_are_one_diagnosis) {
  const Report report = judge({true, {}, {{1, "mlx5_core 0000:1b:00.0 ib0: Link down"}}});
  BOOST_REQUIRE(verdict(report));
  const Diagnosis& d = *verdict(report);
  BOOST_TEST((d.component == Component::kNetwork && d.symptom == Symptom::kHang));
  BOOST_TEST(d.rule.value_or("") == "network.mlx5.link_down");
  BOOST_TEST(d.evidence.at(0).host.value_or("") == "node-1");
  const auto network = [](const Diagnosis& one) { return one.component == Component::kNetwork; };
  BOOST_TEST(std::ranges::count_if(report.diagnoses, network) == 1);
}

BOOST_AUTO_TEST_CASE(a_file_server_that_several_hosts_miss_is_the_answer_and_no_host_a_suspect) {
  const std::string nfs = "nfs: server filer-3 not responding, still trying";
  const Report report = judge({true, {2, 3, 4, 5}, {{1, nfs}, {2, nfs}}});
  BOOST_REQUIRE((report.hang && verdict(report)));
  BOOST_TEST((report.hang->answer == HangAnswer::kNoSingle));
  BOOST_TEST((verdict(report)->component == Component::kStorage && verdict(report)->hosts.empty()));
  BOOST_TEST((report.hang->suspects.empty() && report.suspects.empty()));
}

// RAS knows the process as gone, and the kernel's log why.
BOOST_AUTO_TEST_CASE(a_process_that_ras_misses_and_the_kernels_line_of_its_end_are_one_diagnosis) {
  RasState state;
  state.host = "node-2";
  state.ranks = kHosts * kPerHost;
  state.processes = {{"node-1", 4955}};
  state.exited.push_back({0, 1, 3, true});
  state.dead_processes = 1;
  const std::string oom =
      "Out of memory: Killed process 4955 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB";
  std::vector<Input> ras = {ras::RasInput{state, "ras.json", {}}};
  const Report report = judge({true, {3}, {{1, oom}}}, ras);
  BOOST_REQUIRE((report.hang && verdict(report)));
  BOOST_TEST((report.hang->answer == HangAnswer::kLeft));
  BOOST_TEST((report.hang->waited_for == std::vector<uint32_t>{3}));
  const Diagnosis& d = *verdict(report);
  BOOST_TEST((d.component == Component::kHostMemory && d.rule == "kernel.oom.host"));
  BOOST_TEST(d.evidence.at(0).text.find("4955") != std::string::npos);
  BOOST_TEST(d.title.find("Rank 3") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rule_is_a_kill_by_what_it_declares_and_never_by_its_name) {
  struct Case {
    const char *id, *title, *fields;
    bool kill;
  };
  const Case kCases[] = {{"site.hall.temp", "Sensor reads <value>", "", false},
                         {"site.room.temp", "Sensor reads <value>", "", false},
                         {"site.machine.skill", "Sensor reads <value>", "", false},
                         {"site.hall.temp", "Sensor was killed at <value>", "", false},
                         {"site.hall.temp", "Sensor reads <value>", "ends = 'killed',", true}};
  std::set<double> confidences;  // of those that are no kill
  for (const Case& c : kCases) {
    const Logs logs{true, {5}, {}, {}, {{2, "sensor reads 45 C"}}};
    const Report report = judge(logs, {}, library_and(c.id, c.title, c.fields));
    BOOST_TEST_CONTEXT(c.id << " " << c.title << " " << c.fields) {
      BOOST_REQUIRE((report.hang && verdict(report)));
      BOOST_TEST((report.hang->answer == (c.kill ? HangAnswer::kLeft : HangAnswer::kMissing)));
      if (!c.kill) confidences.insert(verdict(report)->confidence);
    }
  }
  BOOST_TEST(confidences.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_job_of_much_slower_steps_is_a_slowdown_without_a_host_unless_a_line_announces_it) {
  struct Case {
    const char* what;
    uint32_t slow_ms;
    std::string line, end;
    bool told;
  };
  const Case kCases[] = {{"fifty times", 5000, "", "", true},
                         {"twice", 200, "", "", false},
                         {"an evaluation", 5000, "Running evaluation on the validation set", "", false},
                         {"another batch size", 5000, "Global batch size is now 4096", "", false},
                         {"it ended well", 5000, "", "Training finished successfully", false}};
  for (const Case& c : kCases) {
    Engine engine({job_of()});
    std::string text;
    uint64_t ms = 0;
    const auto stamp = [&] {
      return at(static_cast<uint32_t>(ms / 1000)).substr(0, 20) + fmt::format("{:03}", ms % 1000);
    };
    for (int step = 0; step < 200; ++step) {
      if (step == 150 && !c.line.empty()) text += stamp() + " INFO " + c.line + "\n";
      ms += step < 150 ? 100 : c.slow_ms;
      text += stamp() + fmt::format(" INFO step={} loss=2.5\n", step);
    }
    if (!c.end.empty()) text += stamp() + " INFO " + c.end + "\n";
    SourceInfo info;
    info.file = "node-0.log";
    info.host = "node-0";
    feed(engine, 0, info, text);
    const Report report = engine.report();
    BOOST_TEST((verdict(report) != nullptr) == c.told, c.what);
    if (!verdict(report)) continue;
    BOOST_TEST(verdict(report)->title.starts_with("Steps take 50 times as long since 02:00:15"));
    BOOST_TEST((verdict(report)->symptom == Symptom::kSlowdown && verdict(report)->hosts.empty()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
