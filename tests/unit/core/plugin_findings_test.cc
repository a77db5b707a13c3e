#include "core/plugin_findings.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "core/engine.h"
#include "core/fuse/correlate.h"

using namespace culprit;
using namespace culprit::core;
using namespace culprit::core::fuse;

namespace {

constexpr TimeNs kAt = 1'763'690'000 * kNsPerSecond;

PluginFinding throttle(const std::string& host, uint32_t device) {
  PluginFinding f;
  f.plugin = "gpu_health";
  f.id = "gpu.thermal_throttle";
  f.title = "A GPU is slowed by heat";
  f.text = "GPU 2 slows itself at 92 C";
  f.category = "hardware";
  f.component = "gpu";
  f.symptom = "slowdown";
  f.host = host;
  f.device = device;
  f.time_ns = kAt;
  f.confidence = 0.9;
  f.severity = PluginSeverity::kWarning;
  f.state = PluginState::kRaised;
  return f;
}

// A slow rank as the communication detector reports it.
Finding slow_rank(const std::string& host, uint32_t device, TimeNs at) {
  Finding f;
  f.detector = DetectorKind::kComm;
  f.kind = FindingKind::kFault;
  f.symptom = Symptom::kSlowdown;
  f.component = Component::kGpu;
  f.title = "Rank 5 is slow";
  f.confidence = 0.8;
  f.first_ns = f.last_ns = at;
  FindingSubject subject;
  subject.host = host;
  subject.rank = 5;
  subject.device = device;
  subject.strength = 2;
  f.subjects.push_back(subject);
  return f;
}

std::vector<Finding> findings_of(const PluginFindings& plugins, const JobScope& scope = {}) {
  logs::JobLog log{JobFile{}};
  log.settle();
  return plugins.findings(detect::make_view(log), JobFile{}, scope);
}

std::vector<Finding> given(std::vector<PluginFinding> all, const JobScope& scope = {}) {
  PluginFindings plugins;
  for (PluginFinding& f : all) plugins.add({std::move(f), "plugin/gpu_health", 0, {}});
  return findings_of(plugins, scope);
}

// Of a job that logged from `first` to `last`.
JobScope scope_of(TimeNs first, TimeNs last) {
  JobScope scope;
  JobSummary job;
  job.first_ns = first;
  job.last_ns = last;
  scope.add_times(job);
  return scope;
}

PluginFinding error_at(const std::string& host, TimeNs at, PluginState state) {
  PluginFinding f = throttle(host, 2);
  f.id = "gpu.ecc_uncorrected";
  f.severity = PluginSeverity::kError;
  f.time_ns = at;
  f.state = state;
  return f;
}

std::string joined(const std::vector<PluginFinding>& causes, Finding effect) {
  std::vector<Finding> all = given(causes);
  all.push_back(std::move(effect));
  join_causes(all);
  return all.back().detector == DetectorKind::kPlugin ? all.back().title : "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plugin_findings)

BOOST_AUTO_TEST_CASE(a_warning_supports_and_an_error_is_a_fault) {
  PluginFinding f = throttle("node-1", 2);
  BOOST_TEST((given({f}).at(0).kind == FindingKind::kSupport));
  f.severity = PluginSeverity::kError;
  const Finding fault = given({f}).at(0);
  BOOST_TEST((fault.kind == FindingKind::kFault));
  BOOST_TEST(!fault.fatal);
  BOOST_TEST(fault.evidence.at(0).text == "GPU 2 slows itself at 92 C");
  BOOST_TEST(fault.evidence.at(0).file == "plugin/gpu_health");
  f.severity = PluginSeverity::kFatal;
  BOOST_TEST(given({f}).at(0).fatal);
}

BOOST_AUTO_TEST_CASE(only_the_first_error_of_a_subject_is_urgent) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  BOOST_TEST(!plugins.add({f, "", 0, {}}).has_value());
  f.id = "gpu.ecc_uncorrected";
  f.severity = PluginSeverity::kError;
  BOOST_TEST(plugins.add({f, "", 0, {}}).has_value());
  BOOST_TEST(!plugins.add({f, "", 0, {}}).has_value());
}

BOOST_AUTO_TEST_CASE(a_cause_joins_the_slowness_of_its_device) {
  BOOST_TEST(joined({throttle("node-1", 2)}, slow_rank("node-1", 2, kAt)) ==
             "A GPU is slowed by heat: Rank 5 is slow");
  BOOST_TEST(joined({throttle("node-1", 2)}, slow_rank("node-1", 3, kAt)) == "");
  BOOST_TEST(joined({throttle("node-2", 2)}, slow_rank("node-1", 2, kAt)) == "");
}

BOOST_AUTO_TEST_CASE(a_cause_of_another_symptom_or_part_joins_nothing) {
  PluginFinding hang = throttle("node-1", 2);
  hang.symptom = "hang";
  BOOST_TEST(joined({hang}, slow_rank("node-1", 2, kAt)) == "");
  PluginFinding port = throttle("node-1", 2);
  port.component = "network";
  BOOST_TEST(joined({port}, slow_rank("node-1", 2, kAt)) == "");
}

BOOST_AUTO_TEST_CASE(a_cause_counts_from_its_begin_to_its_end) {
  constexpr TimeNs kHour = 3600 * kNsPerSecond;
  const PluginFinding raised = throttle("node-1", 2);
  PluginFinding cleared = raised;
  cleared.state = PluginState::kCleared;
  cleared.time_ns = kAt + kHour;
  const auto title_at = [&](TimeNs at, bool ends) {
    std::vector<PluginFinding> causes = {raised};
    if (ends) causes.push_back(cleared);
    return joined(causes, slow_rank("node-1", 2, at));
  };
  BOOST_TEST(title_at(kAt - kHour, false) == "");
  BOOST_TEST(title_at(kAt + 5 * kHour, false) != "");
  BOOST_TEST(title_at(kAt + kHour / 2, true) != "");
  BOOST_TEST(title_at(kAt + 5 * kHour, true) == "");
}

BOOST_AUTO_TEST_CASE(a_joined_fault_has_both_reasons_and_more_confidence) {
  std::vector<Finding> all = given({throttle("node-1", 2)});
  all.push_back(slow_rank("node-1", 2, kAt));
  join_causes(all);
  BOOST_REQUIRE(all.size() == 1u);
  BOOST_TEST(all[0].plugin == "gpu_health");
  BOOST_TEST(all[0].confidence > 0.9);
  BOOST_TEST(all[0].why.at(0).starts_with("plugin gpu_health: GPU 2"));
  BOOST_TEST(all[0].why.at(1) == "Rank 5 is slow");
}

BOOST_AUTO_TEST_CASE(a_user_who_claims_a_finding_is_named) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  f.severity = PluginSeverity::kError;
  const auto urgent = plugins.add({f, "trace.sock", 0, 12002});
  BOOST_REQUIRE(urgent.has_value());
  BOOST_TEST(urgent->said_by.uids == std::vector<Principal>{12002});
}

BOOST_AUTO_TEST_CASE(a_user_neither_clears_nor_takes_over_what_the_daemon_found) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  f.severity = PluginSeverity::kError;
  plugins.add({f, "trace.sock", 0, 12002});
  BOOST_TEST(plugins.add({f, "plugin/gpu_health", 0, {}}).has_value());
  f.state = PluginState::kCleared;
  plugins.add({f, "trace.sock", 0, 12002});
  const auto all = findings_of(plugins);
  BOOST_REQUIRE(all.size() == 2u);
  for (const Finding& one : all) BOOST_TEST((one.last_ns == kNoTime) == one.said_by.uids.empty());
}

BOOST_AUTO_TEST_CASE(a_claim_of_a_user_joins_nothing_and_is_capped) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  f.severity = PluginSeverity::kFatal;
  f.action = "check";
  Engine engine{EngineOptions{}};
  Input input = FindingInput{f, "trace.sock", 0, 12002};
  engine.step({&input, 1}, kNoTime);
  const Report report = engine.report();
  BOOST_REQUIRE(report.diagnoses.size() == 1u);
  BOOST_TEST(report.diagnoses[0].said_by.has_value());
  BOOST_TEST(report.diagnoses[0].confidence < 0.9);
  plugins.add({f, "trace.sock", 0, 12002});
  std::vector<Finding> all = findings_of(plugins);
  all.push_back(slow_rank("node-1", 2, kAt));
  join_causes(all);
  BOOST_TEST(all.back().title == "Rank 5 is slow");
}

BOOST_AUTO_TEST_CASE(the_report_names_the_plugin) {
  Engine engine{EngineOptions{}};
  PluginFinding f = throttle("node-1", 2);
  f.severity = PluginSeverity::kError;
  Input input = FindingInput{f, "plugin/gpu_health", 12, {}};
  engine.step({&input, 1}, kNoTime);
  const Report report = engine.report();
  BOOST_REQUIRE(report.diagnoses.size() == 1u);
  BOOST_TEST(report.diagnoses[0].detector.value_or("") == "plugin:gpu_health");
  BOOST_TEST(report.diagnoses[0].hosts.at(0).host.value_or("") == "node-1");
}

BOOST_AUTO_TEST_CASE(the_trouble_of_a_plugin_itself_is_a_problem_and_accuses_no_host) {
  Engine engine{EngineOptions{}};
  PluginFinding f = throttle("node-1", 2);
  f.id = "culprit.plugin.crashed";
  f.text = "plugin gpu_health: ended by signal 11";
  f.severity = PluginSeverity::kError;
  Input input = FindingInput{f, "plugin/gpu_health", 12, {}};
  engine.step({&input, 1}, kNoTime);
  const Report report = engine.report();
  BOOST_TEST(report.diagnoses.empty());
  BOOST_TEST(report.suspects.empty());
  BOOST_REQUIRE(report.problems.size() == 1u);
  BOOST_TEST(report.problems[0].what == f.text);
  BOOST_TEST((report.problems[0].about == About::kCulprit));
}

BOOST_AUTO_TEST_CASE(what_is_over_is_no_fault_but_may_explain) {
  const PluginFinding raised = error_at("node-1", kAt, PluginState::kRaised);
  const PluginFinding cleared = error_at("node-1", kAt + 60 * kNsPerSecond, PluginState::kCleared);
  const Finding over = given({raised, cleared}).at(0);
  BOOST_TEST((over.kind == FindingKind::kSupport));
  BOOST_TEST(over.why.at(0).ends_with("it was over after " + format_duration(60 * kNsPerSecond)));
  BOOST_TEST(joined({raised, cleared}, slow_rank("node-1", 2, kAt)) != "");
  BOOST_TEST((given({raised, cleared, raised}).at(0).kind == FindingKind::kFault));
  // The job had ended before the state did.
  const JobScope ended = scope_of(kAt - kNsPerSecond, kAt + kNsPerSecond);
  BOOST_TEST((given({raised, cleared}, ended).at(0).kind == FindingKind::kFault));
}

BOOST_AUTO_TEST_CASE(what_lies_outside_of_the_job_says_nothing_of_it) {
  constexpr TimeNs kHour = 3600 * kNsPerSecond;
  const JobScope job = scope_of(kAt, kAt + kHour);
  const auto count = [&](TimeNs at, PluginState state) {
    return given({error_at("node-1", at, state)}, job).size();
  };
  BOOST_TEST(count(kAt - kHour, PluginState::kHappened) == 0u);
  BOOST_TEST(count(kAt - kHour, PluginState::kRaised) == 1u);  // it stands
  BOOST_TEST(count(kAt + kHour / 2, PluginState::kHappened) == 1u);
  BOOST_TEST(count(kAt + 3 * kHour, PluginState::kRaised) == 0u);
  JobScope hosts;
  hosts.add_host("node-2.cluster.local");
  BOOST_TEST(given({error_at("node-1", kAt, PluginState::kRaised)}, hosts).empty());
  BOOST_TEST(given({error_at("node-2", kAt, PluginState::kRaised)}, hosts).size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_plugin_that_forgot_its_states_ends_them) {
  PluginFindings plugins;
  plugins.add({error_at("node-1", kAt, PluginState::kRaised), "", 0});
  plugins.add({error_at("node-2", kAt, PluginState::kRaised), "", 0});
  PluginFinding forgot = error_at("node-1", kAt + kNsPerSecond, PluginState::kHappened);
  forgot.id = "culprit.plugin.forgot";
  plugins.forget({forgot, "", 0});
  for (const Finding& f : findings_of(plugins))
    BOOST_TEST((f.last_ns == kNoTime) == (f.subjects.at(0).host == "node-2"));
}

BOOST_AUTO_TEST_CASE(a_fault_that_a_job_may_survive_gives_way_to_what_was_measured) {
  BOOST_TEST(given({error_at("node-1", kAt, PluginState::kRaised)}).at(0).general);
  PluginFinding f = error_at("node-1", kAt, PluginState::kRaised);
  f.confidence = 0.4;
  BOOST_TEST((given({f}).at(0).kind == FindingKind::kSupport));
  f.confidence = 0.9;
  f.severity = PluginSeverity::kFatal;
  BOOST_TEST(!given({f}).at(0).general);
}

BOOST_AUTO_TEST_CASE(only_the_strongest_warning_of_a_host_has_weight) {
  std::vector<PluginFinding> warnings;
  for (const char* id : {"a", "b", "c", "d"}) {
    warnings.push_back(throttle("node-1", 2));
    warnings.back().id = id;
    warnings.back().confidence = id[0] == 'c' ? 0.9 : 0.7;
  }
  warnings.push_back(throttle("node-2", 2));
  std::vector<Finding> all = given(warnings);
  join_causes(all);
  std::vector<std::string> weighty;
  for (const Finding& f : all)
    if (f.subjects[0].strength > 0) weighty.push_back(f.id + " " + *f.subjects[0].host);
  BOOST_TEST(weighty == (std::vector<std::string>{"c node-1", "gpu.thermal_throttle node-2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_fault_of_a_rule_keeps_its_title_and_gains_the_plugins_evidence) {
  Finding xid = slow_rank("node-1", 2, kAt);
  xid.detector = DetectorKind::kNone;
  xid.rule = "gpu.xid";
  xid.symptom = Symptom::kCrash;
  xid.action = ActionKind::kIsolate;
  PluginFinding f = error_at("node-1", kAt, PluginState::kHappened);
  f.action = "check";
  f.symptom = "crash";
  std::vector<Finding> all = given({f});
  all.push_back(xid);
  join_causes(all);
  BOOST_REQUIRE(all.size() == 1u);
  BOOST_TEST(all[0].rule == "gpu.xid");
  BOOST_TEST(all[0].title == xid.title);
  BOOST_TEST((all[0].action == ActionKind::kIsolate));
  BOOST_TEST(all[0].confidence > xid.confidence);
  BOOST_TEST(all[0].evidence.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_agent_that_speaks_of_another_host_makes_a_claim) {
  PluginFindings plugins;
  plugins.add({error_at("node-1", kAt, PluginState::kRaised), "", 0, {}, "node-9"});
  plugins.add({error_at("node-1", kAt, PluginState::kRaised), "", 0, {}, "node-1"});
  std::vector<std::vector<std::string>> output;
  for (const Finding& f : findings_of(plugins)) output.push_back(f.said_by.hosts);
  BOOST_REQUIRE(output.size() == 2u);
  BOOST_TEST(output[0].empty());
  BOOST_TEST(output[1] == std::vector<std::string>{"node-9"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_user_fills_neither_memory_nor_the_place_of_others) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  for (size_t i = 0; i < limits::kPluginSubjectsOfUser + 10; ++i) {
    f.id = std::to_string(i);
    plugins.add({f, "trace.sock", 0, 12002});
  }
  BOOST_TEST(plugins.dropped() == 10u);
  plugins.add({f, "plugin/gpu_health", 0, {}});
  BOOST_TEST(plugins.dropped() == 10u);
  for (const Finding& one : findings_of(plugins))
    if (!one.said_by.uids.empty()) BOOST_REQUIRE(one.subjects.at(0).strength == 0);
}

// A job may have as many from each of several users, and a host 64 jobs: every report is copied to events,
// records and alerts.
BOOST_AUTO_TEST_CASE(a_report_of_a_users_long_texts_stays_small) {
  Engine engine{EngineOptions{}};
  PluginFinding f = error_at("node-1", kAt, PluginState::kHappened);
  f.severity = PluginSeverity::kFatal;
  for (size_t i = 0; i < limits::kPluginSubjectsOfUser; ++i) {
    f.id = "fault." + std::to_string(i);
    f.text = f.id + std::string(limits::kEvidenceText, 'z');
    f.plugin = std::string(limits::kEvidenceText, 'p');
    Input input = FindingInput{f, "trace.sock", 0, 12002, "node-1"};
    engine.step({&input, 1}, kNoTime);
  }
  const Report report = engine.report();
  BOOST_REQUIRE(!report.diagnoses.empty());
  size_t bytes = 0;
  for (const Diagnosis& d : report.diagnoses) {
    for (const std::string& why : d.why) bytes += why.size();
    for (const Evidence& e : d.evidence) bytes += e.text.size();
    for (const Suspect& host : d.hosts)
      for (const std::string& why : host.why) bytes += why.size();
  }
  BOOST_TEST(bytes < 256u << 10);
  BOOST_TEST(report.diagnoses[0].evidence.at(0).text.size() >= limits::kEvidenceText - 3,
             "the first is whole");
}

BOOST_AUTO_TEST_CASE(a_report_of_thousands_of_findings_stays_short) {
  Engine engine{EngineOptions{}};
  PluginFinding f = error_at("node-1", kAt, PluginState::kRaised);
  for (int i = 0; i < 3000; ++i) {
    f.id = "fault." + std::to_string(i);
    Input input = FindingInput{f, "plugin/gpu_health", 0, {}, "node-1"};
    engine.step({&input, 1}, kNoTime);
  }
  const Report report = engine.report();
  BOOST_REQUIRE(report.suspects.size() == 1u);
  BOOST_TEST(report.suspects[0].why.size() <= 32u);
  BOOST_TEST(report.diagnoses.size() <= 64u);
  for (const Diagnosis& d : report.diagnoses)
    for (const Suspect& host : d.hosts) BOOST_REQUIRE(host.why.size() <= 32u);
}

BOOST_AUTO_TEST_CASE(the_evidence_names_the_part_and_the_values) {
  PluginFinding f = throttle("node-1", 2);
  f.part = "mlx5_0/1";
  f.values = {{"rate", 2.5}, {"limit", 1}};
  const Finding found = given({f}).at(0);
  BOOST_TEST(found.evidence.at(0).text == "mlx5_0/1: GPU 2 slows itself at 92 C (rate=2.5, limit=1)");
  BOOST_TEST(found.why.at(0) == "plugin gpu_health: mlx5_0/1: GPU 2 slows itself at 92 C");
}

BOOST_AUTO_TEST_SUITE_END()
