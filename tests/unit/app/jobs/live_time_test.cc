// Behaviour over time: hangs, ends, runs, restarts, reloads. The clock is a number.
#include <boost/test/unit_test.hpp>

#include "live_feed.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs s(int64_t seconds) { return kStart + seconds * kNsPerSecond; }

// A job that iterates for a minute, once a second, with ticks.
StreamId run_a_minute(LiveJobs& jobs, Feed& feed, const std::string& job = "j") {
  const StreamId log = feed.open(OriginKind::kFile, job, "/logs/" + job + ".log");
  for (int64_t i = 0; i < 60; ++i) {
    feed.write(log, step_line(i), s(i));
    jobs.tick(s(i));
  }
  return log;
}

void tick(LiveJobs& jobs, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) jobs.tick(s(i));
}

bool hangs(LiveJobs& jobs) { return jobs.jobs().at(0).hangs; }

std::string rule_text(const std::string& id, const std::string& word) {
  return fmt::format(
      "rule {{ id = \"{}\", engine = 1, title = \"{} was said\", category = \"user\", component = "
      "\"user_code\", severity = \"fatal\", source = {{ \"log\", \"event\" }}, match = {{ template = \"{} "
      "<what>\" }}, role = \"root\", remedy = \"None.\", action = \"fix\", examples = {{ hit = {{ \"{} x\" "
      "}}, "
      "miss = {{ \"nothing\" }} }} }}\n",
      id, word, word, word);
}

std::shared_ptr<rules::Ruleset> own_rules(const std::string& id, const std::string& word) {
  const std::string text = rule_text(id, word);
  const std::vector<rules::RuleText> files = {{"own.lua", text}};
  auto set = rules::Ruleset::load(files);
  BOOST_REQUIRE_MESSAGE(set, (set ? "" : set.error()[0].what));
  return *set;
}

std::string output(const std::string& word, int64_t at) { return clock(s(at)) + " ERROR " + word + " it\n"; }

}  // namespace

BOOST_AUTO_TEST_SUITE(live_time)

BOOST_AUTO_TEST_CASE(a_stop_shows_where_all_steps_came_at_once_with_one_time) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  std::string block;
  for (int step = 0; step < 10; ++step) block += fmt::format("{} INFO step={} loss=2.5\n", clock(s(9)), step);
  feed.write(log, block, s(10));
  jobs.tick(s(200));
  BOOST_TEST(report_of(jobs, "j", s(200)).find("makes no progress") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_hang_is_reported_after_a_minute_and_taken_back_with_progress) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  tick(jobs, 60, 119);
  BOOST_TEST(!hangs(jobs));
  jobs.poll_events();
  tick(jobs, 119, 128);
  auto events = published(jobs.poll_events());
  const LiveEvent* reported = first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(reported);
  BOOST_TEST(to_json(*reported).find("\"symptom\":\"hang\"") != std::string::npos, to_json(*reported));
  BOOST_TEST(to_json(*reported).find("step=59") != std::string::npos, "its last progress is quoted");
  const std::string report = report_of(jobs, "j", s(122));
  BOOST_TEST(report.find(fmt::format("\"hang\":{{\"since_ns\":{}", s(59))) != std::string::npos, report);
  tick(jobs, 128, 200);
  BOOST_TEST(jobs.poll_events().empty(), "reported once");
  feed.write(log, step_line(60), s(200));
  jobs.tick(s(200));
  BOOST_TEST(published(jobs.poll_events()).empty(), "it settles");
  tick(jobs, 201, 207);
  events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kDiagnosisWithdrawn) == 1u);
  BOOST_TEST(!hangs(jobs));
}

BOOST_AUTO_TEST_CASE(a_hang_asks_for_stacks_while_it_lasts) {
  LiveOptions options = live_options();
  options.capture = {3, 10 * kNsPerSecond};
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  std::vector<uint32_t> samples;
  const auto pass = [&](int64_t from, int64_t to) {
    tick(jobs, from, to);
    for (const LiveEvent& event : jobs.poll_events()) {
      if (event.kind != LiveEventKind::kStacksWanted) continue;
      samples.push_back(event.stacks.sample);
      BOOST_TEST(event.here);
      BOOST_TEST(event.job == "j");
    }
  };
  pass(60, 118);
  BOOST_TEST(samples.empty(), "it does not hang yet");
  pass(118, 130);
  BOOST_TEST(samples.size() == 1u, "at once");
  pass(130, 200);
  BOOST_TEST(samples == (std::vector<uint32_t>{1, 2, 3}), boost::test_tools::per_element());
  feed.write(log, step_line(60), s(200));
  pass(200, 250);
  BOOST_TEST(samples.size() == 3u, "it goes on");
}

BOOST_AUTO_TEST_CASE(a_hang_is_told_to_ras_where_no_stacks_may_be_taken) {
  LiveOptions options = live_options();
  options.capture = {3, 10 * kNsPerSecond};
  options.capture.stacks = false;
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  run_a_minute(jobs, feed);
  tick(jobs, 60, 130);
  const auto events = jobs.poll_events();
  const LiveEvent* asked = first(events, LiveEventKind::kStacksWanted);
  BOOST_REQUIRE(asked);
  BOOST_TEST(asked->stacks.ras_only);
  BOOST_TEST(!asked->stacks.moves);
  const auto order = jobs.order_capture("j", 1, s(131));
  BOOST_REQUIRE(!order);
  BOOST_TEST((order.error().code == ErrorCode::kDenied));
}

BOOST_AUTO_TEST_CASE(a_person_has_a_running_job_captured) {
  LiveOptions options = live_options();
  options.capture = {3, 10 * kNsPerSecond};
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  run_a_minute(jobs, feed);
  jobs.poll_events();
  BOOST_TEST((jobs.order_capture("other", 1, s(60)).error().code == ErrorCode::kNotFound));
  const auto order = jobs.order_capture("j", 2, s(60));
  BOOST_REQUIRE(order);
  BOOST_TEST((order->sample == 1u && order->rounds == 2u && order->here));
  const auto at_once = jobs.poll_events();
  const LiveEvent* asked = first(at_once, LiveEventKind::kStacksWanted);
  BOOST_REQUIRE(asked);
  BOOST_TEST(asked->stacks.moves, "its states prove nothing");
  BOOST_TEST((jobs.order_capture("j", 1, s(62)).error().code == ErrorCode::kBusy));
  tick(jobs, 60, 75);
  const auto later = jobs.poll_events();
  BOOST_REQUIRE(first(later, LiveEventKind::kStacksWanted));
  BOOST_TEST(first(later, LiveEventKind::kStacksWanted)->stacks.sample == 2u);
}

BOOST_AUTO_TEST_CASE(a_captured_line_of_another_job_is_not_this_ones) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  const StreamId b = feed.open(OriginKind::kFile, "b", "/logs/b.log");
  const StreamId captured = feed.open(OriginKind::kPlugin, "", "plugin/culprit-capture");
  feed.write(a, step_line(0), s(0));
  feed.write(b, step_line(0), s(0));
  PluginFinding f;
  f.plugin = "culprit-capture";
  f.id = "process.stopped";
  f.title = "A rank was stopped by a signal";
  f.job = "a";
  f.rank = 2;
  f.time_ns = s(10);
  f.confidence = 0.9;
  f.severity = PluginSeverity::kError;
  feed.write(captured,
             R"({"kind":"stack","job":"a","rank":2,"pid":7,"state":"T","threads":[]})"
             "\n" +
                 finding_line(f) + "\n",
             s(10));
  jobs.tick(s(20));
  for (const auto& [job, has] : {std::pair("a", true), {"b", false}})
    BOOST_TEST((report_of(jobs, job, s(21)).find("stopped by a signal") != std::string::npos) == has, job);
}

BOOST_AUTO_TEST_CASE(slow_iterations_are_given_five_of_their_own) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  for (int64_t i = 0; i < 20; ++i) {
    feed.write(log, fmt::format("{} INFO step={} loss=1\n", clock(s(i * 30)), i), s(i * 30));
    jobs.tick(s(i * 30));
  }
  tick(jobs, 571, 570 + 149);
  BOOST_TEST(!hangs(jobs));
  tick(jobs, 570 + 149, 570 + 153);
  BOOST_TEST(hangs(jobs));
}

// Megatron's lines have no time: their arrival counts.
BOOST_AUTO_TEST_CASE(a_hang_is_reported_for_lines_without_a_time) {
  for (const char* head : {"", "2026-02-09 10:00:00 "}) {  // or all lines have one time
    LiveJobs jobs(live_options());
    Feed feed(jobs);
    const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
    for (int64_t i = 0; i < 20; ++i) {
      feed.write(log, fmt::format("{} iteration {}/ 5000 | loss 2.{}\n", head, i, i % 10), s(i * 30));
      jobs.tick(s(i * 30));
    }
    tick(jobs, 571, 570 + 149);
    BOOST_TEST(!hangs(jobs), head);
    tick(jobs, 570 + 149, 570 + 153);
    BOOST_TEST(hangs(jobs), head);
  }
}

// The report of a job that failed may show who waits for whom, which is no stall.
BOOST_AUTO_TEST_CASE(a_failed_job_with_a_hang_state_is_not_reported_at_each_tick) {
  LiveOptions options = live_options();
  options.alive = [](const std::string&) { return std::optional(true); };
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  std::vector<std::string> files = failing_files();
  for (const size_t i : {0u, 1u, 3u})
    files[i] += fmt::format(
        "{0} ERROR [Rank {1}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=59, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600013 milliseconds before "
        "timing out.\n{0} ERROR [PG 0 Rank {1}] Timeout at NCCL work: 59, last enqueued NCCL work: 59, last "
        "completed NCCL work: 58.\n",
        clock(s(60)), i);
  for (size_t i = 0; i < files.size(); ++i)
    feed.write(feed.open(OriginKind::kFile, "j", fmt::format("/logs/node-{}/rank_{}.log", i, i)), files[i],
               s(61));
  tick(jobs, 61, 70);
  BOOST_REQUIRE(report_of(jobs, "j", s(70)).find("\"hang\":{") != std::string::npos);
  const uint64_t before = jobs.counts().reports;
  tick(jobs, 71, 111);  // silent for less than a minute
  BOOST_TEST(jobs.counts().reports - before <= 15u);
}

BOOST_AUTO_TEST_CASE(no_hang_in_what_was_announced_nor_after_the_end_nor_without_iterations) {
  const struct {
    const char* name;
    std::string line;  // after the last step
  } kCases[] = {
      {"checkpoint", clock(s(60)) + " INFO saving checkpoint at iteration 59 to /ckpt\n"},
      {"evaluation", clock(s(60)) + " INFO Running evaluation on the validation set\n"},
      {"compile", clock(s(60)) + " INFO torch.compile: recompiling the model\n"},
      {"end", clock(s(60)) + " INFO Training completed successfully\n"},
  };
  for (const auto& c : kCases) {
    LiveOptions options = live_options();
    options.alive = [](const std::string&) { return std::optional(true); };
    LiveJobs jobs(std::move(options));
    Feed feed(jobs);
    const StreamId log = run_a_minute(jobs, feed);
    feed.write(log, c.line, s(60));
    tick(jobs, 60, 300);
    BOOST_TEST(!hangs(jobs), c.name);
  }
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  feed.write(feed.open(OriginKind::kFile, "j", "/logs/a.log"), clock(s(0)) + " INFO hello\n", s(0));
  tick(jobs, 0, 300);
  BOOST_TEST(!hangs(jobs));
}

BOOST_AUTO_TEST_CASE(heartbeats_are_progress_and_phases_are_patience) {
  LiveOptions options = live_options();
  options.alive = [](const std::string&) { return std::optional(true); };
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/culprit/trace.sock");
  const auto beat = [&](int64_t i) {
    feed.write(socket, fmt::format("{{\"kind\":\"step\",\"rank\":0,\"step\":{}}}\n", i), s(i));
    jobs.tick(s(i));
  };
  for (int64_t i = 0; i < 60; ++i) beat(i);
  BOOST_TEST(*jobs.jobs().at(0).iteration == 59);
  feed.write(socket, "{\"kind\":\"phase\",\"name\":\"evaluation\",\"state\":\"begin\",\"rank\":0}\n", s(60));
  tick(jobs, 60, 300);
  BOOST_TEST(!hangs(jobs));
  feed.write(socket, "{\"kind\":\"phase\",\"name\":\"evaluation\",\"state\":\"end\",\"rank\":0}\n", s(300));
  tick(jobs, 300, 359);
  BOOST_TEST(!hangs(jobs));
  tick(jobs, 359, 370);
  BOOST_TEST(hangs(jobs));
  beat(371);
  BOOST_TEST(!hangs(jobs));
}

BOOST_AUTO_TEST_CASE(what_ended_well_is_learned_and_what_died_is_not) {
  for (const bool well : {true, false}) {
    LiveOptions options = live_options();
    bool alive = true;
    options.alive = [&](const std::string&) { return std::optional(alive); };
    LiveJobs jobs(std::move(options));
    Feed feed(jobs);
    const StreamId log = run_a_minute(jobs, feed);
    feed.write(log, well ? clock(s(60)) + " INFO Training completed successfully\n" : xid_line(s(60)), s(60));
    alive = false;
    jobs.tick(s(61));
    BOOST_TEST((jobs.jobs().at(0).state == JobState::kRunning));
    tick(jobs, 62, 185);
    const auto events = jobs.poll_events();
    const LiveEvent* ended = first(events, LiveEventKind::kJobEnded);
    BOOST_REQUIRE(ended);
    BOOST_TEST((std::get<JobChange>(ended->content).report != nullptr));
    BOOST_TEST(jobs.jobs().at(0).well == well);
    BOOST_TEST(count(events, LiveEventKind::kPoolChanged) == (well ? 1u : 0u));
    BOOST_TEST(jobs.pools().jobs() == (well ? 1u : 0u));
    BOOST_TEST((jobs.jobs().at(0).state == (well ? JobState::kEnded : JobState::kFailed)));
    BOOST_TEST((report_of(jobs, "j", s(300)).find("nvidia.xid.79") != std::string::npos) == !well);
  }
}

BOOST_AUTO_TEST_CASE(a_hang_stays_the_verdict_when_its_processes_are_killed) {
  LiveOptions options = live_options();
  bool alive = true;
  options.alive = [&](const std::string&) { return std::optional(alive); };
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  tick(jobs, 60, 200);
  BOOST_REQUIRE(hangs(jobs));
  alive = false;
  feed.write(log, "RuntimeError: Connection closed by peer [127.0.0.1]:16815\n", s(201));
  tick(jobs, 201, 290);
  BOOST_TEST(hangs(jobs));
  tick(jobs, 291, 400);
  BOOST_TEST((jobs.jobs().at(0).state == JobState::kFailed));
  BOOST_TEST(count(jobs.poll_events(), LiveEventKind::kDiagnosisWithdrawn) == 0u);
}

BOOST_AUTO_TEST_CASE(a_dead_job_does_not_hang) {
  LiveOptions options = live_options();
  options.alive = [](const std::string&) { return std::optional(false); };
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  run_a_minute(jobs, feed);
  tick(jobs, 60, 200);
  const auto events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kDiagnosis) == 0u);
  BOOST_TEST(count(events, LiveEventKind::kJobEnded) == 1u);
}

// A process list from before the silence shows processes that have ended since.
BOOST_AUTO_TEST_CASE(a_finished_job_does_not_hang_where_the_last_look_is_old) {
  for (const bool ended : {true, false}) {
    LiveOptions options = live_options();
    options.hang.after_ns = 10 * kNsPerSecond;
    TimeNs looked = s(59), now = s(0);
    options.looked_ns = [&] { return looked; };
    options.alive = [&](const std::string&) {
      const bool there = !ended || looked < s(61);
      if (now >= looked + 2 * kNsPerSecond && now > s(70)) looked = now;  // a request causes a new look
      return std::optional(there);
    };
    LiveJobs jobs(std::move(options));
    Feed feed(jobs);
    run_a_minute(jobs, feed);
    for (int64_t i = 60; i < 90; ++i) jobs.tick(now = s(i));
    BOOST_TEST(hangs(jobs) == !ended);
    BOOST_TEST(count(jobs.poll_events(), LiveEventKind::kDiagnosis) == (ended ? 0u : 2u));
  }
}

// Examples: the launcher's list at the end of its log, and the last words of a process within a line.
BOOST_AUTO_TEST_CASE(what_a_file_holds_at_its_end_is_judged_after_a_second) {
  const std::string list =
      "============================================================\n"
      "train.py FAILED\n"
      "------------------------------------------------------------\n"
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2026-11-21_02:01:00\n"
      "  host      : node-0\n"
      "  rank      : 0 (local_rank: 0)\n"
      "  exitcode  : -9 (pid: 1234)\n"
      "  traceback : Signal 9 (SIGKILL) received by PID 1234\n";
  std::string cut = xid_line(s(60));
  cut.pop_back();
  for (const std::string& end : {list, cut}) {
    LiveJobs jobs(live_options());
    Feed feed(jobs);
    const StreamId log = run_a_minute(jobs, feed);
    feed.write(log, end, s(60));
    jobs.poll_events();
    tick(jobs, 61, 64);
    BOOST_TEST(count(jobs.poll_events(), LiveEventKind::kFinding) > 0u, end);
  }
}

BOOST_AUTO_TEST_CASE(a_line_under_way_waits_for_its_end) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  const std::string line = step_line(60);
  feed.write(log, line.substr(0, 30), s(60));
  tick(jobs, 61, 70);
  feed.write(log, line.substr(30), s(70));
  jobs.tick(s(70));
  BOOST_TEST(jobs.counts().lines == 61u);
  BOOST_TEST(*jobs.jobs().at(0).iteration >= 59);
}

// Peers report a lost connection; a moment later the launcher names the process that died.
BOOST_AUTO_TEST_CASE(a_verdict_settles_and_what_changes_is_revised) {
  LiveOptions options = live_options();
  const std::string both = rule_text("own.a", "alpha") + rule_text("own.b", "beta");
  const std::vector<rules::RuleText> files = {{"own.lua", both}};
  options.rules = *rules::Ruleset::load(files);
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  jobs.poll_events();
  feed.write(log, output("beta", 62), s(62));
  jobs.tick(s(62));
  auto events = jobs.poll_events();
  const LiveEvent* retained = first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(retained);
  BOOST_TEST(!retained->publish);
  BOOST_TEST(to_json(*retained).find("\"settled\":false") != std::string::npos, to_json(*retained));
  BOOST_TEST(!jobs.settled("j"));
  BOOST_TEST(!jobs.jobs().at(0).verdict.has_value(), "no list shows what may change");
  feed.write(log, output("alpha", 61), s(64));
  tick(jobs, 64, 69);
  BOOST_TEST(count(published(jobs.poll_events()), LiveEventKind::kDiagnosis) == 0u);
  tick(jobs, 69, 71);
  events = published(jobs.poll_events());
  BOOST_TEST(count(events, LiveEventKind::kDiagnosis) == 2u);
  BOOST_TEST(jobs.settled("j"));
  BOOST_TEST(jobs.jobs().at(0).verdict->starts_with("alpha was said"));
  // A person reports another cause.
  for (const LiveEvent& e : events)
    if (to_json(e).find("alpha was said") != std::string::npos) jobs.judge({"j", e.id, 0, false}, s(80));
  events = published(jobs.poll_events());
  BOOST_REQUIRE(!events.empty());
  const LiveEvent& next = events[0];
  BOOST_TEST(to_json(next).find("\"change\":\"revised\",\"replaces\":{\"id\"") != std::string::npos,
             to_json(next));
  BOOST_TEST(next.sentence.starts_with("revised: beta was said"), next.sentence);
  BOOST_TEST(jobs.jobs().at(0).verdict->starts_with("beta was said"));
  BOOST_TEST(report_of(jobs, "j", s(80)).find("\"verdict\":{\"id\":\"" + next.id) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_refuted_diagnosis_leads_nothing_after_a_restart) {
  LiveJobs before(live_options());
  Feed feed(before);
  const StreamId log = run_a_minute(before, feed);
  feed.write(log, xid_line(s(60)), s(60));
  before.tick(s(60));
  const auto events = before.poll_events();
  const LiveEvent* reported = first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(reported);
  LiveJobs after(live_options());
  after.judge({"j", reported->id, 0, false}, s(61));
  after.restoring({});
  feed.replay(after);
  after.replayed(s(61));
  after.caught_up(s(61));
  BOOST_TEST(report_of(after, "j", s(61)).find("\"verdict\":null") != std::string::npos);
  BOOST_TEST(!after.jobs().at(0).verdict.has_value());
}

namespace {

// A verdict that the records of an earlier process have.
Verdict stored(const std::string& id, Symptom symptom) {
  Verdict out;
  out.job = "j";
  out.leads = true;
  out.diagnosis.id = id;
  out.diagnosis.title = out.diagnosis.headline = id;
  out.diagnosis.symptom = symptom;
  return out;
}

// The ids of what the restarted daemon withdraws in the second minute after the restart.
std::vector<std::string> withdrawn_after_restart(const Feed& feed, const std::vector<Verdict>& before,
                                                 std::optional<StreamId> lacking = {}) {
  LiveJobs after(live_options());
  after.restoring({}, before);
  feed.replay(after);
  if (lacking) after.lacks_evidence(*lacking);
  after.replayed(s(200));
  after.caught_up(s(200));
  tick(after, 200, 260);
  std::vector<std::string> out;
  for (const LiveEvent& e : after.poll_events())
    if (e.kind == LiveEventKind::kDiagnosisWithdrawn && e.publish && !e.replayed) out.push_back(e.id);
  return out;
}

}  // namespace

// The daemon was killed between the withdrawal and its record.
BOOST_AUTO_TEST_CASE(a_withdrawal_that_was_lost_is_made_again_after_a_restart) {
  LiveJobs before(live_options());
  Feed feed(before);
  const StreamId log = run_a_minute(before, feed);
  tick(before, 60, 130);
  std::string hang;
  for (const LiveEvent& e : before.poll_events())
    if (e.kind == LiveEventKind::kDiagnosis) hang = e.id;
  BOOST_REQUIRE(!hang.empty());
  const std::vector<Verdict> both = {stored("d-lost", Symptom::kCrash), stored(hang, Symptom::kHang)};
  const std::vector<std::string> lost = {"d-lost"};
  BOOST_TEST(withdrawn_after_restart(feed, both) == lost, boost::test_tools::per_element());
  // Its evidence is dropped: no report tells whether it still holds.
  BOOST_TEST(withdrawn_after_restart(feed, both, log).empty());
}

BOOST_AUTO_TEST_CASE(silence_of_a_job_whose_processes_no_one_sees_is_no_end) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  run_a_minute(jobs, feed);
  tick(jobs, 60, 1000);
  BOOST_TEST((jobs.jobs().at(0).state == JobState::kRunning));
  BOOST_TEST(hangs(jobs));
}

BOOST_AUTO_TEST_CASE(a_job_ends_by_its_own_word_and_comes_again_as_another_run) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/culprit/trace.sock");
  feed.write(socket, "{\"kind\":\"event\",\"name\":\"job_end\"}\n", s(61));
  tick(jobs, 61, 70);
  auto events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kJobEnded) == 1u);
  BOOST_TEST(count(events, LiveEventKind::kPoolChanged) == 1u, "it said so and nothing failed");
  feed.write(log, xid_line(s(80)), s(80));
  jobs.tick(s(80));
  events = jobs.poll_events();
  const LiveEvent* started = first(events, LiveEventKind::kJobStarted);
  BOOST_REQUIRE(started);
  BOOST_TEST(started->run == 1u);
  BOOST_REQUIRE(std::holds_alternative<JobChange>(started->content));
  BOOST_TEST(std::get<JobChange>(started->content).summary.first_ns == s(80), "its row tells when it began");
  const LiveEvent* finding = first(events, LiveEventKind::kFinding);
  BOOST_REQUIRE(finding);
  BOOST_TEST(to_json(*finding).find("\"line\":61") != std::string::npos,
             "lines count on: " + to_json(*finding));
}

BOOST_AUTO_TEST_CASE(an_exit_code_says_that_it_did_not_end_well) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  run_a_minute(jobs, feed);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/culprit/trace.sock");
  feed.write(socket, "{\"kind\":\"event\",\"name\":\"job_end\",\"exit_code\":1}\n", s(61));
  tick(jobs, 61, 70);
  BOOST_TEST((jobs.jobs().at(0).state == JobState::kFailed));
  BOOST_TEST(jobs.pools().jobs() == 0u);
}

BOOST_AUTO_TEST_CASE(all_streams_gone_is_an_end) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = run_a_minute(jobs, feed);
  feed.write(log, "", s(60), true);
  tick(jobs, 60, 70);
  BOOST_TEST((jobs.jobs().at(0).state == JobState::kEnded));
}

BOOST_AUTO_TEST_CASE(kernel_messages_reach_all_jobs_and_not_those_that_come_long_after) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  const StreamId b = feed.open(OriginKind::kFile, "b", "/logs/b.log");
  const StreamId c = feed.open(OriginKind::kFile, "c", "/logs/c.log");
  const StreamId d = feed.open(OriginKind::kFile, "d", "/logs/d.log");
  const StreamId kernel = feed.open(OriginKind::kKernel, "", "/dev/kmsg");
  for (const StreamId log : {a, b}) feed.write(log, step_line(0), s(0));
  // The kernel's clock was 0 a thousand seconds before the start.
  feed.write(kernel, "4,7,1010000000,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n",
             s(10));
  feed.write(c, step_line(30), s(30));
  feed.write(d, step_line(300), s(300));
  jobs.tick(s(300));
  for (const auto& [job, has] : {std::pair("a", true), {"b", true}, {"c", true}, {"d", false}})
    BOOST_TEST((report_of(jobs, job, s(301)).find("nvidia.xid.79") != std::string::npos) == has, job);
}

BOOST_AUTO_TEST_CASE(findings_of_plugins_reach_all_jobs_while_their_state_stands) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  const StreamId later = feed.open(OriginKind::kFile, "later", "/logs/b.log");
  const StreamId last = feed.open(OriginKind::kFile, "last", "/logs/c.log");
  const StreamId plugin = feed.open(OriginKind::kPlugin, "", "plugin/gpu_health");
  PluginFinding f;
  f.plugin = "gpu_health";
  f.id = "gpu.rows_remap_failed";
  f.title = "A GPU cannot replace a faulty row of its memory";
  f.device = 2;
  f.confidence = 0.9;
  f.severity = PluginSeverity::kError;
  const auto write = [&](int64_t at, PluginState state) {
    f.time_ns = s(at);
    f.state = state;
    feed.write(plugin, finding_line(f) + "\n", s(at));
  };
  feed.write(a, step_line(0), s(0));
  write(10, PluginState::kRaised);
  feed.write(later, step_line(3000), s(3000));
  write(3100, PluginState::kCleared);
  feed.write(last, step_line(6000), s(6000));
  jobs.tick(s(6000));
  for (const auto& [job, has] : {std::pair("a", true), {"later", true}, {"last", false}})
    BOOST_TEST((report_of(jobs, job, s(6001)).find("plugin:gpu_health") != std::string::npos) == has, job);
}

BOOST_AUTO_TEST_CASE(states_that_a_plugin_forgot_accuse_no_later_job) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId later = feed.open(OriginKind::kFile, "later", "/logs/b.log");
  std::map<std::string, StreamId> plugins;
  for (const char* name : {"gpu", "gpu_health"})
    plugins[name] = feed.open(OriginKind::kPlugin, "", std::string("plugin/") + name);
  const auto write = [&](const PluginFinding& f) {
    feed.write(plugins[f.plugin], finding_line(f) + "\n", f.time_ns);
  };
  for (const auto& [name, stream] : plugins) {
    PluginFinding f;
    f.plugin = name;
    f.id = "gpu.rows_remap_failed";
    f.title = "A GPU cannot replace a faulty row of its memory";
    f.device = 2;
    f.confidence = 0.9;
    f.severity = PluginSeverity::kError;
    f.state = PluginState::kRaised;
    f.time_ns = s(10);
    write(f);
  }
  write(plugin_forgot("gpu", s(20)));  // only its own
  feed.write(later, step_line(3000), s(3000));
  jobs.tick(s(3000));
  const std::string report = report_of(jobs, "later", s(3001));
  BOOST_TEST(report.find("plugin:gpu_health") != std::string::npos);
  BOOST_TEST(report.find("plugin:gpu\"") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_reload_counts_for_the_lines_that_come_after) {
  LiveOptions options = live_options();
  options.rules = own_rules("own.b", "beta");
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  feed.write(log, output("alpha", 0) + output("beta", 1), s(1));
  // Its index changed: own.a now precedes it.
  const std::string both = rule_text("own.a", "alpha") + rule_text("own.b", "beta");
  const std::vector<rules::RuleText> files = {{"own.lua", both}};
  auto set = rules::Ruleset::load(files);
  BOOST_REQUIRE(set.has_value());
  jobs.reload_rules(*set);
  std::string report = report_of(jobs, "j", s(2));
  BOOST_TEST(report.find("beta was said") != std::string::npos, "what was found stays");
  BOOST_TEST(report.find("alpha was said") == std::string::npos, "old lines are not matched again");
  feed.write(log, output("alpha", 3), s(3));
  report = report_of(jobs, "j", s(4));
  BOOST_TEST(report.find("alpha was said") != std::string::npos);
  BOOST_TEST(report.find("beta was said") != std::string::npos);
  jobs.reload_rules(own_rules("own.a", "alpha"));
  report = report_of(jobs, "j", s(5));
  BOOST_TEST(report.find("alpha was said") != std::string::npos);
  BOOST_TEST(report.find("beta was said") == std::string::npos, "the rule is gone, and what it found");
  jobs.reload_rules(nullptr);
  BOOST_TEST(report_of(jobs, "j", s(6)).find("was said") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(events_and_log_lines_of_the_socket_meet_rules) {
  LiveOptions options = live_options();
  options.rules = own_rules("own.a", "alpha");
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/culprit/trace.sock");
  const std::string line = fmt::format(
      "{{\"kind\":\"log\",\"rank\":3,\"host\":\"forged\",\"time_ns\":{},\"line\":\"alpha it\"}}\n", s(5));
  feed.write(socket, line.substr(0, 20), s(5));
  feed.write(socket, line.substr(20), s(5));
  auto events = jobs.poll_events();
  const LiveEvent* finding = first(events, LiveEventKind::kFinding);
  BOOST_REQUIRE(finding);
  BOOST_TEST(to_json(*finding).find("\"rank\":3") != std::string::npos, to_json(*finding));
  BOOST_TEST(to_json(*finding).find(fmt::format("\"time_ns\":{}", s(5))) != std::string::npos);
  BOOST_TEST(to_json(*finding).find("\"host\":\"node-0\"") != std::string::npos,
             "a peer cannot forge its host");
  feed.write(socket, "{\"kind\":\"event\",\"name\":\"x\",\"note\":\"alpha it\"}\nbroken\n", s(20));
  BOOST_TEST(jobs.counts().broken_trace_lines == 1u);
}

BOOST_AUTO_TEST_CASE(a_restart_gives_the_same_reports_and_runs) {
  LiveJobs before(live_options());
  Feed feed(before);
  const StreamId log = run_a_minute(before, feed);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/culprit/trace.sock");
  feed.write(socket, "{\"kind\":\"event\",\"name\":\"job_end\"}\n", s(61));
  tick(before, 61, 70);
  // The second run fails.
  for (int64_t i = 80; i < 120; ++i) {
    feed.write(log, step_line(i), s(i));
    before.tick(s(i));
  }
  feed.write(log, xid_line(s(120)), s(120));
  before.tick(s(120));
  const auto events = before.poll_events();
  const LiveEvent* ended = first(events, LiveEventKind::kJobEnded);
  BOOST_REQUIRE(ended);
  LiveOptions options = live_options();
  for (const LiveEvent& e : events)
    if (const auto* change = std::get_if<std::shared_ptr<const PoolChange>>(&e.content))
      options.taught.push_back((*change)->taught);
  LiveJobs after(std::move(options));
  const RunEnd ends[] = {{ended->job, ended->run, ended->last_ns}};
  after.restoring(ends);
  feed.replay(after);
  after.replayed(s(121));
  after.caught_up(s(121));
  BOOST_TEST(report_of(after, "j", s(121)) == report_of(before, "j", s(121)));
  BOOST_TEST(after.jobs().at(0).run == 1u);
  BOOST_TEST(after.pools().jobs() == before.pools().jobs(), "nothing is learned twice");
  for (const LiveEvent& e : after.poll_events()) BOOST_TEST(e.replayed);
  feed.write(log, step_line(0), s(122));  // belongs to `before`; there is one stream
  after.tick(s(123));
  BOOST_TEST(after.poll_events().empty());
}

// A restore that takes as long as the silence before a hang or an end.
BOOST_AUTO_TEST_CASE(a_job_whose_lines_are_still_to_be_taken_neither_hangs_nor_ends) {
  LiveJobs before(live_options());
  Feed feed(before);
  const StreamId log = run_a_minute(before, feed);
  LiveOptions options = live_options();
  options.alive = [](const std::string&) { return false; };
  LiveJobs after(std::move(options));
  after.restoring({});
  feed.replay(after);
  after.replayed(s(500));
  BOOST_TEST(!after.tick(s(500)).has_value());
  BOOST_TEST(after.running() == 1u);
  Feed late(after);
  PieceBatch batch;
  batch.pieces.push_back({});
  batch.pieces[0].stream = log;
  batch.pieces[0].bytes = xid_line(s(498));
  batch.pieces[0].time_ns = s(499);
  (void)after.poll_events();
  after.ingest(batch, s(501));
  after.caught_up(s(501));
  after.tick(s(501));
  BOOST_TEST(after.running() == 1u);
  const auto events = after.poll_events();
  BOOST_REQUIRE(first(events, LiveEventKind::kFinding));
  BOOST_TEST(!first(events, LiveEventKind::kFinding)->replayed, "what came since the start is news");
}

BOOST_AUTO_TEST_CASE(streams_that_ended_are_forgotten) {
  LiveJobs live(live_options());
  Feed feed(live);
  for (uint32_t i = 0; i < 100'000; ++i) {
    const StreamId socket = feed.open(OriginKind::kSocket, "short", "/run/culprit/trace.sock", i);
    feed.write(socket, i % 1000 ? "" : "{\"kind\":\"event\",\"name\":\"x\"}\n", s(i / 1000));
    feed.write(socket, "", s(i / 1000), true);
  }
  BOOST_TEST(live.streams() == 0u);
  BOOST_TEST(live.running() == 1u, "a job without a connection has not ended");
  live.tick(s(110));
  BOOST_TEST(live.running() == 1u);
  const StreamId file = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  feed.write(file, step_line(0), s(100));
  feed.write(file, "", s(100), true);
  BOOST_TEST(live.streams() == 1u, "its lines are of a run that goes on");
  live.tick(s(120));
  BOOST_TEST(live.streams() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
