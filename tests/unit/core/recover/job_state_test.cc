// The state table, explored as a whole: all pairs of state and evidence under all facts, and all ways that
// lead from state to state.
#include "core/recover/job_state.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace culprit;
using namespace culprit::recover;

namespace {

constexpr uint32_t kFactBits = 15;

Facts facts_from(uint32_t bits, Permit permit, Symptom symptom) {
  Facts f;
  bool* const flags[kFactBits] = {&f.stalled, &f.ends_job,  &f.sure,        &f.isolates,     &f.checks,
                                  &f.again,   &f.placeable, &f.waiting,     &f.alive,        &f.runs,
                                  &f.pending, &f.patient,   &f.may_restart, &f.breaker_open, &f.frees};
  for (uint32_t i = 0; i < kFactBits; ++i) *flags[i] = (bits >> i & 1) != 0;
  f.permit = permit;
  f.symptom = symptom;
  return f;
}

constexpr Permit kPermits[] = {Permit::kObserve, Permit::kAsk, Permit::kGranted};
constexpr Symptom kSymptoms[] = {Symptom::kCrash, Symptom::kNumeric};

template <class F>
uint64_t for_all_facts(const F& visit) {
  uint64_t count = 0;
  for (const Permit permit : kPermits)
    for (const Symptom symptom : kSymptoms)
      for (uint32_t bits = 0; bits < 1u << kFactBits; ++bits, ++count)
        visit(facts_from(bits, permit, symptom));
  return count;
}

template <class F>
void for_all_pairs(const F& visit) {
  for (size_t s = 0; s < kJobStates; ++s)
    for (size_t e = 0; e < kEvidences; ++e) visit(static_cast<JobState>(s), static_cast<JobEvidence>(e));
}

constexpr DoSet kOrders = DoSet(Do::kEndTasks) | Do::kCheckHosts | Do::kIsolateHosts | Do::kRunAgain;
bool gives_order(const Transition& t) { return (t.what.bits & kOrders.bits) != 0; }

// What another actor or the job itself brings about: these may happen without bound.
bool is_from_outside(JobEvidence e) {
  return e == JobEvidence::kProgress || e == JobEvidence::kStartedByOthers || e == JobEvidence::kApproved;
}

struct Broken {
  std::string first;
  uint64_t count = 0;
  void add(JobState s, JobEvidence e, const char* what) {
    if (count++ == 0) first = std::string(to_string(s)) + " x " + std::string(to_string(e)) + ": " + what;
  }
};

void check_pair(JobState s, JobEvidence e, const Facts& f, Broken& broken) {
  const Transition t = next(s, e, f);
  const auto must = [&](bool holds, const char* what) {
    if (!holds) broken.add(s, e, what);
  };
  must(static_cast<size_t>(t.next) < kJobStates, "a state that does not exist");
  must(t.next == s || !t.why.empty(), "a change without a reason");
  must(s != JobState::kDone || (t.next == JobState::kDone && t.what == DoSet()), "done acts");
  must(!gives_order(t) || f.permit == Permit::kGranted, "an order that is not permitted");
  must(!t.what.has(Do::kEndTasks) || f.may_restart, "ends tasks although the stage is off");
  must(!t.what.has(Do::kRunAgain) || (f.may_restart && f.again && f.placeable), "starts what must not start");
  must(!t.what.has(Do::kIsolateHosts) || (f.isolates && !f.breaker_open), "isolates against the breaker");
  must(!t.what.has(Do::kWouldDo) || f.permit == Permit::kObserve, "notes a wish although it may act");
  must(!t.what.has(Do::kAsk) || f.permit == Permit::kAsk, "asks although it need not");
  must(s != JobState::kHeld || e == JobEvidence::kApproved || !gives_order(t), "held acts");
  const bool ends = e == JobEvidence::kCompleted || e == JobEvidence::kCancelled;
  must(!ends || t.next == JobState::kDone, "goes on after the scheduler's good end");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_pair_of_state_and_evidence_is_handled_under_all_facts) {
  Broken broken;
  uint64_t explored = 0;
  const uint64_t facts = for_all_facts([&](const Facts& f) {
    for_all_pairs([&](JobState s, JobEvidence e) {
      check_pair(s, e, f, broken);
      ++explored;
    });
  });
  BOOST_TEST(broken.count == 0u, broken.first << " (" << broken.count << " times)");
  BOOST_TEST_MESSAGE("explored " << kJobStates * kEvidences << " pairs under " << facts
                                 << " facts: " << explored << " cases");
  BOOST_TEST(explored == 10u * 19 * 3 * 2 * (1u << kFactBits));
}

BOOST_AUTO_TEST_CASE(every_limited_state_is_left_at_its_limit) {
  using enum JobState;
  Broken broken;
  for_all_facts([&](const Facts& f) {
    for (const JobState s : {kSuspect, kStop, kCheck, kIsolate, kPlace, kRestart, kVerify}) {
      const bool pends = f.pending && f.patient && !f.runs && !(f.frees && f.permit == Permit::kGranted);
      const bool waits = (s == kPlace && f.waiting) || (s == kRestart && pends);
      const Transition t = next(s, JobEvidence::kLimit, f);
      if ((t.next == s) != waits) broken.add(s, JobEvidence::kLimit, "stays");
    }
  });
  BOOST_TEST(broken.count == 0u, broken.first << " (" << broken.count << " times)");
  for (const JobState s : {kSuspect, kStop, kCheck, kIsolate, kPlace, kRestart, kVerify, kHeld})
    BOOST_TEST(limit_of(s, Bounds{}, kNoTime) != kNoTime, to_string(s));
  for (const JobState s : {kRun, kDone}) BOOST_TEST(limit_of(s, Bounds{}, kNoTime) == kNoTime, to_string(s));
}

BOOST_AUTO_TEST_CASE(the_verification_takes_three_times_the_last_start) {
  const TimeNs minute = 60 * kNsPerSecond;
  BOOST_TEST(limit_of(JobState::kVerify, Bounds{}, 2 * minute) == 10 * minute);
  BOOST_TEST(limit_of(JobState::kVerify, Bounds{}, 20 * minute) == 60 * minute);
}

namespace {

// State, attempts that decide() still allows, hosts that may still be isolated.
using Place = std::tuple<JobState, int, int>;

struct TableWay {
  JobState next;
  bool starts, isolates, orders;
  auto operator<=>(const TableWay&) const = default;
};

// The transitions of a state, without those of progress and other actors unless `with_outside`.
std::set<TableWay> ways_of(JobState state, bool again, bool isolates, bool with_outside) {
  std::array<bool, kJobStates * 8> seen{};
  for (uint32_t bits = 0; bits < 1u << kFactBits; ++bits)
    for (const Symptom symptom : kSymptoms) {
      const Facts f = facts_from(bits, Permit::kGranted, symptom);
      if (f.again != again || (f.isolates && !isolates)) continue;
      for (size_t i = 0; i < kEvidences; ++i) {
        const auto e = static_cast<JobEvidence>(i);
        if (!with_outside && is_from_outside(e)) continue;
        const Transition t = next(state, e, f);
        seen[static_cast<size_t>(t.next) * 8 + t.what.has(Do::kRunAgain) * 4 +
             t.what.has(Do::kIsolateHosts) * 2 + gives_order(t)] = true;
      }
    }
  std::set<TableWay> out;
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) out.insert({static_cast<JobState>(i / 8), (i & 4) != 0, (i & 2) != 0, (i & 1) != 0});
  return out;
}

// All places that follow from one, each with whether an order is given. Attempts and hosts are used up by
// orders.
std::set<std::pair<Place, bool>> follow(const Place& from, bool with_outside) {
  static std::map<std::tuple<JobState, bool, bool, bool>, std::set<TableWay>> known;
  const auto [state, attempts, hosts] = from;
  const std::tuple key(state, attempts > 0, hosts > 0, with_outside);
  if (!known.contains(key)) known[key] = ways_of(state, attempts > 0, hosts > 0, with_outside);
  std::set<std::pair<Place, bool>> out;
  for (const TableWay& w : known[key])
    out.insert({{w.next, attempts - w.starts, hosts - w.isolates}, w.orders});
  return out;
}

using Ways = std::map<Place, std::set<std::pair<Place, bool>>>;

Ways ways_from(const Place& first, bool with_outside) {
  Ways ways;
  std::deque<Place> open = {first};
  while (!open.empty()) {
    const Place at = open.front();
    open.pop_front();
    if (ways.contains(at)) continue;
    ways[at] = follow(at, with_outside);
    for (const auto& [to, orders] : ways[at]) open.push_back(to);
  }
  return ways;
}

std::set<Place> reachable(const Ways& ways, const Place& from) {
  std::set<Place> seen;
  std::deque<Place> open = {from};
  while (!open.empty()) {
    const Place at = open.front();
    open.pop_front();
    if (!seen.insert(at).second) continue;
    for (const auto& [to, orders] : ways.at(at)) open.push_back(to);
  }
  return seen;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_cycle_gives_orders_without_progress_or_budget) {
  const Ways ways = ways_from({JobState::kRun, 3, 2}, false);
  size_t steps = 0, cycles = 0;
  for (const auto& [from, all] : ways)
    for (const auto& [to, orders] : all) {
      ++steps;
      if (!orders || !reachable(ways, to).contains(from)) continue;
      ++cycles;
      BOOST_TEST_MESSAGE("cycle through " << to_string(std::get<0>(from)) << " -> "
                                          << to_string(std::get<0>(to)));
    }
  BOOST_TEST(cycles == 0u);
  BOOST_TEST_MESSAGE("explored " << ways.size() << " places and " << steps << " steps");
}

BOOST_AUTO_TEST_CASE(no_state_is_a_dead_end) {
  const Ways ways = ways_from({JobState::kRun, 3, 2}, true);
  std::set<JobState> seen;
  for (const auto& [from, all] : ways) {
    const JobState state = std::get<0>(from);
    seen.insert(state);
    if (state == JobState::kDone) continue;
    bool runs = false, ends = false;
    for (const Place& to : reachable(ways, from)) {
      runs = runs || std::get<0>(to) == JobState::kRun;
      ends = ends || std::get<0>(to) == JobState::kDone;
    }
    BOOST_TEST(runs, to_string(state));
    BOOST_TEST(ends, to_string(state));
  }
  BOOST_TEST(seen.size() == kJobStates);
}

namespace {

// Facts of the rows below: all may be done, and one more attempt follows, but for these.
enum class F {
  kAct,
  kIsolates,
  kHangs,
  kBreaker,
  kChecks,
  kStops,
  kAlive,
  kNumbers,
  kPending,
  kImpatient,
  kWaiting,
  kNoHost
};

Facts facts_of(F which) {
  Facts f;
  f.permit = Permit::kGranted;
  f.may_restart = f.again = f.sure = f.runs = true;
  f.isolates = which == F::kIsolates || which == F::kBreaker || which == F::kChecks;
  f.breaker_open = which == F::kBreaker;
  f.checks = which == F::kChecks;
  f.stalled = which == F::kHangs;
  f.alive = which == F::kHangs || which == F::kAlive || which == F::kNumbers;
  f.symptom = which == F::kNumbers ? Symptom::kNumeric : Symptom::kOther;
  f.again = which != F::kStops;
  f.placeable = which != F::kNoHost;
  f.pending = which == F::kPending || which == F::kImpatient;
  f.patient = which != F::kImpatient;
  f.runs = !f.pending && which != F::kWaiting;
  return f;
}

struct TableRow {
  JobState state;
  JobEvidence evidence;
  F facts;
  JobState wanted;
};

std::vector<TableRow> table_rows() {
  using enum JobState;
  using enum JobEvidence;
  return {
      {kRun, kVerdictEnded, F::kIsolates, kIsolate},
      {kRun, kVerdictEnded, F::kAct, kPlace},
      {kRun, kVerdictEnded, F::kChecks, kCheck},
      {kRun, kVerdictEnded, F::kStops, kHeld},
      {kRun, kVerdictEnded, F::kBreaker, kPlace},
      {kRun, kVerdictAlive, F::kHangs, kStop},
      {kRun, kVerdictAlive, F::kAlive, kRun},
      {kRun, kVerdictAlive, F::kNumbers, kRun},
      {kRun, kSuspects, F::kAct, kSuspect},
      {kRun, kCompleted, F::kAct, kDone},
      {kRun, kCancelled, F::kAct, kDone},
      {kRun, kTakenAway, F::kAct, kPlace},
      {kRun, kNodeFailed, F::kAct, kPlace},
      {kRun, kStartedByOthers, F::kAct, kRun},
      {kSuspect, kProgress, F::kAct, kRun},
      {kSuspect, kLimit, F::kHangs, kStop},
      {kSuspect, kLimit, F::kAlive, kRun},
      {kSuspect, kVerdictEnded, F::kIsolates, kIsolate},
      {kStop, kVerdictAlive, F::kHangs, kStop},
      {kStop, kProgress, F::kAct, kRun},
      {kStop, kFailed, F::kAct, kPlace},
      {kStop, kCancelled, F::kAct, kDone},
      {kStop, kLimit, F::kIsolates, kIsolate},
      {kCheck, kHostByOthers, F::kAct, kHeld},
      {kCheck, kLimit, F::kAct, kPlace},
      {kCheck, kChecked, F::kIsolates, kIsolate},
      {kIsolate, kHostByOthers, F::kAct, kIsolate},
      {kIsolate, kLimit, F::kAct, kPlace},
      {kIsolate, kActionsFailed, F::kAct, kPlace},
      {kPlace, kLimit, F::kAct, kRestart},
      {kPlace, kLimit, F::kNoHost, kHeld},
      {kRestart, kVerdictEnded, F::kIsolates, kIsolate},
      {kRestart, kProgress, F::kAct, kRun},
      {kRestart, kCancelled, F::kAct, kDone},
      {kRestart, kStartedByOthers, F::kAct, kVerify},
      {kRestart, kLimit, F::kPending, kRestart},
      {kRestart, kLimit, F::kImpatient, kHeld},
      {kRestart, kLimit, F::kWaiting, kHeld},
      {kRestart, kHeldByOthers, F::kAct, kHeld},
      {kVerify, kVerdictEnded, F::kStops, kHeld},
      {kVerify, kVerdictEnded, F::kIsolates, kIsolate},
      {kVerify, kSuspects, F::kAct, kVerify},
      {kVerify, kProgress, F::kAct, kRun},
      {kVerify, kStartedByOthers, F::kAct, kRun},
      {kVerify, kLimit, F::kHangs, kStop},
      {kHeld, kVerdictEnded, F::kIsolates, kHeld},
      {kHeld, kSuspects, F::kAct, kHeld},
      {kHeld, kProgress, F::kAct, kRun},
      {kHeld, kCompleted, F::kAct, kDone},
      {kHeld, kStartedByOthers, F::kAct, kRun},
      {kHeld, kLimit, F::kAct, kHeld},
      {kDone, kVerdictEnded, F::kIsolates, kDone},
  };
}

}  // namespace

// One row of the table in daemon/docs/recover.md each.
BOOST_AUTO_TEST_CASE(the_rows_of_the_table) {
  for (const TableRow& row : table_rows())
    BOOST_TEST(to_string(next(row.state, row.evidence, facts_of(row.facts)).next) == to_string(row.wanted),
               to_string(row.state) << " x " << to_string(row.evidence));
}
