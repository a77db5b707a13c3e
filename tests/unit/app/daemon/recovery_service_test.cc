// The controller in the collector: a fake scheduler, a real ledger, and restarts of the collector.
#include "app/daemon/recover/recovery_service.h"

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../core/recover/controlled_cluster.h"
#include "../../io/fake_env.h"
#include "../fixtures.h"
#include "respond/order.h"

using namespace culprit;
using namespace culprit::app;
using recover::test::forged;
using recover::test::gpu_lost;
using respond::SeenJob;

namespace {

constexpr const char* kHeldByRequeue = "job requeued in held state";

// What is posted after the crash of its process is lost.
class CrashEnv final : public io::testing::FakeEnv {
 public:
  bool crashed = false;
  void post(std::function<void()> call) override {
    if (!crashed) FakeEnv::post(std::move(call));
  }
  void restart() { posted_.clear(), crashed = false; }
};

struct ControlledSite {
  explicit ControlledSite(ActMode mode = ActMode::kAct, std::shared_ptr<ActGate> its_gate = nullptr)
      : gate(std::move(its_gate)) {
    env.wall_ns = recover::test::kStart + 100 * kNsPerSecond;
    config.state_dir = folder.path.string();
    config.act = {.mode = mode, .scheduler = Scheduler::kSlurm, .isolate = true, .restart = true};
    for (const char* name : {"n1", "n2", "n3", "n4"})
      view.hosts.push_back({name, false, true, "", "", {"train"}});
    job.job = recover::test::job_named("77");
    job.uid = 1000, job.nodes = 2, job.may_requeue = true, job.partition = "train";
    set(SeenJob::State::kRunning, {"n1", "n2"});
    start();
  }

  struct FakeBackend final : respond::Backend {
    explicit FakeBackend(ControlledSite& site_in) : site(site_in) {}
    std::string_view name() const override { return "slurm"; }
    bool can(OrderKind kind) const override { return kind != OrderKind::kEndTasks; }
    ActionResult carry_out(const ActionOrder& order, respond::Pace&) const override {
      site.orders.push_back(std::string(respond::name_of(order.kind)) + " " + order.target +
                            (order.repeats_ns == kNoTime ? "" : " again"));
      for (respond::SeenHost& host : site.view.hosts)
        if (order.kind == OrderKind::kIsolate && host.host == order.target)
          host.out = true, host.idle = false, host.op = order.op, host.by = "root";
      if (order.kind == OrderKind::kRunAgain && site.crash_in_run_again) site.env.crashed = true;
      ActionResult out = respond::result_of(order, ActionState::kDone, "");
      if (order.kind == OrderKind::kRunAgain) out.hosts = {"n3", "n4"};
      return out;
    }
    ControlledSite& site;
  };

  void start() {
    RecoveryServiceOptions options;
    options.config = &config;
    options.gate = gate;
    options.log = [this](LogLevel, const std::string& text) { log += text + "\n"; };
    options.end_tasks = [this](const std::vector<std::string>& hosts, const peer::EndTasks&) {
      for (const std::string& host : hosts) orders.push_back("end " + host);
      env.crashed = env.crashed || crash_in_end_tasks;
    };
    options.check_host = [this](const std::string& host, const peer::Message& request) {
      if (const auto* check = std::get_if<peer::CheckHost>(&request)) {
        checked.push_back(host);
        check_id = check->decision;
      } else if (const auto* step = std::get_if<peer::AlignHost>(&request)) {
        checked.push_back("align " + host);
        check_id = step->decision;
      }
      return true;
    };
    options.scheduler = [this] {
      SchedulerParts parts;
      parts.backend = std::make_unique<FakeBackend>(*this);
      parts.look = [this]() -> Result<respond::SchedulerView> {
        if (!answers) return fail(ErrorCode::kIo, "no answer");
        respond::SchedulerView out = view;
        out.jobs = {job};
        return out;
      };
      return parts;
    };
    service = std::move(*RecoveryService::open(env, std::move(options)));
    service->restored();
    if (verdict_after_restart) give(*std::exchange(verdict_after_restart, std::nullopt), true);
    pass(kNsPerSecond);
  }
  void restart(TimeNs after_ns) {
    service.reset();
    env.restart();
    crash_in_run_again = crash_in_end_tasks = false;
    env.advance(after_ns);
    orders.clear();
    start();
  }
  void pass(TimeNs ns) {
    for (TimeNs done = 0; done < ns; done += kNsPerSecond) {
      env.advance(kNsPerSecond);
      service->beat();
      env.run();
    }
  }
  void set(SeenJob::State state, std::vector<std::string> hosts, uint32_t restarts = 0) {
    job.state = state, job.hosts = std::move(hosts), job.job.restarts = restarts;
    job.requeued_held = state == SeenJob::State::kHeld;
    job.reason = job.requeued_held ? kHeldByRequeue : "None";
    if (restarts > 0) job.job.submit_ns = env.wall_ns / kNsPerSecond * kNsPerSecond;
  }
  void give(const Diagnosis& diagnosis, bool settled, VerdictState state = VerdictState::kOpen) {
    RunVerdict v;
    v.job = "77", v.user = "user 1000", v.settled = settled;
    v.verdict.emplace();
    v.verdict->job = "77", v.verdict->leads = true, v.verdict->settled = settled, v.verdict->state = state;
    v.verdict->diagnosis = diagnosis;
    service->on_verdicts(std::vector{v});
    env.run();
  }
  // Until the order to run the job again.
  void lose_gpu_of_n2() {
    give(gpu_lost("n2", env.wall_ns), false);
    set(SeenJob::State::kFailed, {});
    pass(2 * kNsPerSecond);
  }

  app::test::Folder folder;
  CrashEnv env;
  Config config;
  respond::SchedulerView view;
  SeenJob job;
  bool answers = true, crash_in_run_again = false, crash_in_end_tasks = false;
  std::vector<std::string> orders, checked;
  std::string log, check_id;
  std::shared_ptr<ActGate> gate;                   // null: no other collector
  std::optional<Diagnosis> verdict_after_restart;  // the verdict that the feed reads again
  std::unique_ptr<RecoveryService> service;
};

using Orders = std::vector<std::string>;

Diagnosis slow_host(const std::string& host, double share) {
  Diagnosis d;
  d.id = "d1";
  d.detector = "comm";
  d.title = "A host is slow as a whole";
  d.category = Category::kHardware;
  d.component = Component::kCpu;
  d.symptom = Symptom::kSlowdown;
  d.confidence = 0.95;
  d.step_share = share;
  d.hosts.emplace_back().host = host;
  d.action = {ActionKind::kIsolate, {host}};
  return d;
}

recover::Machine machine_of(const ControlledSite& site) {
  const auto view = site.service->controller().view(site.service->key_of_job("77"));
  return view ? view->machine : recover::Machine::kOut;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recovery_service)

BOOST_AUTO_TEST_CASE(a_lost_device_that_the_kernel_names_does_not_wait_for_its_announcement) {
  ControlledSite site;
  site.give(forged("n2", site.env.wall_ns), false);
  BOOST_TEST(site.orders.empty());
  site.give(gpu_lost("n2", site.env.wall_ns), false);
  BOOST_TEST(site.orders == (Orders{"end n1", "end n2"}), boost::test_tools::per_element());
  // The end of the processes is seen long before the next regular view.
  site.set(SeenJob::State::kFailed, {});
  site.env.advance(200 * kNsPerMs);
  site.env.run();
  BOOST_TEST(site.orders == (Orders{"end n1", "end n2", "isolate n2", "run_again 77", "verify 77"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_spare_is_checked_at_its_arrival_and_isolated_if_it_fails) {
  ControlledSite site;
  site.view.spare_hosts = {"n4"}, site.view.spares = 1;
  site.service->see_agent("n4", "boot-1");
  site.pass(4 * kNsPerSecond);
  BOOST_TEST(site.checked.empty());  // act.check is off
  site.config.act.check = true;
  site.pass(4 * kNsPerSecond);
  BOOST_TEST(site.checked == Orders{"n4"}, boost::test_tools::per_element());
  site.service->checked("n4", peer::CheckResult{site.check_id, peer::CheckAnswer::kPassed, "whole"});
  site.pass(site.config.act.spares_check_ns + 5 * kNsPerSecond);
  BOOST_TEST(site.checked.size() == 2U);
  BOOST_TEST(site.orders.empty());
  site.service->checked("n4",
                        peer::CheckResult{site.check_id, peer::CheckAnswer::kFailed, "the disk differs"});
  site.pass(2 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{"isolate n4"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_numbers_end_in_an_alignment_of_the_jobs_hosts) {
  ControlledSite site;
  site.config.act.check = true;
  site.service->reload();
  for (const char* host : {"n1", "n2"}) site.service->see_agent(host, "boot-1");
  site.pass(12 * kNsPerSecond);
  Diagnosis wrong;
  wrong.detector = "numerics";
  wrong.title = "The loss is NaN";
  wrong.component = Component::kNumeric;
  wrong.symptom = Symptom::kNumeric;
  wrong.confidence = 0.9;
  wrong.time_ns = site.env.wall_ns;
  site.give(wrong, true);
  site.set(SeenJob::State::kFailed, {});
  site.pass(12 * kNsPerSecond);
  BOOST_TEST(site.checked == (Orders{"align n1", "align n2"}), boost::test_tools::per_element());
  for (const auto& [host, digest] : {std::pair{"n1", "a"}, {"n2", "b"}})
    site.service->checked(
        host, peer::AlignResult{
                  site.check_id, {{"cuda:0", "k", "a", true}, {"cuda:1", "k", digest, true}}, false, ""});
  site.pass(2 * kNsPerSecond);
  BOOST_REQUIRE(!site.orders.empty());
  BOOST_TEST(site.orders[0] == "isolate n2");
  BOOST_TEST(site.log.find("an equal step gave other bits on n2 than on most others") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(later_lines_of_an_attempt_do_not_stop_the_next_one) {
  ControlledSite site;
  site.lose_gpu_of_n2();
  const size_t before = site.orders.size();
  for (const bool seen : {false, true}) {
    if (seen) site.set(SeenJob::State::kRunning, {"n3", "n4"}, 1), site.pass(3 * kNsPerSecond);
    Diagnosis later = gpu_lost("n2", site.env.wall_ns);
    later.confidence = .99;
    site.give(later, true);
    site.pass(2 * kNsPerSecond);
    BOOST_TEST(site.orders.size() == before);
  }
  site.restart(kNsPerSecond);
  site.give(gpu_lost("n2", site.env.wall_ns), true);  // is read again
  site.pass(2 * kNsPerSecond);
  BOOST_TEST(site.orders.empty());
  site.give(gpu_lost("n3", site.env.wall_ns), true);  // of this attempt
  BOOST_TEST(!site.orders.empty());
}

BOOST_AUTO_TEST_CASE(processes_that_ended_while_the_collector_was_away_are_not_ended_again) {
  ControlledSite site;
  site.give(gpu_lost("n2", site.env.wall_ns), false);
  BOOST_TEST(site.orders == (Orders{"end n1", "end n2"}), boost::test_tools::per_element());
  site.set(SeenJob::State::kFailed, {});
  site.restart(kNsPerSecond);
  site.give(gpu_lost("n2", site.env.wall_ns), true);
  site.pass(3 * kNsPerSecond);
  BOOST_TEST(std::ranges::count_if(site.orders, [](const auto& one) { return one.starts_with("end "); }) ==
             0);
  for (const ActionRecord* action : site.service->controller().actions().all())
    if (action->order.kind == OrderKind::kEndTasks) BOOST_TEST((action->state == ActionState::kDone));
}

BOOST_AUTO_TEST_CASE(a_verdict_that_is_withdrawn_after_the_isolation_says_how_to_return_the_host) {
  ControlledSite site;
  site.lose_gpu_of_n2();
  site.give(gpu_lost("n2", site.env.wall_ns), true, VerdictState::kRefuted);
  BOOST_TEST(site.log.find("n2 is isolated for a verdict that is withdrawn; `culprit recover undo ") !=
             std::string::npos);
}

// A crash between the requeue, which holds the job, and its release. Beyond a minute the ledger abandons the
// order, but the job may not stay held.
BOOST_DATA_TEST_CASE(a_job_that_our_order_left_held_goes_on_after_a_restart,
                     boost::unit_test::data::make({5, 50, 300}), seconds) {
  ControlledSite site;
  site.crash_in_run_again = true;
  site.lose_gpu_of_n2();
  BOOST_TEST(site.orders.back() == "run_again 77");
  site.set(SeenJob::State::kHeld, {}, 1);
  site.restart(seconds * kNsPerSecond);
  site.pass(5 * kNsPerSecond);
  BOOST_TEST_REQUIRE(!site.orders.empty());
  BOOST_TEST(site.orders.front() == "run_again 77 again");
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77 again") == 1);
  for (const auto* action : site.service->controller().actions().all())
    BOOST_TEST((action->state == ActionState::kDone), action->detail);
  // It is given once, although a late view shows the job held.
  const size_t given = site.orders.size();
  site.pass(30 * kNsPerSecond);
  BOOST_TEST(site.orders.size() == given);
}

// A crash between the end of the processes and the isolation: the verdict is read again, and isolates.
BOOST_AUTO_TEST_CASE(an_isolation_that_was_not_reserved_yet_is_not_lost_with_a_crash) {
  ControlledSite site;
  site.crash_in_end_tasks = true;
  const Diagnosis lost = gpu_lost("n2", site.env.wall_ns);
  site.give(lost, false);
  site.set(SeenJob::State::kFailed, {});
  site.verdict_after_restart = lost;
  site.restart(2 * kNsPerSecond);
  site.pass(5 * kNsPerSecond);
  BOOST_TEST(std::ranges::count(site.orders, "isolate n2") == 1);
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77") == 1);
}

BOOST_AUTO_TEST_CASE(a_hold_of_another_actor_stays) {
  for (const bool by_requeue : {false, true}) {
    ControlledSite site;
    site.set(SeenJob::State::kFailed, {});
    site.pass(2 * kNsPerSecond);
    site.set(SeenJob::State::kHeld, {}, 1);
    site.job.requeued_held = by_requeue;
    site.pass(20 * kNsPerSecond);
    site.restart(kNsPerSecond);
    site.pass(20 * kNsPerSecond);
    BOOST_TEST(site.orders.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_verdict_waits_while_the_scheduler_gives_no_answer) {
  ControlledSite site;
  site.answers = false;
  site.pass(3 * kNsPerSecond);
  site.give(gpu_lost("n2", site.env.wall_ns), true);
  BOOST_TEST(site.orders.empty());
  site.answers = true;
  site.pass(3 * kNsPerSecond);
  BOOST_TEST(site.orders.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_scheduler_that_does_not_answer_is_named_with_its_time_and_what_mends_it) {
  ControlledSite site;
  BOOST_TEST(!site.service->trouble());
  const TimeNs seen_ns = site.service->view_ns();
  BOOST_TEST((seen_ns != kNoTime));
  site.answers = false;
  site.pass(3 * kNsPerSecond);
  const auto first = site.service->trouble();
  site.pass(60 * kNsPerSecond);
  const auto later = site.service->trouble();
  BOOST_TEST_REQUIRE((first && later));
  BOOST_TEST(later->text == "the scheduler does not answer: no answer");
  BOOST_TEST(later->remedy == "scontrol ping");
  BOOST_TEST(later->since_ns == first->since_ns);
  BOOST_TEST(site.service->view_ns() >= seen_ns);
  BOOST_TEST(site.service->view_ns() < later->since_ns);
  site.answers = true;
  site.pass(3 * kNsPerSecond);
  BOOST_TEST(!site.service->trouble());
}

// A verdict without an action has a sentence on what it waits for.
BOOST_AUTO_TEST_CASE(a_verdict_that_waits_says_why) {
  const auto shows = [](const ControlledSite& site, std::string_view part) {
    const auto view = site.service->controller().view(site.service->key_of_job("77"));
    std::string all;
    for (const std::string& one : waits_of(*site.service, *view)) all += one + "\n";
    BOOST_TEST(all.find(part) != all.npos, all << " without " << part);
  };
  Diagnosis unsure = gpu_lost("n2", 0);
  unsure.confidence = 0.6;
  struct Row {
    ActMode mode;
    bool settled;
    const char* wanted;
  };
  for (const Row& row : {Row{ActMode::kAct, false, "(confidence 0.60): since 20"},
                         Row{ActMode::kAct, false, " it waits to settle"},
                         Row{ActMode::kAct, true, "to end a running job needs a confidence of 0.75"},
                         Row{ActMode::kAct, true, "the confidence is 0.60, and an isolation needs 0.85"},
                         Row{ActMode::kObserve, true, "nothing is done in observe mode (act.mode)"}}) {
    ControlledSite site(row.mode);
    unsure.time_ns = unsure.evidence[0].time_ns = site.env.wall_ns;
    site.give(unsure, row.settled);
    shows(site, row.wanted);
  }
  ControlledSite asking(ActMode::kAsk);
  asking.give(gpu_lost("n2", asking.env.wall_ns), true);
  shows(asking, "it waits for a person until ");
  shows(asking, "`culprit recover approve d-");
  ControlledSite away;
  away.answers = false;
  away.pass(3 * kNsPerSecond);
  away.give(gpu_lost("n2", away.env.wall_ns), true);
  shows(away, "it waits for a view of the scheduler");
}

// "culprit clear HOST": the return is no undo, so the cause may isolate it again.
BOOST_AUTO_TEST_CASE(a_host_that_a_person_repaired_is_returned_without_a_veto) {
  ControlledSite site;
  site.lose_gpu_of_n2();
  site.service->repaired("n2", "ann");
  site.pass(2 * kNsPerSecond);
  BOOST_TEST(site.orders.back() == "return n2");
  const std::string root = recover::root_of(gpu_lost("n2", site.env.wall_ns));
  BOOST_TEST(!site.service->controller().guard().has_veto("n2", root, site.env.wall_ns));
}

BOOST_AUTO_TEST_CASE(a_slow_host_counts_when_it_is_still_the_verdict_after_a_minute) {
  struct Row {
    double share;
    const char* later_host;
    recover::Machine wanted;
  };
  // All evidence is the user's, so the host is left out of this job alone.
  for (const Row& row :
       {Row{0.3, "n1", recover::Machine::kExclude}, Row{0.05, "n1", recover::Machine::kSuspect},
        Row{0.3, "n2", recover::Machine::kSuspect}}) {
    ControlledSite site;
    site.give(slow_host("n1", row.share), true);
    BOOST_TEST((machine_of(site) == recover::Machine::kSuspect));
    site.pass(30 * kNsPerSecond);
    site.give(slow_host(row.later_host, row.share), true);  // revised
    site.pass(40 * kNsPerSecond);
    BOOST_TEST((machine_of(site) == row.wanted));
  }
}

// ---- several collectors

namespace {

// Another member owns the jobs until `own` is set.
class FakeGate final : public ActGate {
 public:
  bool is_open() const override { return open; }
  std::optional<RecoveryTrouble> trouble() const override {
    if (open) return std::nullopt;
    return RecoveryTrouble{"the cluster's database does not answer, so nothing is done: x", kNoTime, "look"};
  }
  std::optional<uint64_t> epoch(const std::string&) const override {
    return open && own ? std::optional(number) : std::nullopt;
  }
  bool shares_jobs() const override { return true; }
  Answer reserve(const ActionOrder&, const Pause&) override {
    ++asked;
    return answer;
  }
  std::shared_ptr<store::postgres::LedgerStore> ledger() const override { return members_ledger; }
  std::shared_ptr<store::postgres::LedgerStore> members_ledger;
  bool open = true, own = true;
  uint64_t number = 1;
  Answer answer;
  int asked = 0;
};

// The table of all members, as one of them sees it.
class FakeLedger final : public store::postgres::LedgerStore {
 public:
  using Line = store::postgres::LedgerLine;
  using Table = std::map<std::pair<std::string, std::string>, Line>;
  FakeLedger(std::string member, std::shared_ptr<Table> table)
      : LedgerStore("", std::move(member)), table_(std::move(table)) {}

  Status put(const std::vector<Line>& lines) override {
    if (!answers) return fail(ErrorCode::kIo, "no answer");
    for (Line line : lines) {
      line.member = member();
      Line& at = (*table_)[{line.kind, line.key}];
      const bool stays = line.again && !at.member.empty() && at.member != member();
      if (at.stamp <= line.stamp && !stays) at = line;
    }
    return {};
  }
  Result<std::vector<Line>> news() override {
    return those([&](const Line& one) {
      return one.member != member() && one.kind != store::postgres::kLedgerAttempt &&
             one.kind != store::postgres::kLedgerAction;
    });
  }
  Result<std::vector<Line>> of_jobs(const std::vector<std::string>& jobs) override {
    return those([&](const Line& one) { return std::ranges::find(jobs, one.job) != jobs.end(); });
  }
  Status prune() override { return {}; }
  bool answers = true;

 private:
  template <class Is>
  Result<std::vector<Line>> those(Is is) const {
    if (!answers) return fail(ErrorCode::kIo, "no answer");
    std::vector<Line> out;
    for (const auto& [key, line] : *table_)
      if (is(line)) out.push_back(line);
    return out;
  }
  const std::shared_ptr<Table> table_;
};

struct SharedSite : ControlledSite {
  explicit SharedSite(bool own = true, std::shared_ptr<FakeLedger> its_ledger = nullptr)
      : ControlledSite(ActMode::kAct, gate_of(own, std::move(its_ledger))) {}
  static std::shared_ptr<FakeGate> gate_of(bool own, std::shared_ptr<FakeLedger> its_ledger) {
    auto out = std::make_shared<FakeGate>();
    out->own = own;
    out->members_ledger = std::move(its_ledger);
    return out;
  }
  std::shared_ptr<FakeGate> fake() { return std::static_pointer_cast<FakeGate>(gate); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(an_owner_reserves_each_order_before_it_is_carried_out) {
  SharedSite site;
  site.lose_gpu_of_n2();
  site.pass(5 * kNsPerSecond);
  BOOST_TEST(std::ranges::count(site.orders, "isolate n2") == 1);
  // One order ends the processes on two hosts.
  BOOST_TEST(site.fake()->asked + 1 == static_cast<int>(site.orders.size()));
}

BOOST_AUTO_TEST_CASE(a_fenced_order_is_not_carried_out_and_its_note_says_so) {
  SharedSite site;
  site.fake()->answer = {ActionState::kFailed, "fenced, so nothing was done: partition 3 belongs to b"};
  site.lose_gpu_of_n2();
  site.pass(5 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_TEST(site.fake()->asked > 0);
  BOOST_TEST(site.log.find("partition 3 belongs to b") != site.log.npos, site.log);
}

BOOST_AUTO_TEST_CASE(a_job_of_another_member_is_not_acted_for) {
  SharedSite site(false);
  site.lose_gpu_of_n2();
  site.pass(60 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_TEST(site.service->controller().jobs().empty());
  const auto waits = site.service->verdicts().waits("77");
  BOOST_REQUIRE(waits.size() == 1u);
  BOOST_TEST(waits[0].find("another member of the cluster acts") != waits[0].npos, waits[0]);
}

BOOST_AUTO_TEST_CASE(a_new_owner_acts_for_what_fails_from_then_on) {
  SharedSite site(false);
  site.pass(20 * kNsPerSecond);
  site.fake()->own = true, site.fake()->number = 2;
  site.pass(10 * kNsPerSecond);
  BOOST_TEST(site.service->controller().jobs().size() == 1u);
  site.lose_gpu_of_n2();
  site.pass(10 * kNsPerSecond);
  BOOST_TEST(std::ranges::count(site.orders, "isolate n2") == 1);
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77") == 1);
}

BOOST_AUTO_TEST_CASE(a_new_owner_acts_for_what_failed_before_with_the_ledger_of_all_members) {
  const auto table = std::make_shared<FakeLedger::Table>();
  SharedSite before(true, std::make_shared<FakeLedger>("a", table));
  before.pass(5 * kNsPerSecond);
  BOOST_TEST(table->size() == 1u);  // the attempt
  const auto ledger = std::make_shared<FakeLedger>("b", table);
  SharedSite site(false, ledger);
  site.pass(60 * kNsPerSecond);
  site.lose_gpu_of_n2();
  site.pass(20 * kNsPerSecond);
  ledger->answers = false;
  site.fake()->own = true, site.fake()->number = 2;
  site.pass(20 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_REQUIRE(site.service->trouble());
  BOOST_TEST(site.service->trouble()->text.find("the cluster's ledger does not answer") == 0u);
  ledger->answers = true;
  site.pass(20 * kNsPerSecond);
  BOOST_TEST(std::ranges::count(site.orders, "isolate n2") == 1, site.log);
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77") == 1, site.log);
  BOOST_TEST(site.log.find("goes on from attempt 1 of another member") != site.log.npos, site.log);
}

BOOST_AUTO_TEST_CASE(a_restart_of_a_member_adopts_nothing_from_itself) {
  const auto table = std::make_shared<FakeLedger::Table>();
  SharedSite site(true, std::make_shared<FakeLedger>("a", table));
  site.lose_gpu_of_n2();
  site.pass(10 * kNsPerSecond);
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77") == 1);
  site.fake()->number = 2;
  site.restart(3 * kNsPerSecond);
  site.pass(60 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_TEST(site.log.find("another member") == site.log.npos, site.log);
}

BOOST_AUTO_TEST_CASE(a_member_that_starts_again_gives_a_restored_table_what_it_lacks) {
  const auto table = std::make_shared<FakeLedger::Table>();
  SharedSite site(true, std::make_shared<FakeLedger>("a", table));
  site.lose_gpu_of_n2();
  site.pass(10 * kNsPerSecond);
  const FakeLedger::Table before = *table;
  BOOST_REQUIRE(std::ranges::count(site.orders, "run_again 77") == 1);
  std::erase_if(*table, [](const auto& row) { return row.first.first != store::postgres::kLedgerAttempt; });
  BOOST_REQUIRE(!table->empty());
  for (auto& [key, line] : *table) line.line = "later", line.stamp = 9, line.member = "b";
  const FakeLedger::Table later = *table;
  site.fake()->open = false;
  site.restart(3 * kNsPerSecond);
  site.pass(5 * kNsPerSecond);
  BOOST_TEST(table->size() == later.size(), "nothing before the database answers");
  site.fake()->open = true;
  site.pass(5 * kNsPerSecond);
  for (const auto& [key, line] : before) {
    BOOST_REQUIRE(table->contains(key));
    const bool is_attempt = key.first == store::postgres::kLedgerAttempt;
    BOOST_TEST(table->at(key).line == (is_attempt ? "later" : line.line), key.first << " " << key.second);
  }
}

// Its evidence is from before the attempt that this member saw begin: it is left to people, and said.
BOOST_AUTO_TEST_CASE(a_new_owner_leaves_what_failed_before_it_knew_the_attempt_to_people) {
  SharedSite site(false);
  site.lose_gpu_of_n2();
  site.pass(20 * kNsPerSecond);
  site.fake()->own = true, site.fake()->number = 2;
  site.pass(10 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_TEST(site.log.find("older than the attempt, so it decides nothing") != site.log.npos, site.log);
}

BOOST_AUTO_TEST_CASE(a_member_that_loses_a_job_ends_it_and_does_nothing_about_it) {
  SharedSite site;
  site.pass(5 * kNsPerSecond);
  BOOST_TEST(site.service->controller().jobs().size() == 1u);
  site.fake()->own = false;
  site.pass(5 * kNsPerSecond);
  site.lose_gpu_of_n2();
  site.pass(60 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(while_the_database_is_away_nothing_is_done_and_then_it_goes_on) {
  SharedSite site;
  site.fake()->open = false;
  site.lose_gpu_of_n2();
  site.pass(60 * kNsPerSecond);
  BOOST_TEST(site.orders == Orders{}, boost::test_tools::per_element());
  BOOST_REQUIRE(site.service->trouble());
  BOOST_TEST(site.service->trouble()->is_fault());
  site.fake()->open = true;
  site.pass(10 * kNsPerSecond);
  BOOST_TEST(!site.service->trouble());
  BOOST_TEST(std::ranges::count(site.orders, "run_again 77") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
