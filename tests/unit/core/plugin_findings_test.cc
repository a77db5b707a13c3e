#include "core/plugin_findings.h"

#include <boost/test/unit_test.hpp>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

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

std::vector<Finding> given(std::vector<PluginFinding> all) {
  PluginFindings plugins;
  for (PluginFinding& f : all) plugins.add({std::move(f), "plugin/gpu_health", 0, {}});
  logs::JobLog log{JobFile{}};
  log.settle();
  return plugins.findings(detect::make_view(log), JobFile{});
}

std::string joined(const std::vector<PluginFinding>& causes, Finding effect) {
  std::vector<Finding> all = given(causes);
  all.push_back(std::move(effect));
  join_plugins(all);
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
  BOOST_TEST(joined({throttle("node-1", 2)}, slow_rank("node-1", 2, kAt)) == "A GPU is slowed by heat");
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
  join_plugins(all);
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
  BOOST_TEST(urgent->said_by.uids == std::vector<uint32_t>{12002});
}

BOOST_AUTO_TEST_CASE(a_user_neither_clears_nor_takes_over_what_the_daemon_found) {
  PluginFindings plugins;
  PluginFinding f = throttle("node-1", 2);
  f.severity = PluginSeverity::kError;
  plugins.add({f, "trace.sock", 0, 12002});
  BOOST_TEST(plugins.add({f, "plugin/gpu_health", 0, {}}).has_value());
  f.state = PluginState::kCleared;
  plugins.add({f, "trace.sock", 0, 12002});
  logs::JobLog log{JobFile{}};
  log.settle();
  const auto all = plugins.findings(detect::make_view(log), JobFile{});
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
  logs::JobLog log{JobFile{}};
  log.settle();
  std::vector<Finding> all = plugins.findings(detect::make_view(log), JobFile{});
  all.push_back(slow_rank("node-1", 2, kAt));
  join_plugins(all);
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
}

BOOST_AUTO_TEST_SUITE_END()
