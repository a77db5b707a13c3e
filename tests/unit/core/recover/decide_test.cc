#include "core/recover/decide.h"

#include <boost/test/unit_test.hpp>
#include <ostream>

using namespace culprit;
using namespace culprit::recover;

namespace {

constexpr TimeNs kMinute = 60 * kNsPerSecond;
constexpr Restart kKinds[] = {Restart::kNever, Restart::kElsewhere, Restart::kOlder,
                              Restart::kLater, Restart::kSame,      Restart::kUnknown};

// One attempt that failed. Its end is a minute times its number, but for `at`.
struct Attempt {
  Restart kind = Restart::kUnknown;
  bool sure = true;
  std::string host = {};  // to leave out
  Progress progress = Progress::kNone;
  int64_t iteration = -1;
  std::string root = "r";
  std::string first = {};  // to fail
  TimeNs at = kNoTime;
  bool hang = false;
  bool preempted = false;
};

Failure failure_of(const Attempt& a, TimeNs end) {
  Failure f;
  f.root = a.root;
  f.advice.kind = a.kind;
  f.advice.sure = a.sure;
  if (!a.host.empty()) f.advice.hosts = {a.host};
  f.hang = a.hang;
  f.preempted = a.preempted;
  f.ran_on = {"n1", "n2"};
  f.first_to_fail = a.first;
  f.progress = a.progress;
  if (a.iteration >= 0) f.iteration = a.iteration;
  f.end_ns = end;
  return f;
}

Means with_spares() {
  Means means;
  means.spares = 8;
  return means;
}

// The decision after the last of these attempts. They are ten minutes apart: no storm.
Decision after(const std::vector<Attempt>& attempts, const Means& means = with_spares(), Limits limits = {}) {
  Ledger ledger;
  Decision out;
  TimeNs end = 0;
  for (const Attempt& a : attempts) {
    end = a.at == kNoTime ? end + 10 * kMinute : a.at;
    const Failure f = failure_of(a, end);
    ledger.add(f);
    out = decide(ledger, f, means, limits);
  }
  return out;
}

std::string output(const Decision& d) {
  if (!d.again) return d.code == 0 ? "stop" : "stop " + std::to_string(d.code);
  std::string out = d.older ? "older" : d.probe ? "probe" : "again";
  for (const std::string& host : d.hosts) out += " without " + host;
  return out;
}

}  // namespace

// One row of the table each: what failed so far, and what follows.
BOOST_AUTO_TEST_CASE(the_table_says_whether_the_job_runs_again) {
  using enum Restart;
  const struct {
    const char* what;
    std::vector<Attempt> attempts;
    const char* wanted;
  } rows[] = {
      {"a sure never stops at once", {{kNever}}, "stop 93"},
      {"an unsure one is tried once more", {{kNever, false}}, "again"},
      {"and then no more", {{kNever, false}, {kNever, false}}, "stop 93"},
      {"same runs again", {{kSame}}, "again"},
      {"the same at the same step is the sample or the program",
       {{kSame, true, "", Progress::kMade, 4117}, {kSame, true, "", Progress::kNone, 4117}},
       "stop 93"},
      {"the same host first to fail both times is left out",
       {{kSame, true, "", Progress::kMade, 5, "r", "n2"}, {kSame, true, "", Progress::kNone, 4, "r", "n2"}},
       "again without n2"},
      {"different hosts first to fail: stop",
       {{kSame, true, "", Progress::kMade, 5, "r", "n1"}, {kSame, true, "", Progress::kNone, 4, "r", "n2"}},
       "stop 93"},
      {"another root is another failure",
       {{kSame}, {kSame, true, "", Progress::kNone, -1, "other"}},
       "again"},
      {"progress in between forgets what was",
       {{kSame}, {kSame, true, "", Progress::kMade, 900}, {kSame, true, "", Progress::kMade, 1800}},
       "again"},
      {"later waits for the service", {{kLater}}, "probe"},
      {"and uses up no attempt", {{kLater}, {kLater}, {kLater}, {kLater}, {kLater}, {kLater}}, "probe"},
      {"but not for ever",
       {{kLater, true, "", Progress::kNone, -1, "r", "", kMinute},
        {kLater, true, "", Progress::kNone, -1, "r", "", 122 * kMinute}},
       "stop 138"},
      {"elsewhere leaves the host out", {{kElsewhere, true, "n1"}}, "again without n1"},
      {"and the next one", {{kElsewhere, true, "n1"}, {kElsewhere, true, "n2"}}, "again without n2"},
      {"a third host with one fault: it is not the host",
       {{kElsewhere, true, "n1"}, {kElsewhere, true, "n2"}, {kElsewhere, true, "n3"}},
       "stop 93"},
      {"who was left out cannot fail again",
       {{kElsewhere, true, "n1"}, {kElsewhere, true, "n1"}},
       "stop 138"},
      {"elsewhere without a name is unknown", {{kElsewhere}}, "again"},
      {"older goes back", {{kOlder}}, "older"},
      {"once more older", {{kOlder}, {kOlder}}, "older"},
      {"and then no more", {{kOlder}, {kOlder}, {kOlder}}, "stop 93"},
      {"unknown is tried once", {{kUnknown}}, "again"},
      {"and then no more", {{kUnknown}, {kUnknown}}, "stop 93"},
      {"a hang without a culprit is tried once",
       {{kUnknown, true, "", Progress::kNone, -1, "r", "", kNoTime, true}},
       "again"},
      {"unknown progress counts against the number of attempts alone",
       {{kUnknown, true, "", Progress::kUnknown}, {kUnknown, true, "", Progress::kUnknown}},
       "again"},
      {"which ends it too",
       {{kUnknown, true, "", Progress::kUnknown},
        {kUnknown, true, "", Progress::kUnknown},
        {kUnknown, true, "", Progress::kUnknown},
        {kUnknown, true, "", Progress::kUnknown}},
       "stop 93"},
  };
  for (const auto& row : rows) BOOST_TEST(output(after(row.attempts)) == row.wanted, row.what);
}

namespace {

Means with_code(CodeChoice code) {
  Means means;
  means.code = std::move(code);
  return means;
}

}  // namespace

// Attempts so far, the revisions besides the failed one, and the revision that follows.
BOOST_AUTO_TEST_CASE(a_pending_revision_is_taken_at_a_failure_and_suspected_when_it_fails_otherwise) {
  using enum Restart;
  const CodeChoice pending{"a", "b", ""}, taken{"b", "", "a"}, both{"b", "c", "a"};
  const struct {
    const char* what;
    std::vector<Attempt> attempts;
    CodeChoice code;
    const char* wanted;
    const char* revision;
  } rows[] = {
      {"chance takes the pending one", {{kSame}}, pending, "again", "b"},
      {"so does a host that is left out", {{kElsewhere, true, "n1"}}, pending, "again without n1", "b"},
      {"and a preemption",
       {{kUnknown, true, "", Progress::kNone, -1, "r", "", kNoTime, false, true}},
       pending,
       "again",
       "b"},
      {"a mistake of the program may be mended by it", {{kNever}}, pending, "again", "b"},
      {"what only helps elsewhere is not",
       {{kElsewhere, true, "n1"}, {kElsewhere, true, "n1"}},
       pending,
       "stop 138",
       ""},
      {"without one a mistake stops", {{kNever}}, {"a", "", ""}, "stop 93", ""},
      {"a new failure is the new revision's", {{kNever}}, taken, "again", "a"},
      {"also where another one is pending", {{kNever}}, both, "again", "a"},
      {"an unknown one too", {{kUnknown}}, taken, "again", "a"},
      {"NaN goes back to an older checkpoint too", {{kOlder}}, taken, "older", "a"},
      {"a failure that was there before is not", {{kSame}, {kSame}}, taken, "stop 93", ""},
      {"nor is a host's", {{kElsewhere, true, "n1"}}, taken, "again without n1", ""},
      {"nor a service's", {{kLater}}, taken, "probe", ""},
      {"chance without progress is", {{kSame}}, taken, "again", "a"},
      {"chance after progress is not", {{kSame, true, "", Progress::kMade, 9}}, taken, "again", ""},
  };
  for (const auto& row : rows) {
    Means means = with_code(row.code);
    means.spares = 8;
    const Decision out = after(row.attempts, means);
    BOOST_TEST(output(out) == row.wanted, row.what << ": " << output(out));
    BOOST_TEST(out.revision == row.revision, row.what << ": " << out.revision);
  }
}

BOOST_AUTO_TEST_CASE(limits_hold_for_a_pending_revision_too) {
  Limits limits;
  limits.retries = 1;
  const Decision out = after({{Restart::kSame}, {Restart::kUnknown}}, with_code({"a", "b", ""}), limits);
  BOOST_TEST(!out.again);
  BOOST_TEST(out.revision.empty());
}

BOOST_AUTO_TEST_CASE(a_host_is_left_out_by_the_first_way_that_there_is) {
  const struct {
    Means means;
    Way wanted;
  } rows[] = {{{.spares = 1, .may_shrink = true, .may_requeue = true}, Way::kSpare},
              {{.may_shrink = true, .may_requeue = true}, Way::kShrink},
              {{.may_requeue = true}, Way::kRequeue},
              {{}, Way::kNone}};
  for (const auto& row : rows) {
    const Decision d = after({{Restart::kElsewhere, true, "n1"}}, row.means);
    BOOST_TEST((d.way == row.wanted));
    BOOST_TEST(d.again == (row.wanted != Way::kNone));
    if (!d.again) BOOST_TEST(d.code == kElsewhereHelps);
  }
}

BOOST_AUTO_TEST_CASE(a_storm_a_day_and_the_end_of_the_allocation_stop_any_job) {
  std::vector<Attempt> storm;
  for (int i = 0; i < 5; ++i)
    storm.push_back({Restart::kSame, true, "", Progress::kMade, 100 * i, "r", "", (i + 1) * kMinute});
  BOOST_TEST(output(after(storm)) == "stop 93");
  storm.pop_back();
  BOOST_TEST(output(after(storm)) == "again");
  std::vector<Attempt> day;
  for (int i = 0; i < 20; ++i)
    day.push_back({Restart::kSame, true, "", Progress::kMade, 100 * i, "r", "", (i + 1) * 40 * kMinute});
  BOOST_TEST(output(after(day)) == "stop 93");
  Means ending = with_spares();
  ending.left_ns = 9 * kMinute;
  BOOST_TEST(output(after({{Restart::kSame}}, ending)) == "stop 138");
  BOOST_TEST(output(after({{Restart::kNever}}, ending)) == "stop 93");
}

BOOST_AUTO_TEST_CASE(a_successor_goes_on_where_the_allocation_ends) {
  Means ending = with_spares();
  ending.may_requeue = true;
  ending.left_ns = 9 * kMinute;
  for (const Restart kind : kKinds) {
    const Decision d = after({{kind, kind == Restart::kNever, "n1"}}, ending);
    BOOST_TEST(d.again == (kind != Restart::kNever));
    if (d.again) BOOST_TEST((d.way == Way::kRequeue));
  }
  BOOST_TEST((after({{Restart::kElsewhere, true, "n1"}}, ending).hosts == std::vector<std::string>{"n1"}));
  ending.left_ns = 10 * kMinute;
  BOOST_TEST((after({{Restart::kSame}}, ending).way == Way::kNone));
}

BOOST_AUTO_TEST_CASE(a_preemption_uses_up_no_attempt_but_those_of_a_day) {
  const Attempt preempted{Restart::kSame, true, "", Progress::kNone, 7, "r", "", kNoTime, true, true};
  std::vector<Attempt> attempts(19, preempted);
  BOOST_TEST(output(after(attempts)) == "again");
  attempts.push_back({Restart::kSame, true, "", Progress::kNone, 7});
  attempts.back().at = 200 * kMinute;
  Limits week;
  week.attempts_per_day = 100;
  BOOST_TEST(output(after(attempts, with_spares(), week)) == "again");  // its first failure
  BOOST_TEST(output(after(std::vector<Attempt>(20, preempted))) == "stop 93");
}

BOOST_AUTO_TEST_CASE(waiting_times_double_up_to_a_limit) {
  Limits limits;
  limits.retries = 100;
  std::vector<Attempt> attempts;
  TimeNs last = 0;
  for (int i = 0; i < 10; ++i) {
    attempts.push_back({Restart::kLater});
    const Decision d = after(attempts, with_spares(), limits);
    BOOST_TEST(d.wait_ns >= last);
    last = d.wait_ns;
  }
  BOOST_TEST(last == 10 * kMinute);
  Means early = with_spares();
  early.chance = -1;
  BOOST_TEST(after({{Restart::kSame}}, early).wait_ns == 4 * kNsPerSecond);
}

// Every value, certain or not, with and without a name, of a job that comes no further: whatever comes after
// whatever.
BOOST_AUTO_TEST_CASE(no_sequence_of_failures_runs_for_ever_or_names_a_host_without_reason) {
  std::vector<Attempt> all;
  for (const Restart kind : kKinds)
    for (const bool sure : {true, false})
      for (const char* host : {"", "n1", "n2"})
        for (const Progress progress : {Progress::kNone, Progress::kUnknown})
          all.push_back({kind, sure, host, progress, 7, "r", "n1"});
  size_t seen = 0;
  const auto explore = [&](const auto& self, std::vector<Attempt>& attempts) -> void {
    if (attempts.size() == 3) return;
    for (const Attempt& next : all) {
      attempts.push_back(next);
      const Decision d = after(attempts);
      ++seen;
      BOOST_REQUIRE(!d.why.empty());
      BOOST_REQUIRE(d.again == (d.code == 0));
      if (next.kind == Restart::kNever && next.sure) BOOST_REQUIRE(!d.again);
      // One of them may be named because it failed first twice; otherwise only by the diagnosis.
      if (next.kind != Restart::kElsewhere && next.kind != Restart::kSame) BOOST_REQUIRE(d.hosts.empty());
      if (next.kind == Restart::kUnknown) BOOST_REQUIRE(d.hosts.empty() && d.devices.empty());
      BOOST_REQUIRE(d.older == (d.again && next.kind == Restart::kOlder));
      if (attempts.size() == 1 && !(next.kind == Restart::kNever && next.sure)) BOOST_REQUIRE(d.again);
      if (d.again) self(self, attempts);
      attempts.pop_back();
    }
  };
  std::vector<Attempt> attempts;
  explore(explore, attempts);
  BOOST_TEST(seen > 10'000u);
  // Without progress each of them ends within the attempts that were asked for; a service has two hours.
  for (const Attempt& a : all) {
    std::vector<Attempt> same(a.kind == Restart::kLater ? 20 : 4, a);
    BOOST_TEST(!after(same).again);
  }
}

BOOST_AUTO_TEST_CASE(devices_are_left_out_where_the_job_may_run_without_them) {
  Failure failure = failure_of({Restart::kElsewhere, true, "n1"}, kMinute);
  failure.advice.devices = {"GPU-a"};
  Ledger ledger;
  ledger.add(failure);
  Means means;
  means.may_leave_devices = true;
  const Decision out = decide(ledger, failure, means, {});
  BOOST_TEST((out.again && out.way == Way::kDevices));
  BOOST_TEST((out.hosts.empty() && out.devices == failure.advice.devices));
  BOOST_TEST(out.why == "without GPU-a");
}
