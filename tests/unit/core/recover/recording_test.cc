// The record of the controller's inputs, and its replay.
#include "core/recover/recording.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

// A controller whose steps are recorded.
struct RecordedController {
  explicit RecordedController(ControllerOptions options = acting()) : c(options) {
    lines = {recorder.header(kStart, 1), recorder.start(options, kNoTime)};
  }
  std::vector<Order> give(std::vector<Input> inputs) {
    std::vector<Order> orders = c.step(inputs, now);
    lines.push_back(recorder.step(inputs, now, orders));
    return orders;
  }

  InputRecorder recorder;
  Controller c;
  std::vector<std::string> lines;
  TimeNs now = kStart + kHour;
};

const ScheduledJob kRecordedJob = job_named("4711");

// One of each kind, no member as a fresh one has it.
std::vector<Input> one_of_each_kind() {
  ControllerOptions options = acting(Mode::kAsk);
  options.policy.cause_share = 0.125;
  options.guard.partitions["train"].check = true;
  options.origins.kernel_files = {"/dev/kmsg", "/var/log/kern.log"};
  AttemptStarted started;
  started.job = kRecordedJob;
  started.hosts = {"n1", "n2"};
  started.from_iteration = 7;
  JobMeans means;
  means.job = kRecordedJob;
  means.means = {3, true, true, 5, 0.1, true};
  means.eligible = 9;
  means.checkpoint = false;
  VerdictSeen verdict;
  verdict.job = kRecordedJob;
  verdict.diagnosis = gpu_lost("n1", kStart);
  verdict.diagnosis.confidence = 0.8512345;
  verdict.diagnosis.evidence[0].uid = Principal(1000);
  verdict.also.peers = 2;
  verdict.step_share = 1.0 / 3;
  HostSeen host;
  host.host = "n1";
  host.out = true;
  host.boot_ns = kStart;
  ActionResult result;
  result.op = "00112233445566aa";
  result.state = ActionState::kSuperseded;
  result.hosts = {"n2"};
  Restored restored;
  restored.read = {{"00112233445566aa", true, false}};
  AttemptEnded ended;
  ended.job = kRecordedJob;
  ended.end = JobEnd::kNodeFailed;
  ended.failed_hosts = {"n1"};
  ActionRecord isolation;
  isolation.order.op = "00112233445566ab";
  isolation.order.target = "n1";
  MachineRecord machine;
  machine.host = "n1";
  machine.last_ns = kStart;
  AttemptRecord attempt;
  attempt.job = job_named("12");
  attempt.attempt = 3;
  attempt.declined = "root";
  return {
      options,
      ClusterSeen{12},
      started,
      means,
      verdict,
      SuspectsSeen{kRecordedJob, {"n1"}, true, "no progress"},
      ProgressSeen{kRecordedJob, 77, true},
      ended,
      JobChanged{kRecordedJob, ForeignKind::kHeld, "ann"},
      host,
      HostChecked{"n1", CheckAnswer::kNoAnswer, "busy"},
      result,
      Approval{"d-0001", true, "ann"},
      BreakerReset{"ann", kStart},
      Undo{"00112233445566aa", "ann"},
      restored,
      Tick{},
      HostRepaired{"n1", "ann"},
      AdviceSeen{kRecordedJob, 7, AdviceKind::kRollback, AdviceOutcome::kRefused, 4, 120, "no checkpoint"},
      LedgerSeen{{isolation}, {machine}},
      JobAdopted{attempt.job, {attempt}, {isolation}}};
}

Replayed replayed(const std::vector<std::string>& lines,
                  std::function<void(ControllerOptions&)> change = {}) {
  Replayer replayer({}, std::move(change));
  for (const std::string& line : lines) {
    const Status status = replayer.line(line);
    BOOST_TEST(status.has_value(), (status ? "" : status.error().text));
    if (!status) break;
  }
  return replayer.result();
}

RecordedController an_incident() {
  RecordedController r;
  r.give({ClusterSeen{1200}, AttemptStarted{kRecordedJob, {"n1", "n2", "n3"}, "train", {}, ""}});
  VerdictSeen verdict;
  verdict.job = kRecordedJob;
  verdict.diagnosis = gpu_lost("n1", r.now);
  std::vector<Order> orders = r.give({verdict});
  for (int round = 0; round < 3; ++round) {
    std::vector<Input> results;
    for (const Order& order : orders)
      if (const auto* action = std::get_if<ActionOrder>(&order))
        results.push_back(ActionResult{action->op, ActionState::kDone, "", {}, r.now, {}});
    r.now += kMin;
    orders = r.give(results);
  }
  return r;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_kind_of_input_is_recorded_and_read_as_it_was) {
  const std::vector<Input> all = one_of_each_kind();
  BOOST_TEST(all.size() == std::variant_size_v<Input>);
  for (size_t i = 0; i < all.size(); ++i) BOOST_TEST(all[i].index() == i);
  RecordedController r;
  r.give(all);
  const Replayed first = replayed(r.lines);
  BOOST_TEST(first.different == 0u, first.first_difference);
  BOOST_TEST(first.inputs == all.size());
  for (const char* part : {"0.8512345", "0.3333333333333333", "\"uid\\\":1000", "\"boot_ns\":",
                           "\"cause_share\":0.125", "\"change\":\"held\"", "\"answer\":\"no-answer\"",
                           "\"mark_present\":true", "\\\"declined\\\":\\\"root\\\""})
    BOOST_TEST(r.lines.back().find(part) != std::string::npos, part);
}

BOOST_AUTO_TEST_CASE(a_recorded_incident_replays_to_the_same_orders) {
  const RecordedController r = an_incident();
  const Replayed result = replayed(r.lines);
  BOOST_TEST(result.different == 0u, result.first_difference);
  BOOST_TEST(result.orders == 3u);  // isolate, run again, verify
  BOOST_TEST(result.incomplete == "");
}

BOOST_AUTO_TEST_CASE(another_policy_shows_the_first_difference) {
  const RecordedController r = an_incident();
  const Replayed result = replayed(r.lines, [](ControllerOptions& o) { o.policy.isolate_confidence = 0.99; });
  BOOST_TEST(result.different > 0u);
  BOOST_TEST(result.first_difference.find("step 2: recorded isolate n1") != std::string::npos,
             result.first_difference);
}

BOOST_AUTO_TEST_CASE(rows_of_the_ledger_come_before_the_steps) {
  Cluster k;
  k.start(kRecordedJob);
  k.verdict(kRecordedJob, gpu_lost("n1", k.now), false);
  k.all_done();
  RecordedController r;
  for (const auto& [op, row] : k.stored_actions) {
    r.lines.push_back(r.recorder.row(row));
    BOOST_TEST(r.c.load(ActionRecord(row)));
  }
  for (const auto& [key, row] : k.stored_attempts) {
    r.lines.push_back(r.recorder.row(row));
    BOOST_TEST(r.c.load(AttemptRecord(row)));
  }
  for (const auto& [host, row] : k.stored_machines) {
    r.lines.push_back(r.recorder.row(row));
    r.c.load(MachineRecord(row));
  }
  r.now = k.now + kMin;
  r.give({Restored{}});
  VerdictSeen verdict;
  verdict.job = job_named("9");
  verdict.diagnosis = gpu_lost("n2", r.now);
  r.give({AttemptStarted{verdict.job, {"n2", "n3"}, "", {}, ""}, verdict});
  const Replayed result = replayed(r.lines);
  BOOST_TEST(result.different == 0u, result.first_difference);
  BOOST_TEST(result.orders == 1u);
}

// A view of the scheduler comes each few seconds, and is mostly the same.
BOOST_AUTO_TEST_CASE(a_view_that_repeats_costs_a_short_line) {
  RecordedController r;
  std::vector<Input> view;
  for (int i = 0; i < 1000; ++i) {
    HostSeen host;
    host.host = fmt::format("n{}", i);
    host.read_ns = r.now;
    view.push_back(host);
  }
  r.give(view);
  const size_t whole = r.lines.back().size();
  r.now += kMin;
  for (Input& input : view) std::get<HostSeen>(input).read_ns = r.now;
  r.give(view);
  BOOST_TEST(r.lines.back().size() < 200u);
  BOOST_TEST(whole > 50'000u);
  std::get<HostSeen>(view[7]).out = true;
  r.give(view);
  BOOST_TEST(r.lines.back().size() > 50'000u);
  const Replayed result = replayed(r.lines);
  BOOST_TEST(result.different == 0u, result.first_difference);
  BOOST_TEST(result.inputs == 3000u);
}

BOOST_AUTO_TEST_CASE(a_torn_line_and_a_gap_are_told) {
  RecordedController r = an_incident();
  Replayer torn;
  for (const std::string& line : r.lines) BOOST_TEST(torn.line(line).has_value());
  torn.torn();
  BOOST_TEST(torn.result().different == 0u);
  BOOST_TEST(torn.result().incomplete.find("torn") != std::string::npos);
  r.lines.push_back(r.recorder.gap("the disk failed"));
  BOOST_TEST(replayed(r.lines).incomplete == "the disk failed");
}

BOOST_AUTO_TEST_CASE(a_part_needs_the_parts_before_it) {
  InputRecorder recorder;
  Replayer replayer;
  BOOST_TEST(!replayer.line(recorder.header(kStart, 2)).has_value());
  RecordedController r = an_incident();
  r.lines.push_back(r.recorder.header(kStart, 2));
  r.give({Tick{}});
  BOOST_TEST(replayed(r.lines).different == 0u);
  Replayer other;
  for (const std::string& line : an_incident().lines) BOOST_TEST(other.line(line).has_value());
  BOOST_TEST(!other.line(recorder.header(kStart + 1, 2)).has_value());
}

BOOST_AUTO_TEST_CASE(hostile_lines_end_a_replay_with_a_sentence) {
  const RecordedController r = an_incident();
  const std::string head = r.lines[0], start = r.lines[1];
  const std::string deep(100'000, '[');
  const std::vector<std::vector<std::string>> bad = {
      {""},
      {"{}"},
      {"[1]"},
      {deep},
      {std::string(kRecordedLine + 1, 'x')},
      {R"({"schema":"culprit.recover.inputs/2","began_ns":1,"part":1})"},
      {R"({"schema":"culprit.recover.inputs/1"})"},
      {start},
      {head, R"({"at_ns":1,"inputs":[],"orders":[]})"},
      {head, R"({"start":{"kind":"tick"}})"},
      {head, R"({"start":7})"},
      {head, start, R"({"at_ns":"x","inputs":[],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[],"orders":7})"},
      {head, start, R"({"at_ns":1,"inputs":[7],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[{"kind":7}],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[{"kind":"more"}],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[{"kind":"cluster","hosts":-1}],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[{"kind":"host","again":true}],"orders":[]})"},
      {head, start, R"({"at_ns":1,"inputs":[{"kind":7,"again":true}],"orders":[]})"},
      {head, start, R"({"action":{"op":7}})"},
      {head, start, R"({"other":{}})"}};
  for (const auto& lines : bad) {
    Replayer replayer;
    bool refused = false;
    for (const std::string& line : lines) {
      const Status status = replayer.line(line);
      refused = !status;
      if (!status) BOOST_TEST(!status.error().text.empty());
    }
    BOOST_TEST(refused, lines.back().substr(0, 80));
  }
}
