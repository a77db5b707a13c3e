// Whether the job may run again after a failure, what must differ, and whom a line accuses: with the shipped
// rules, from lines to the report.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <set>

#include "core/engine.h"
#include "model/restart.h"

using namespace culprit;
using namespace culprit::core;

namespace {

const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

// Three hosts that print so many steps; then node-1 writes these lines.
struct Job {
  size_t steps = 60;
  std::vector<std::string> lines;
};

struct Read {
  Report report;
  std::vector<RuleFired> fired;
};

Read read(const Job& job) {
  EngineOptions options;
  options.rules = shipped();
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  for (size_t h = 1; h <= 3; ++h) {
    std::string text;
    for (size_t s = 0; s < job.steps; ++s)
      text +=
          fmt::format("2026-11-21 02:{:02}:{:02},000 INFO step={} loss=2.{}\n", s / 60, s % 60, s, s % 10);
    if (h == 1)
      for (const std::string& line : job.lines) text += fmt::format("2026-11-21 02:30:00,500 {}\n", line);
    SourceInfo info;
    info.file = fmt::format("node-{}.log", h);
    info.host = fmt::format("node-{}", h);
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({static_cast<SourceId>(h - 1), 0, 0, text, text.size(), true}, info, batch);
    Input lines = LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  Read out{engine.report(), {}};
  out.fired = engine.firings();
  return out;
}

std::string output(const Report& report) {
  if (!report.restart) return "-";
  std::string out(to_string(report.restart->kind));
  for (const auto* names : {&report.restart->hosts, &report.restart->devices})
    for (const std::string& name : *names) out += " " + name;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_and_the_progress_before_it_say_what_must_differ) {
  const struct {
    size_t steps;
    const char* line;
    const char* wanted;
  } rows[] = {
      {0, "ModuleNotFoundError: No module named 'apex'", "never"},
      {60, "RuntimeError: shape '[4, 8]' is invalid for input of size 31", "never"},
      {0, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "never"},
      {60, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "same"},
      {60, "RuntimeError: CUDA error: an illegal memory access was encountered", "same"},
      {0,
       "RuntimeError: The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in "
       "use)",
       "same"},
      {60, "OSError: [Errno 116] Stale file handle: '/nfs/run/data.bin'", "later"},
      {60, "OSError: 503", "later"},
      {60, "OSError: 503 Service Unavailable", "later"},
      {0, "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x/y", "later"},
      {0, "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://x/y", "never"},
      {60, "AssertionError: Rank 3: found NaN in local grad norm in backward pass", "older"},
      {60, "srun: error: Node failure on node-7", "elsewhere node-7"},
      // Its writer lives: the failed host is another one.
      {60,
       "slurmstepd: error: *** STEP 19.0 ON node-1 CANCELLED AT 2026-11-21T02:30:00 DUE TO NODE FAILURE ***",
       "elsewhere"},
      {60, "slurmctld: error: prolog_running: timed out on n3", "elsewhere n3"},
      // A host or device in the words of a line whose rule names none.
      {60, "Detected a GPU row remap Error for GPU ID 7, please offline this node (node-2)",
       "elsewhere node-2 GPU 7"},
      {60, "kernel: amdgpu 0000:83:00.0: amdgpu: [xgmi] link 3 is down", "elsewhere node-1 0000:83:00.0"},
      {60, "kernel: EDAC MC1: 1 UE multi-bit ECC on P1_DIMM_C1 (node:1 card:2 module:0 rank:0)",
       "elsewhere node-1"},
      {60, "kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.",
       "elsewhere node-1 0000:9b:00"},
      {60,
       "slurmstepd: error: *** STEP 19.0 ON node-1 CANCELLED AT 2026-11-21T02:30:00 DUE TO PREEMPTION ***",
       "same"},
      {60, "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
       "older"},
  };
  for (const auto& row : rows)
    BOOST_TEST(output(read({row.steps, {row.line}}).report) == row.wanted, row.line);
}

BOOST_AUTO_TEST_CASE(an_exception_that_ends_the_program_before_a_step_ends_it_again) {
  const std::vector<std::string> traceback = {
      "Traceback (most recent call last):", "  File \"/home/a/train.py\", line 12, in <module>",
      "    size = config['hidden_size']", "KeyError: 'hidden_size'"};
  for (const size_t steps : {0, 60}) {
    const Report report = read({steps, traceback}).report;
    BOOST_REQUIRE(report.restart);
    BOOST_TEST(output(report) == "never");
    BOOST_TEST(report.restart->sure == (steps == 0));
  }
}

BOOST_AUTO_TEST_CASE(without_a_fault_nothing_is_said_and_without_a_verdict_unknown) {
  BOOST_TEST(output(read({60, {}}).report) == "-");
  const Report report = read({0, {"ERROR something odd happened here"}}).report;
  if (report.restart) BOOST_TEST(output(report) == "unknown");
}

BOOST_AUTO_TEST_CASE(a_consequence_names_no_host_and_stops_no_job) {
  for (const rules::Rule& rule : shipped()->rules()) {
    if (rule.role != rules::Role::kCascade || rule.severity < Severity::kError) continue;
    for (const std::string& hit : rule.hit) {
      const Report report = read({60, {hit.substr(0, hit.find('\n'))}}).report;
      if (!report.verdict) continue;
      const Diagnosis& d = report.diagnoses[*report.verdict];
      if (d.rule != rule.id) continue;
      BOOST_TEST((d.restart.kind >= Restart::kLater), rule.id);
      BOOST_TEST(d.restart.hosts.empty(), rule.id);
      break;
    }
  }
}

BOOST_AUTO_TEST_CASE(an_address_in_a_consequence_accuses_no_host) {
  size_t lines = 0;
  for (const rules::Rule& rule : shipped()->rules()) {
    if (rule.role != rules::Role::kCascade) continue;
    for (const std::string& hit : rule.hit) {
      const bool addressed = hit.find("10.") != hit.npos || hit.find("192.168.") != hit.npos;
      if (hit.find('\n') != hit.npos || !addressed) continue;
      ++lines;
      const Report report = read({60, {hit}}).report;
      if (report.restart) BOOST_TEST(report.restart->hosts.empty(), rule.id << ": " << hit);
      for (const Diagnosis& d : report.diagnoses)
        BOOST_TEST((d.action.kind != ActionKind::kIsolate), rule.id << ": " << hit);
    }
  }
  BOOST_TEST(lines > 5u);
}

// A service that is away is away for all its readers: no decision leaves out the one that reports it.
BOOST_AUTO_TEST_CASE(a_fault_of_a_storage_service_leaves_out_no_reader) {
  size_t lines = 0;
  for (const rules::Rule& rule : shipped()->rules()) {
    const bool service = rule.place.file.find("storage/") != std::string::npos;
    if (!service || rule.restart_after_steps != Restart::kLater) continue;
    for (const std::string& hit : rule.hit) {
      if (hit.find('\n') != hit.npos) continue;
      for (const Diagnosis& d : read({60, {hit}}).report.diagnoses) {
        if (d.rule != rule.id) continue;
        ++lines;
        BOOST_TEST(d.restart.hosts.empty(), rule.id << ": " << hit);
        BOOST_TEST((d.action.kind != ActionKind::kIsolate), rule.id << ": " << hit);
      }
    }
  }
  BOOST_TEST(lines > 20u);
}

// Over all rules with a host or another end in them: a line that names another one does not accuse its
// writer.
BOOST_AUTO_TEST_CASE(who_writes_a_line_about_another_one_is_not_accused) {
  const std::set<std::string> kNames = {"host", "host2", "host3", "node", "peer", "server"};
  const auto is_number = [](const std::string& text) {
    return text.find_first_not_of("0123456789") == text.npos;
  };
  size_t lines = 0;
  for (const rules::Rule& rule : shipped()->rules()) {
    if (std::ranges::none_of(rule.holes, [&](const std::string& h) { return kNames.contains(h); })) continue;
    for (const std::string& hit : rule.hit) {
      if (hit.find('\n') != hit.npos) continue;
      const Read got = read({60, {hit}});
      bool names_another = false;
      for (const RuleFired& one : got.fired) {
        const rules::Rule& fired = shipped()->rules()[one.hit.rule];
        if (fired.id != rule.id) continue;
        for (size_t i = 0; i < fired.holes.size() && i < one.hit.holes.size(); ++i)
          names_another = names_another || (kNames.contains(fired.holes[i]) && !one.hit.holes[i].empty() &&
                                            !is_number(one.hit.holes[i]));
      }
      if (!names_another) continue;
      ++lines;
      for (const Diagnosis& d : got.report.diagnoses) {
        if (d.rule != rule.id) continue;
        for (const Suspect& s : d.hosts) BOOST_TEST(s.host.value_or("") != "node-1", rule.id << ": " << hit);
        for (const std::string& host : d.restart.hosts) BOOST_TEST(host != "node-1", rule.id << ": " << hit);
        for (const std::string& host : d.action.targets) BOOST_TEST(host != "node-1", rule.id << ": " << hit);
      }
    }
  }
  BOOST_TEST(lines > 20u);
}

// Over all rules on hardware and hosts whose wordings name no host.
BOOST_AUTO_TEST_CASE(a_host_behind_the_words_of_a_rule_is_accused_and_not_the_writer) {
  const std::set<std::string> kNames = {"host", "host2", "host3", "node", "peer", "server"};
  size_t lines = 0;
  for (const rules::Rule& rule : shipped()->rules()) {
    const bool elsewhere = rule.restart == Restart::kElsewhere && rule.role == rules::Role::kRoot;
    if (!elsewhere || rule.severity < Severity::kError) continue;
    if (std::ranges::any_of(rule.holes, [&](const std::string& h) { return kNames.contains(h); })) continue;
    const std::string& hit = rule.hit.front();
    if (hit.find('\n') != hit.npos) continue;
    const Report report = read({60, {hit + " (node gpu-77)"}}).report;
    if (!report.verdict || report.diagnoses[*report.verdict].rule != rule.id) continue;
    const Diagnosis& d = report.diagnoses[*report.verdict];
    const auto& hosts = d.restart.hosts;
    if (std::ranges::find(hosts, "gpu-77") == hosts.end()) continue;  // its words name another
    ++lines;
    for (const Suspect& s : d.hosts) BOOST_TEST(s.host.value_or("") != "node-1", rule.id << ": " << hit);
    BOOST_TEST(hosts.size() == 1u, rule.id << ": " << hit);
  }
  BOOST_TEST(lines > 100u);
}

BOOST_AUTO_TEST_CASE(who_writes_a_line_about_a_numbered_rank_is_not_accused) {
  const std::set<std::string> kNames = {"rank", "rank2", "failed_rank"};
  size_t lines = 0;
  for (const rules::Rule& rule : shipped()->rules()) {
    if (std::ranges::none_of(rule.holes, [&](const std::string& h) { return kNames.contains(h); })) continue;
    for (const std::string& hit : rule.hit) {
      if (hit.find('\n') != hit.npos) continue;
      const Read got = read({60, {hit}});
      bool names = false;
      for (const RuleFired& one : got.fired) {
        const rules::Rule& fired = shipped()->rules()[one.hit.rule];
        if (fired.id != rule.id) continue;
        for (size_t i = 0; i < fired.holes.size() && i < one.hit.holes.size(); ++i)
          names = names || (kNames.contains(fired.holes[i]) && !one.hit.holes[i].empty());
      }
      if (!names) continue;
      ++lines;
      for (const Diagnosis& d : got.report.diagnoses) {
        if (d.rule != rule.id) continue;
        for (const Suspect& s : d.hosts) BOOST_TEST(s.host.value_or("") != "node-1", rule.id << ": " << hit);
      }
    }
  }
  BOOST_TEST(lines > 5u);
}

BOOST_AUTO_TEST_CASE(each_rule_of_the_library_says_what_must_differ) {
  for (const rules::Rule& rule : shipped()->rules()) BOOST_TEST(rule.restart_stated, rule.id);
}
