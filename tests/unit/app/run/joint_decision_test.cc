// One decision for all hosts of an attempt.
#include "app/run/joint_decision.h"

#include <fmt/ranges.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

namespace culprit::app {
namespace {

constexpr TimeNs kSecond = kNsPerSecond;

struct JointDecisionCase {
  const char* what;
  Restart restart;  // what the logs say; kUnknown: they say nothing
  const char* accused;
  std::vector<std::string> ended, failed, spares, stuck;  // the attempt ran on n1, n2 and n3
  const char* wanted;                                     // hosts of the next attempt, or why there is none
};
std::ostream& operator<<(std::ostream& out, const JointDecisionCase& c) { return out << c.what; }

using enum Restart;
const JointDecisionCase kJointDecisionCases[] = {
    {"all ended well", kUnknown, "", {"n1", "n2", "n3"}, {}, {}, {}, ""},
    {"a fault that may not come again", kSame, "", {"n1", "n3"}, {"n2"}, {}, {}, "n1 n2 n3"},
    {"a spare is not used without need", kSame, "", {"n1", "n3"}, {"n2"}, {"n4"}, {}, "n1 n2 n3"},
    {"a mistake of the program",
     kNever,
     "",
     {"n1", "n3"},
     {"n2"},
     {"n4"},
     {},
     "not started again: the same will happen again"},
    {"a host's hardware", kElsewhere, "n2", {"n1", "n3"}, {"n2"}, {"n4"}, {}, "n1 n4 n3"},
    {"a host's hardware, no spare",
     kElsewhere,
     "n2",
     {"n1", "n3"},
     {"n2"},
     {},
     {},
     "not started again here: it must run without n2"},
    {"hardware of no host of the attempt", kElsewhere, "n9", {"n1", "n3"}, {"n2"}, {"n4"}, {}, "n1 n2 n3"},
    {"a host that gives no answer", kUnknown, "", {"n1"}, {"n2"}, {"n4"}, {}, "n1 n2 n4"},
    {"a host that gives no answer, no spare",
     kUnknown,
     "",
     {"n1"},
     {"n2"},
     {},
     {},
     "not started again here: it must run without n3"},
    {"one accused, another one silent", kElsewhere, "n1", {}, {"n1", "n2"}, {"n4", "n5"}, {}, "n4 n2 n5"},
    {"one accused, another one silent, one spare",
     kElsewhere,
     "n1",
     {},
     {"n1", "n2"},
     {"n4"},
     {},
     "not started again here: it must run without n1"},
    {"one silent, the cause is elsewhere, no spare",
     kSame,
     "",
     {"n1"},
     {"n2"},
     {},
     {},
     "not started again: it must run without n3, and no spare host is left"},
    {"a process that cannot be ended", kSame, "", {"n1", "n3"}, {"n2"}, {"n4"}, {"n2"}, "n1 n4 n3"},
};

Report report_of(Restart kind, const std::string& host) {
  Report r;
  Diagnosis& d = r.diagnoses.emplace_back();
  d.rule = "a.b";
  d.title = "A title";
  d.confidence = 0.9;
  d.restart = {kind, true, "why", {}, {}};
  if (!host.empty()) d.restart.hosts = {host};
  r.verdict = 0;
  return r;
}

MemberRecord record(const std::string& host, int status, bool spare = false) {
  MemberRecord out;
  out.host = host;
  out.status = status;
  out.spare = spare;
  out.port = static_cast<uint16_t>(1000 + (host[1] - '0'));
  out.begin_ns = 100 * kSecond, out.end_ns = 200 * kSecond;
  return out;
}

JointFacts facts_of(const JointDecisionCase& c) {
  JointFacts f;
  f.by = "n1";
  f.plan.hosts = {"n1", "n2", "n3"};
  for (const std::string& host : c.ended) f.ends[host] = record(host, 0);
  for (const std::string& host : c.failed) f.ends[host] = record(host, 7);
  for (const std::string& host : c.spares) f.ends[host] = record(host, 0, true);
  for (const std::string& host : c.stuck) f.ends[host].stuck = "python (17) cannot be ended";
  if (c.restart != kUnknown) f.report = report_of(c.restart, c.accused);
  f.now = 300 * kSecond;
  return f;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(joint_decision)

BOOST_DATA_TEST_CASE(the_hosts_of_the_next_attempt_follow_from_what_all_report,
                     boost::unit_test::data::make(kJointDecisionCases)) {
  const AgreedDecision d = decide_jointly(facts_of(sample));
  BOOST_TEST(d.attempt.decision.again == !d.next.hosts.empty());
  const std::string hosts = fmt::format("{}", fmt::join(d.next.hosts, " "));
  BOOST_TEST((d.attempt.decision.again ? hosts : d.attempt.decision.why) == sample.wanted);
  BOOST_TEST(agreed_decision(to_json(d)).has_value());
}

BOOST_AUTO_TEST_CASE(the_next_attempt_has_the_number_and_a_port_of_its_master) {
  JointDecisionCase c = kJointDecisionCases[4];
  c.accused = "n1", c.ended = {"n2", "n3"}, c.failed = {"n1"};
  const AgreedDecision d = decide_jointly(facts_of(c));
  BOOST_TEST(d.next.attempt == 2);
  BOOST_TEST(d.next.hosts.front() == "n4");
  BOOST_TEST(d.next.port == 1004);
  BOOST_TEST(d.next.left == 2);
  BOOST_TEST(d.attempt.status == 7);
  BOOST_TEST((d.attempt.failure.advice.hosts == std::vector<std::string>{"n1"}));
}

BOOST_AUTO_TEST_CASE(a_signal_from_outside_ends_the_job_without_a_word) {
  JointFacts f = facts_of(kJointDecisionCases[1]);
  f.ends["n2"].interrupted = true;
  const AgreedDecision d = decide_jointly(f);
  BOOST_TEST(d.interrupted);
  BOOST_TEST(!d.attempt.decision.again);
  BOOST_TEST(d.attempt.decision.why.empty());
}

BOOST_AUTO_TEST_CASE(a_host_runs_without_its_failed_gpu_while_enough_remain) {
  JointFacts f = facts_of(kJointDecisionCases[5]);  // its hardware failed, and there is no spare
  f.plan.hosts = {"n1", "n2", "n3"};
  f.report->diagnoses[0].restart.devices = {"GPU 1"};
  f.ends["n2"].gpus = {"CUDA_VISIBLE_DEVICES", {{"GPU-a", "", ""}, {"GPU-b", "", ""}}, true};
  BOOST_TEST(!decide_jointly(f).attempt.decision.again);
  f.min_gpus = 2;
  BOOST_TEST(!decide_jointly(f).attempt.decision.again);
  f.min_gpus = 1;
  const AgreedDecision d = decide_jointly(f);
  BOOST_TEST(d.attempt.decision.again);
  BOOST_TEST(fmt::format("{}", fmt::join(d.next.hosts, " ")) == "n1 n2 n3");
  BOOST_TEST((d.next.without == std::vector<std::string>{"GPU-b"}));
}

BOOST_AUTO_TEST_CASE(the_next_attempt_waits_for_a_service_that_was_away) {
  JointFacts f = facts_of(kJointDecisionCases[1]);
  f.services = {{"hub.example", 443, ""}};
  BOOST_TEST(decide_jointly(f).services.empty());
  f.report->diagnoses[0].restart.kind = kLater;
  const AgreedDecision d = decide_jointly(f);
  BOOST_TEST(d.attempt.decision.probe);
  BOOST_TEST((d.services == f.services));
}

BOOST_AUTO_TEST_CASE(the_first_status_is_by_the_clock_of_the_shared_folder) {
  JointFacts f = facts_of(kJointDecisionCases[1]);
  f.ends["n1"] = record("n1", 9);
  f.ends["n1"].end_ns = 150 * kSecond;  // its clock is late
  f.ends["n1"].shared_end_ns = 205 * kSecond, f.ends["n2"].shared_end_ns = 200 * kSecond;
  BOOST_TEST(decide_jointly(f).attempt.status == 7);
}

BOOST_AUTO_TEST_CASE(a_newer_checkpoint_is_progress_and_the_same_one_is_none) {
  JointFacts f = facts_of(kJointDecisionCases[1]);
  f.plan.resume_step = 10;
  f.saved_step = 20;
  BOOST_TEST((decide_jointly(f).attempt.failure.progress == recover::Progress::kMade));
  f.saved_step = 10;
  BOOST_TEST((decide_jointly(f).attempt.failure.progress == recover::Progress::kNone));
  f.saved_step.reset();
  BOOST_TEST((decide_jointly(f).attempt.failure.progress == recover::Progress::kUnknown));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
