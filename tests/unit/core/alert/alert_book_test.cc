// Which issues fire and who hears of them, with a numeric clock.
#include "core/alert/alert_book.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::alert;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;
using RasJudgement = std::vector<std::string>;

Fault fault(const std::string& job, const std::string& title = "GPU lost",
            const std::string& host = "node-1") {
  Fault f;
  f.job = job;
  f.diagnosis = "d-1";
  f.source = "rule:gpu.lost";
  f.title = title;
  f.category = "hardware";
  f.component = "gpu";
  f.symptom = "crash";
  f.action = "isolate";
  f.confidence = 0.9;
  f.hosts = {host};
  f.place = host;
  return f;
}

Route everything(const std::string& name) {
  Route r;
  r.name = name;
  return r;
}

// What receivers are sent: "a firing GPU lost #1".
struct Listener {
  explicit Listener(std::vector<Route> routes, size_t storm_above = 10)
      : book(options(std::move(routes), storm_above)) {}
  static BookOptions options(std::vector<Route> routes, size_t storm_above) {
    BookOptions out;
    out.routes = std::move(routes);
    out.storm_above = storm_above;
    return out;
  }
  void verdict(const Fault& f, TimeNs second) { book.update(f.job, f.run, f, End::kNone, second * kSecond); }
  void exited(const std::string& job, TimeNs second, End why = End::kWithdrawn, uint32_t run = 0) {
    book.update(job, run, std::nullopt, why, second * kSecond);
  }
  void runs(std::vector<RunNews> news, TimeNs second) { book.on_runs(news, second * kSecond); }
  RasJudgement at(TimeNs second) {
    book.tick(second * kSecond);
    return output();
  }
  RasJudgement output() {
    RasJudgement out;
    const BookChanges changes = book.take();
    for (const Message& m : changes.messages) {
      constexpr const char* kWords[] = {"firing", "revised", "resolved"};
      const auto issue = issue_from_json(m.body);
      BOOST_REQUIRE(issue);
      out.push_back(m.receiver + " " + kWords[static_cast<int>(m.kind)] + " " +
                    (issue->storm.empty() ? issue->fault.job : "storm of " + std::to_string(issue->count)));
      ids.push_back(m.receiver + m.id);
    }
    for (const Issue& issue : changes.issues) retained[issue.key] = issue;
    for (const std::string& key : changes.forgotten) retained.erase(key);
    for (const Window& w : changes.windows) windows[w.id] = w;
    return out;
  }
  void restart() {
    (void)output();
    AlertBook again(book.options());
    std::vector<Issue> issues;
    for (const auto& [key, issue] : retained) {
      auto read = issue_from_json(to_json(issue));
      BOOST_REQUIRE(read);
      issues.push_back(std::move(*read));
    }
    std::vector<Window> all;
    for (const auto& [id, w] : windows) all.push_back(*window_from_json(to_json(w)));
    again.load(std::move(issues), std::move(all));
    book = std::move(again);
  }
  AlertBook book;
  std::map<std::string, Issue> retained;
  std::map<int64_t, Window> windows;
  RasJudgement ids;
};

void expect(const RasJudgement& output, const RasJudgement& expected) {
  BOOST_CHECK_EQUAL_COLLECTIONS(output.begin(), output.end(), expected.begin(), expected.end());
}

RunNews running(uint32_t run, int64_t iteration) { return {"j", run, true, false, iteration}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_book)

BOOST_AUTO_TEST_CASE(one_fault_is_one_issue_however_often_it_is_said) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  l.verdict(fault("j"), 2);
  expect(l.output(), {"a firing j"});
  l.verdict(fault("j"), 3);
  expect(l.at(4), {});
}

BOOST_AUTO_TEST_CASE(a_revision_keeps_the_key_and_has_an_id_of_its_own) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  l.verdict(fault("j", "Switch lost", "node-2"), 2);
  expect(l.output(), {"a firing j", "a revised j"});
  BOOST_CHECK_EQUAL(l.book.issues().size(), 1);
  BOOST_CHECK_NE(l.ids[0], l.ids[1]);
  BOOST_CHECK_EQUAL(l.ids[0].substr(0, 17), l.ids[1].substr(0, 17));
}

BOOST_AUTO_TEST_CASE(a_small_change_of_confidence_is_no_news) {
  Listener l({everything("a")});
  Fault f = fault("j");
  l.verdict(f, 1);
  f.confidence = 0.85;
  l.verdict(f, 2);
  f.confidence = 0.7;
  l.verdict(f, 3);
  expect(l.output(), {"a firing j", "a revised j"});
}

BOOST_AUTO_TEST_CASE(it_is_resolved_where_the_verdict_goes_and_fires_again_where_it_returns) {
  for (const End why : {End::kWithdrawn, End::kRefuted, End::kForgotten}) {
    Listener l({everything("a")});
    l.verdict(fault("j"), 1);
    l.exited("j", 2, why);
    l.exited("j", 3, why);
    l.verdict(fault("j"), 4);
    expect(l.output(), {"a firing j", "a resolved j", "a firing j"});
    BOOST_CHECK_EQUAL(l.book.issues().size(), 1);
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_goes_on_resolves_it_and_its_verdict_is_no_news_any_more) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  for (TimeNs second = 10; second <= 130; second += 10) l.runs({running(0, second)}, second);
  expect(l.output(), {});  // its last lines are no progress
  l.runs({running(0, 200)}, 140);
  expect(l.output(), {"a resolved j"});
  l.verdict(fault("j"), 150);
  expect(l.output(), {});
  l.verdict(fault("j", "Disk full"), 160);
  expect(l.output(), {"a firing j"});
}

BOOST_AUTO_TEST_CASE(progress_of_a_slow_run_does_not_resolve_it) {
  Listener l({everything("a")});
  Fault f = fault("j");
  f.symptom = "slowdown";
  l.verdict(f, 1);
  for (TimeNs second = 10; second <= 600; second += 10) l.runs({running(0, second)}, second);
  expect(l.output(), {"a firing j"});
}

BOOST_AUTO_TEST_CASE(a_later_run_resolves_it_once_it_makes_progress) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  l.runs({running(1, 100)}, 20);
  l.runs({running(1, 100)}, 30);
  expect(l.output(), {"a firing j"});
  l.runs({running(1, 101)}, 40);
  expect(l.output(), {"a resolved j"});
  l.verdict(fault("j", "Switch lost"), 50);  // the run before is over
  expect(l.output(), {});
}

BOOST_AUTO_TEST_CASE(a_users_word_resolves_what_this_user_said_alone) {
  const struct {
    bool of_host;
    const char* user;    // whose job has the fault
    const char* speaks;  // whose word it is that the job goes on; empty: the kernel's too
    bool resolves;
  } kCases[] = {
      {false, "user 1", "user 1", true}, {false, "user 1", "user 2", false},
      {true, "user 1", "user 1", false}, {true, "user 1", "", true},
      {false, "user 1", "", true},       {false, "", "user 2", true},
  };
  for (const auto& row : kCases)
    for (const bool well : {false, true})
      for (const uint32_t run : {0u, 1u}) {
        Listener l({everything("a")});
        Fault f = fault("j");
        f.of_host = row.of_host;
        f.user = row.user;
        l.verdict(f, 1);
        l.restart();
        for (TimeNs second = 10; second <= 300; second += 10)
          l.runs({{"j", run, !well, well, second, row.speaks}}, second);
        expect(l.output(), row.resolves ? RasJudgement{"a resolved j"} : RasJudgement{});
      }
}

BOOST_AUTO_TEST_CASE(a_run_that_ends_as_planned_resolves_its_own_and_those_of_earlier_runs) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  Fault later = fault("j");
  later.run = 1;
  l.verdict(later, 5);
  (void)l.output();
  l.runs({{"j", 1, false, true, std::nullopt}, {"other", 0, false, true, std::nullopt}}, 20);
  expect(l.output(), {"a resolved j", "a resolved j"});
}

BOOST_AUTO_TEST_CASE(an_issue_of_which_nothing_is_heard_expires_unless_the_run_goes_on) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 0);
  l.verdict(fault("k"), 0);
  (void)l.output();
  const TimeNs day = 24 * 3600;
  l.runs({{"k", 0, true, false, std::nullopt}}, day);
  expect(l.at(day - 1), {});
  expect(l.at(day), {"a resolved j"});
}

BOOST_AUTO_TEST_CASE(routes_choose_by_category_action_confidence_and_job) {
  std::vector<Route> routes;
  for (const char* name : {"category", "action", "sure", "job", "all"}) routes.push_back(everything(name));
  routes[0].categories = {"user", "framework"};
  routes[1].actions = {"isolate"};
  routes[2].min_confidence = 0.8;
  routes[3].jobs = {"llama-*", "k?"};
  Listener l(routes);
  l.verdict(fault("llama-7"), 1);
  expect(l.output(),
         {"action firing llama-7", "sure firing llama-7", "job firing llama-7", "all firing llama-7"});
  Fault f = fault("k1");
  f.category = "user";
  f.action = "fix";
  f.confidence = 0.6;
  l.verdict(f, 2);
  expect(l.output(), {"category firing k1", "job firing k1", "all firing k1"});
  f.confidence = 0.9;  // a receiver hears of it once it is sure enough, and others the revision
  l.verdict(f, 3);
  expect(l.output(), {"all revised k1", "category revised k1", "job revised k1", "sure firing k1"});
}

BOOST_AUTO_TEST_CASE(a_receiver_may_leave_out_the_end) {
  std::vector<Route> routes{everything("a")};
  routes[0].resolved = false;
  Listener l(routes);
  l.verdict(fault("j"), 1);
  l.exited("j", 2);
  expect(l.output(), {"a firing j"});
}

BOOST_AUTO_TEST_CASE(a_window_holds_alerts_silent_and_lets_them_out_at_its_end) {
  Listener l({everything("a")});
  Window w;
  w.hosts = "node-*";
  w.from_ns = 10 * kSecond;
  w.until_ns = 100 * kSecond;
  w.reason = "new switches";
  BOOST_REQUIRE(l.book.add_window(w, 0));
  l.verdict(fault("early"), 5);
  expect(l.output(), {"a firing early"});
  l.verdict(fault("j"), 20);
  l.verdict(fault("k"), 21);
  l.verdict(fault("other", "GPU lost", "rack2-7"), 22);
  l.verdict(fault("early", "Switch lost"), 23);  // revised within the window
  expect(l.output(), {"a firing other"});
  l.exited("k", 30);  // nothing was said of it
  expect(l.at(99), {});
  BOOST_CHECK_EQUAL(l.book.windows().at(1).held, 2);
  l.restart();
  expect(l.at(100), {"a revised early", "a firing j"});
}

BOOST_AUTO_TEST_CASE(the_end_of_what_was_sent_is_told_within_a_window) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  Window w;
  w.jobs = "j";
  w.from_ns = 5 * kSecond;
  w.until_ns = 100 * kSecond;
  w.reason = "test";
  BOOST_REQUIRE(l.book.add_window(w, 5 * kSecond));
  l.exited("j", 20);
  expect(l.output(), {"a firing j", "a resolved j"});
}

BOOST_AUTO_TEST_CASE(a_person_ends_a_window) {
  Listener l({everything("a")});
  Window w;
  w.jobs = "*";
  w.from_ns = 0;
  w.until_ns = 100 * kSecond;
  w.reason = "test";
  BOOST_REQUIRE(l.book.add_window(w, 0));
  l.verdict(fault("j"), 1);
  BOOST_REQUIRE(l.book.end_window(1, 2 * kSecond));
  BOOST_CHECK(!l.book.end_window(1, 3 * kSecond));
  BOOST_CHECK(!l.book.end_window(7, 3 * kSecond));
  expect(l.at(3), {"a firing j"});
}

BOOST_AUTO_TEST_CASE(more_than_a_few_in_a_minute_become_one_and_the_rest_follows) {
  Listener l({everything("a")}, 3);
  for (int i = 0; i < 8; ++i) l.verdict(fault("j" + std::to_string(i)), 10);
  expect(l.output(), {"a firing j0", "a firing j1", "a firing j2"});
  expect(l.at(11), {"a firing storm of 5"});
  l.exited("j4", 15);
  for (int i = 8; i < 10; ++i) l.verdict(fault("j" + std::to_string(i)), 52 + i);
  expect(l.at(69), {});
  expect(l.at(72),
         {"a firing j3", "a firing j5", "a firing j6", "a revised storm of 7"});  // calm: two in a minute
  l.restart();
  expect(l.at(100), {"a firing j7", "a firing j8", "a firing j9", "a resolved storm of 7"});
}

BOOST_AUTO_TEST_CASE(an_issue_that_ended_is_held_for_no_receiver) {
  Listener l({everything("a")}, 1);
  for (const char* job : {"sent", "held", "held too"}) l.verdict(fault(job), 1);
  (void)l.at(2);
  for (const char* job : {"sent", "held"}) l.exited(job, 3);
  (void)l.output();
  const auto states = [&](const std::string& job) {
    std::vector<Delivery::State> out;
    for (const auto& [receiver, d] : l.book.issues().at(issue_key(fault(job))).deliveries)
      out.push_back(d.state);
    return out;
  };
  BOOST_TEST((states("sent") == std::vector{Delivery::State::kSent}));
  BOOST_TEST(states("held").empty());
  BOOST_TEST((states("held too") == std::vector{Delivery::State::kHeld}));
  // As an older version stored it.
  Issue& stored = l.retained.at(issue_key(fault("held")));
  stored.deliveries["a"].state = Delivery::State::kHeld;
  l.restart();
  BOOST_TEST(states("held").empty());
  BOOST_TEST((states("held too") == std::vector{Delivery::State::kHeld}));
}

// What a user may claim: not grave.
Fault claim(const std::string& job, const std::string& owner, double confidence = 0.6) {
  Fault f = fault(job);
  f.action = "fix";
  f.owner = owner;
  f.confidence = confidence;
  return f;
}

BOOST_AUTO_TEST_CASE(the_storm_of_one_owner_holds_no_issue_of_another) {
  Listener l({everything("a")}, 4);
  for (int i = 0; i < 100; ++i) {  // one each 1.5 s
    l.verdict(claim("x" + std::to_string(i), "user 1000"), i * 3 / 2);
    (void)l.at(i * 3 / 2);
    if (i == 20 || i == 80) (void)l.output();
    if (i == 20) l.verdict(claim("root-job", "user 0"), 30);
    if (i == 20) expect(l.output(), {"a firing root-job"});
    if (i == 80) l.verdict(claim("root-job-2", "user 0"), 120);
    if (i == 80) expect(l.output(), {"a firing root-job-2"});
  }
}

BOOST_AUTO_TEST_CASE(what_is_grave_passes_the_storm_of_claims_whoever_owns_it) {
  Listener l({everything("a")}, 2);
  for (int i = 0; i < 8; ++i) l.verdict(claim("x" + std::to_string(i), "user 1000"), 1);
  (void)l.output();
  Fault vouched = claim("vouched", "user 1000");
  vouched.vouched = true;
  Fault isolate = fault("isolate");
  isolate.owner = "user 1000";
  l.verdict(vouched, 2);
  l.verdict(isolate, 2);
  expect(l.output(), {"a firing vouched", "a firing isolate"});
  isolate.job = "third";
  l.verdict(isolate, 2);  // its own bound
  expect(l.output(), {});
}

BOOST_AUTO_TEST_CASE(more_owners_than_may_be_heard_are_one_storm) {
  Listener l({everything("a")}, 3);
  for (int i = 0; i < 30; ++i) l.verdict(claim("x" + std::to_string(i), "user " + std::to_string(i)), 1);
  expect(l.output(), {"a firing x0", "a firing x1", "a firing x2"});
  expect(l.at(2), {"a firing storm of 27"});
}

BOOST_AUTO_TEST_CASE(the_gravest_is_named_and_released_first) {
  Listener l({everything("a")}, 1);
  l.verdict(fault("first"), 1);
  l.verdict(claim("first claim", ""), 1);
  for (int i = 0; i < 30; ++i) l.verdict(claim("x" + std::to_string(i), ""), 1);
  l.verdict(claim("surer", "", 0.8), 1);
  Fault f = fault("isolate");
  f.confidence = 0.7;
  l.verdict(f, 1);
  f = fault("isolate, surer");
  l.verdict(f, 1);
  (void)l.output();
  expect(l.at(2), {"a firing storm of 33"});
  const auto& issues = l.book.issues();
  const auto storm = std::ranges::find_if(issues, [](const auto& one) { return !one.second.storm.empty(); });
  BOOST_REQUIRE(storm != issues.end());
  const std::vector<std::string>& named = storm->second.members;
  BOOST_REQUIRE_EQUAL(named.size(), AlertBook::kStormNames);
  BOOST_CHECK_EQUAL(named[0], "isolate, surer: GPU lost");
  BOOST_CHECK_EQUAL(named[1], "isolate: GPU lost");
  BOOST_CHECK_EQUAL(named[2], "surer: GPU lost");
  l.restart();
  expect(l.at(61), {"a firing isolate, surer", "a firing surer"});  // one of each kind a minute
}

BOOST_AUTO_TEST_CASE(a_storm_is_counted_by_receiver_and_not_for_one_that_groups) {
  std::vector<Route> routes{everything("all"), everything("mine"), everything("manager")};
  routes[1].jobs = {"mine"};
  routes[2].groups = true;
  Listener l(routes, 1);
  l.verdict(fault("x"), 1);
  l.verdict(fault("y"), 1);
  l.verdict(fault("mine"), 1);
  expect(l.output(),
         {"all firing x", "manager firing x", "manager firing y", "mine firing mine", "manager firing mine"});
  expect(l.at(2), {"all firing storm of 2"});
}

BOOST_AUTO_TEST_CASE(a_restart_forgets_nothing_and_says_nothing_twice) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  l.verdict(fault("k"), 1);
  l.exited("k", 2);
  (void)l.output();
  l.restart();
  l.verdict(fault("j"), 10);
  l.exited("k", 10);
  expect(l.at(11), {});
  l.exited("j", 12);
  expect(l.output(), {"a resolved j"});
}

BOOST_AUTO_TEST_CASE(what_was_given_up_is_known_until_a_later_message_is_taken) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  const std::string key = l.book.issues().begin()->first;
  const auto dropped = [&] { return l.book.issues().at(key).deliveries.at("a").dropped; };
  l.book.settled("a", key, true);
  l.book.settled("b", key, true);
  l.book.settled("a", "unknown", true);
  l.restart();
  BOOST_CHECK(dropped());
  l.book.settled("a", key, false);
  l.restart();
  BOOST_CHECK(!dropped());
}

// ---- what people do

BOOST_AUTO_TEST_CASE(what_somebody_acknowledged_is_not_repeated) {
  Listener l({everything("a"), everything("b")});
  BookOptions options = l.book.options();
  options.remind_every_ns = 100 * kSecond;
  options.routes[1].groups = true;
  l.book.set_options(options);
  l.verdict(fault("j"), 1);
  l.verdict(fault("k"), 1);
  (void)l.output();
  const std::string key = issue_key(fault("j"));
  BOOST_REQUIRE(l.book.acknowledge(key, "alice", 2 * kSecond));
  BOOST_REQUIRE(l.book.acknowledge(key, "bob", 3 * kSecond));  // it is alice's
  (void)l.output();
  l.restart();
  BOOST_CHECK_EQUAL(l.book.issues().at(key).handling.acknowledged_by, "alice");
  expect(l.at(100), {});
  expect(l.at(101), {"a revised k", "b revised k"});
  expect(l.at(200), {});
  expect(l.at(201), {"a revised k", "b revised k"});
  l.verdict(fault("j", "Switch lost"), 202);  // news are no reminders
  expect(l.output(), {"a revised j", "b revised j"});
}

BOOST_AUTO_TEST_CASE(nothing_is_repeated_unless_it_is_configured) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  expect(l.at(80'000), {});
}

BOOST_AUTO_TEST_CASE(a_silence_holds_one_alert_and_ends_by_itself) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  l.verdict(fault("k"), 1);
  (void)l.output();
  const std::string key = issue_key(fault("j"));
  BOOST_REQUIRE(l.book.silence(key, 100 * kSecond, "alice", 2 * kSecond));
  (void)l.output();
  l.restart();
  l.verdict(fault("j", "Switch lost"), 3);
  l.verdict(fault("k", "Switch lost"), 3);
  expect(l.output(), {"a revised k"});
  expect(l.at(99), {});
  expect(l.at(100), {"a revised j"});
  BOOST_CHECK_EQUAL(l.book.issues().at(key).news, "it still fires, and its silence is over");
}

BOOST_AUTO_TEST_CASE(a_receiver_that_groups_hears_of_a_silence_to_make_its_own) {
  Listener l({everything("a"), everything("manager")});
  BookOptions options = l.book.options();
  options.routes[1].groups = true;
  l.book.set_options(options);
  l.verdict(fault("j"), 1);
  (void)l.output();
  const std::string key = issue_key(fault("j"));
  BOOST_REQUIRE(l.book.acknowledge(key, "alice", 2 * kSecond));
  BOOST_REQUIRE(l.book.silence(key, 100 * kSecond, "alice", 2 * kSecond));
  expect(l.output(), {"manager revised j"});
  expect(l.at(101), {});
}

BOOST_AUTO_TEST_CASE(the_end_of_a_silenced_alert_is_sent) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  BOOST_REQUIRE(l.book.silence(issue_key(fault("j")), 100 * kSecond, "alice", 2 * kSecond));
  (void)l.output();
  l.exited("j", 3);
  expect(l.output(), {"a resolved j"});
}

BOOST_AUTO_TEST_CASE(the_end_of_a_silence_says_nothing_of_what_somebody_has) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  const std::string key = issue_key(fault("j"));
  BOOST_REQUIRE(l.book.acknowledge(key, "alice", 2 * kSecond));
  BOOST_REQUIRE(l.book.silence(key, 100 * kSecond, "alice", 2 * kSecond));
  (void)l.output();
  expect(l.at(101), {});
}

BOOST_AUTO_TEST_CASE(a_silence_is_ended_by_one_of_no_length_and_is_not_longer_than_a_month) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  const std::string key = issue_key(fault("j"));
  BOOST_CHECK(!l.book.silence(key, 31 * 86'400 * kSecond, "alice", 2 * kSecond));
  BOOST_REQUIRE(l.book.silence(key, 100 * kSecond, "alice", 2 * kSecond));
  BOOST_REQUIRE(l.book.silence(key, 3 * kSecond, "alice", 3 * kSecond));
  expect(l.output(), {"a revised j"});
}

BOOST_AUTO_TEST_CASE(what_was_repaired_is_over_and_says_by_whom) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  const auto done = l.book.repaired(issue_key(fault("j")), "alice", 2 * kSecond);
  BOOST_REQUIRE(done);
  BOOST_CHECK_EQUAL(end_of(*done), "alice repaired it");
  expect(l.output(), {"a resolved j"});
  l.restart();
  Fault surer = fault("j");
  surer.confidence = 0.6;
  l.verdict(surer, 3);  // its verdict stands in the index, more or less sure
  expect(l.at(4), {});
}

BOOST_AUTO_TEST_CASE(a_new_finding_fires_what_was_repaired) {
  const std::string key = issue_key(fault("j"));
  const auto repaired = [&](const std::function<void(Listener&)>& then) {
    Listener l({everything("a")});
    l.verdict(fault("j"), 1);
    BOOST_REQUIRE(l.book.acknowledge(key, "bob", 2 * kSecond));
    BOOST_REQUIRE(l.book.repaired(key, "alice", 2 * kSecond));
    (void)l.output();
    l.restart();
    then(l);
    const RasJudgement output = l.output();
    if (!output.empty()) BOOST_CHECK_EQUAL(l.book.firing().front()->handling.acknowledged_by, "");
    return output;
  };
  const auto again = [&](const std::string& source, const std::string& host) {
    return repaired([=](Listener& l) { l.book.found_again("j", 0, source, host, 3 * kSecond); });
  };
  expect(again("rule:gpu.lost", "node-1"), {"a firing j"});
  expect(again("rule:gpu.lost", "node-2"), {});
  expect(again("rule:other", "node-1"), {});
  expect(repaired([](Listener& l) { l.verdict(fault("j", "GPU lost", "node-2"), 3); }), {"a firing j"});
  expect(repaired([](Listener& l) {
           l.exited("j", 3);  // its verdict went, and came again
           l.verdict(fault("j"), 4);
         }),
         {"a firing j"});
}

BOOST_AUTO_TEST_CASE(only_what_fires_and_is_no_storm_can_be_handled) {
  Listener l({everything("a")}, 1);
  for (const char* job : {"j", "k", "l"}) l.verdict(fault(job), 1);
  (void)l.at(2);
  const auto why = [&](const std::string& key) {
    const auto done = l.book.acknowledge(key, "alice", 3 * kSecond);
    return done ? std::string() : done.error().text;
  };
  BOOST_CHECK_EQUAL(why("nothing"), "no alert nothing");
  const std::string key = issue_key(fault("j"));
  l.exited("j", 3);
  BOOST_CHECK_EQUAL(why(key), "alert " + key + " is over: the diagnosis was withdrawn");
  for (const auto& [name, issue] : l.book.issues())
    if (!issue.storm.empty())
      BOOST_CHECK_EQUAL(why(name), "a storm has no fault of its own: handle the alerts that it counts");
}

BOOST_AUTO_TEST_CASE(a_fault_of_a_program_goes_to_the_receiver_of_the_jobs_user) {
  std::vector<Route> routes{everything("ops"), everything("alice"), everything("users")};
  routes[1].owners = {"user 1001"};
  routes[2].categories = {"user"};
  Fault f = fault("j");
  f.category = "user";
  const auto received = [&](const std::string& user, const std::string& category) {
    Listener l(routes);
    f.user = user;
    f.category = category;
    l.verdict(f, 1);
    return l.output();
  };
  expect(received("user 1001", "user"), {"alice firing j", "users firing j"});
  expect(received("user 1001", "hardware"), {"ops firing j", "alice firing j"});
  expect(received("user 1002", "user"), {"ops firing j", "users firing j"});
  expect(received("", "user"), {"ops firing j", "users firing j"});
  routes[1].owners = {"*"};
  expect(received("user 1002", "user"), {"alice firing j", "users firing j"});
  expect(received("", "user"), {"ops firing j", "users firing j"});
  routes[1].min_confidence = 0.95;  // it does not want this one
  expect(received("user 1002", "user"), {"ops firing j", "users firing j"});
}

BOOST_AUTO_TEST_CASE(only_hardware_and_platforms_are_critical_unless_others_are_configured) {
  const auto severity = [](const std::string& category, BookOptions options) {
    AlertBook book(std::move(options));
    Fault f = fault("j");
    f.category = category;
    book.update("j", 0, f, End::kNone, 1);
    return std::string(to_string(book.firing().front()->severity));
  };
  for (const char* category : {"hardware", "platform"}) BOOST_CHECK_EQUAL(severity(category, {}), "critical");
  for (const char* category : {"user", "framework", "unknown"})
    BOOST_CHECK_EQUAL(severity(category, {}), "warning");
  BookOptions all;
  all.critical = {"user"};
  BOOST_CHECK_EQUAL(severity("user", all), "critical");
  BOOST_CHECK_EQUAL(severity("hardware", all), "warning");
}

BOOST_AUTO_TEST_CASE(a_revision_raises_the_severity_and_never_lowers_it) {
  Listener l({everything("a")});
  Fault f = fault("j");
  f.category = "unknown";
  l.verdict(f, 1);
  l.verdict(fault("j"), 2);
  const Issue& issue = *l.book.firing().front();
  BOOST_CHECK(issue.severity == Severity::kCritical);
  BOOST_CHECK_EQUAL(issue.raised_ns, 2 * kSecond);
  f.title = "other";
  l.verdict(f, 3);
  BOOST_CHECK(issue.severity == Severity::kCritical);
}

BOOST_AUTO_TEST_CASE(old_ends_are_forgotten) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 0);
  l.exited("j", 1);
  (void)l.output();
  const TimeNs week = 7 * 24 * 3600;
  (void)l.at(week);
  BOOST_CHECK_EQUAL(l.retained.size(), 1);
  (void)l.at(week + 70);
  BOOST_CHECK(l.retained.empty() && l.book.issues().empty());
}

BOOST_AUTO_TEST_CASE(a_removed_receiver_is_forgotten_and_a_new_one_hears_of_what_comes) {
  Listener l({everything("a")});
  l.verdict(fault("j"), 1);
  (void)l.output();
  l.book.set_options(Listener::options({everything("b")}, 10));
  l.verdict(fault("k"), 2);
  l.exited("j", 3);
  expect(l.output(), {"b firing k"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(maintenance_window)

BOOST_AUTO_TEST_CASE(the_storm_of_a_removed_receiver_is_over) {
  Listener l({everything("a")}, 1);
  l.verdict(fault("j"), 1);
  l.verdict(fault("k"), 1);
  expect(l.at(2), {"a firing j", "a firing storm of 1"});
  BOOST_CHECK_EQUAL(l.book.firing().size(), 3);
  l.book.set_options(Listener::options({everything("b")}, 1));
  expect(l.at(3), {});
  BOOST_CHECK_EQUAL(l.book.firing().size(), 2);
  for (const Issue* issue : l.book.firing()) BOOST_CHECK_EQUAL(issue->storm, "");
}

BOOST_AUTO_TEST_CASE(windows_that_are_over_are_bounded_too) {
  Listener l({everything("a")});
  for (size_t i = 0; i < 2 * kWindows + 5; ++i) {
    Window w;
    w.hosts = "node-1";
    w.reason = "new switch";
    w.from_ns = 0;
    w.until_ns = 1000 * kSecond;
    const auto added = l.book.add_window(w, kSecond);
    BOOST_REQUIRE(added);
    BOOST_REQUIRE(l.book.end_window(added->id, kSecond));
  }
  BOOST_CHECK_EQUAL(l.book.windows().size(), 2 * kWindows);
  BOOST_CHECK_EQUAL(l.book.take().windows_forgotten.size(), 5);
}

BOOST_AUTO_TEST_CASE(globs) {
  const struct {
    const char *pattern, *text;
    bool matches;
  } kCases[] = {{"*", "", true},          {"*", "x", true},           {"", "", true},
                {"", "x", false},         {"node-?", "node-1", true}, {"node-?", "node-12", false},
                {"a*c*e", "abcde", true}, {"a*c*f", "abcde", false},  {"*-gpu-*", "x-gpu-y", true},
                {"n[1]", "n1", false}};
  for (const auto& c : kCases) BOOST_CHECK_EQUAL(matches_glob(c.pattern, c.text), c.matches);
  // Not exponential.
  BOOST_CHECK(!matches_glob("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

BOOST_AUTO_TEST_CASE(it_covers_only_what_lies_within_it_as_a_whole) {
  Fault f = fault("llama");
  f.hosts = {"node-1", "rack2-1"};
  Window w;
  w.hosts = "node-*";
  BOOST_CHECK(!w.covers(f));
  f.hosts = {"node-1", "node-2"};
  BOOST_CHECK(w.covers(f));
  w.jobs = "gpt*";
  BOOST_CHECK(!w.covers(f));
  w.jobs = "ll*";
  BOOST_CHECK(w.covers(f));
  f.hosts.clear();
  BOOST_CHECK(!w.covers(f));
  w.hosts.clear();
  BOOST_CHECK(w.covers(f));
}

BOOST_AUTO_TEST_CASE(wrong_ones_are_refused_with_a_reason) {
  Window good;
  good.hosts = "a";
  good.reason = "r";
  good.from_ns = 0;
  good.until_ns = 10;
  BOOST_CHECK_EQUAL(trouble_of(good, 5), "");
  Window w = good;
  w.hosts.clear();
  BOOST_CHECK_NE(trouble_of(w, 5), "");
  w = good, w.reason.clear();
  BOOST_CHECK_NE(trouble_of(w, 5), "");
  w = good, w.until_ns = kNoTime;
  BOOST_CHECK_NE(trouble_of(w, 5), "");
  w = good, w.until_ns = kWindowLongest + 1;
  BOOST_CHECK_NE(trouble_of(w, 5), "");
  BOOST_CHECK_NE(trouble_of(good, 10), "");
}

BOOST_AUTO_TEST_SUITE_END()
