// Which verdict of a run stands in the index.
#include "app/daemon/alerts/alert_faults.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

Verdict row_of(const std::string& id, double confidence, bool leads, VerdictState state = VerdictState::kOpen,
               bool settled = true) {
  Verdict out;
  out.job = "j";
  out.run = 2;
  out.kind = "rule:" + id;
  out.state = state;
  out.leads = leads;
  out.settled = settled;
  if (state == VerdictState::kConfirmed || state == VerdictState::kRefuted) out.judged_by = "alice";
  Diagnosis& d = out.diagnosis;
  d.id = id;
  d.rule = id;
  d.title = "t-" + id;
  d.confidence = confidence;
  d.hosts.resize(2);
  d.hosts[0].host = "n1", d.hosts[0].devices = {4}, d.hosts[0].ranks = {28, 29, 30, 31};
  d.hosts[1].host = "n2";
  d.action = {ActionKind::kIsolate, {"n1"}};
  Evidence& e = d.evidence.emplace_back();
  e.host = "n1", e.file = "a.log", e.line = 7, e.text = "x";
  return out;
}

alert::Fault fault_of(const std::vector<Verdict>& of_run) {
  const RunVerdict v = run_verdict(of_run);
  BOOST_REQUIRE(v.verdict.has_value());
  return app::fault_of(v);
}

// The chosen id, "-" for none, "?" while it is not settled.
std::string chosen(const std::vector<Verdict>& rows) {
  const RunVerdict v = run_verdict(rows);
  return !v.settled ? "?" : v.verdict ? v.verdict->id() : "-";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_faults)

BOOST_AUTO_TEST_CASE(an_attempt_is_decided_once_it_or_its_job_has_ended) {
  using State = AttemptState;
  const struct {
    const char* what;
    State state;
    bool running, late;
    uint32_t failed;
    bool undecided;
    const char* again;
  } kCases[] = {
      {"it runs", State::kRuns, true, false, 1, true, ""},
      {"it was killed with its job", State::kRuns, false, false, 2, false, ""},
      {"another follows", State::kAgain, true, false, 2, false, "runs again as it is (attempt 3 of 4)"},
      {"another follows in a later run", State::kAgain, false, false, 2, false,
       "runs again as it is (attempt 3 of 4)"},
      {"the next one never came", State::kAgain, false, true, 2, false, ""},
      {"it was the last one", State::kStop, true, false, 2, false, ""},
      {"it ended well", State::kWell, true, false, 1, true, ""},
  };
  for (const auto& c : kCases) {
    RunVerdict v = run_verdict({row_of("a", .9, true)});
    v.attempts = JobAttempts{2, 4, {}, c.state, "as it is", 0};
    v.running = c.running;
    v.next_is_late = c.late;
    const alert::Fault f = app::fault_of(v);
    BOOST_TEST(f.failed_attempts == c.failed, c.what);
    BOOST_TEST(f.undecided == c.undecided, c.what);
    BOOST_TEST(f.again == c.again, c.what);
  }
}

BOOST_AUTO_TEST_CASE(the_standing_verdict_is_chosen) {
  using Rows = std::vector<Verdict>;
  const struct {
    const char* what;
    Rows rows;
    const char* expected;
  } kCases[] = {
      {"none", {}, "-"},
      {"the flag", {row_of("a", .9, false), row_of("b", .7, true)}, "b"},
      {"withdrawn", {row_of("a", .9, true, VerdictState::kWithdrawn)}, "-"},
      {"refuted", {row_of("a", .9, true, VerdictState::kRefuted)}, "-"},
      {"refuted, and the next", {row_of("b", .6, false), row_of("a", .9, true, VerdictState::kRefuted)}, "b"},
      {"refuted, and the next is too weak",
       {row_of("b", .4, false), row_of("a", .9, true, VerdictState::kRefuted)},
       "-"},
      {"confirmed", {row_of("a", .9, true), row_of("b", .4, false, VerdictState::kConfirmed)}, "b"},
      {"not announced yet", {row_of("a", .9, true, VerdictState::kOpen, false)}, "?"},
      {"no verdict", {row_of("a", .9, false)}, "-"},
  };
  for (const auto& c : kCases)
    BOOST_CHECK_MESSAGE(chosen(c.rows) == c.expected, c.what << ": " << chosen(c.rows));
}

BOOST_AUTO_TEST_CASE(it_has_what_an_alert_says) {
  const auto fault = fault_of({row_of("a", .9, true)});
  BOOST_CHECK_EQUAL(fault.place, "n1 (GPU 4, ranks 28, 29, 30 and 1 more), n2");
  BOOST_CHECK_EQUAL(fault.source, "rule:a");
  BOOST_CHECK_EQUAL(fault.action, "isolate");
  BOOST_CHECK_EQUAL(fault.line.number, 7);
  BOOST_CHECK_EQUAL(fault.hosts.size(), 2);
  BOOST_CHECK_EQUAL(fault.run, 2);
  BOOST_CHECK(fault.vouched);
  auto claimed = row_of("a", .6, true);
  claimed.diagnosis.said_by = SaidBy{{Principal(1000u)}, {}};
  BOOST_CHECK(!fault_of({claimed}).vouched);
  BOOST_CHECK(fault.of_host);
  BOOST_CHECK(!fault_of({claimed}).of_host);
  for (const Principal& who : {Principal(12'002u), Principal::pod("3f2a51e8c9d0")}) {
    Verdict of_user = row_of("a", .9, true);
    of_user.diagnosis.evidence[0].uid = who;
    BOOST_CHECK(!fault_of({of_user}).of_host);
  }
}

BOOST_AUTO_TEST_CASE(a_row_that_could_not_be_read_is_passed_over) {
  Verdict row;
  row.diagnosis.id = "a";
  BOOST_CHECK_EQUAL(chosen({row}), "-");
}

BOOST_AUTO_TEST_CASE(a_fault_without_an_accused_host_has_the_hosts_of_its_evidence) {
  Verdict row = row_of("a", .9, true);
  row.diagnosis.hosts.clear();
  row.diagnosis.evidence.assign(4, {});
  for (size_t i = 0; i < 3; ++i) row.diagnosis.evidence[i].host = i < 2 ? "n3" : "n4";
  for (size_t i = 0; i < 2; ++i) row.diagnosis.evidence[i].rank = 2;
  const alert::Fault fault = fault_of({row});
  BOOST_CHECK_EQUAL(fault.place, "");
  BOOST_CHECK_EQUAL(alert::where_of(fault), "n3 (rank 2), n4");
}

BOOST_AUTO_TEST_SUITE_END()
