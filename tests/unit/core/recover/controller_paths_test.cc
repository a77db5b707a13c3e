// The controller over all short sequences of inputs, twice each, and over a restart at each point of them.
#include <boost/test/unit_test.hpp>

#include <functional>
#include <set>
#include <vector>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

const ScheduledJob kPathJob = job_named("9");

// The newest attempt that the scheduler knows.
ScheduledJob newest(const Cluster& k) {
  const auto view = k.c.view(key_of(kPathJob));
  return view ? view->job : kPathJob;
}

const ActionOrder* newest_open(const Cluster& k) {
  const ActionRecord* newest_record = nullptr;
  for (const ActionRecord* record : k.c.actions().open())
    if (newest_record == nullptr || record->reserved_ns >= newest_record->reserved_ns) newest_record = record;
  return newest_record == nullptr ? nullptr : &newest_record->order;
}

void answer(Cluster& k, ActionState state) {
  if (const ActionOrder* order = newest_open(k)) k.result(ActionOrder(*order), state, {"n2"});
}

using Event = std::function<void(Cluster&)>;

const std::vector<Event>& events() {
  static const std::vector<Event> kAll = {
      [](Cluster& k) { k.verdict(newest(k), gpu_lost("n1", k.now), true); },
      [](Cluster& k) { k.verdict(newest(k), gpu_lost("n2", k.now), false); },
      [](Cluster& k) { k.verdict(newest(k), forged("n1", k.now), false); },
      [](Cluster& k) { k.verdict(newest(k), software(k.now), false); },
      [](Cluster& k) {
        SuspectsSeen in;
        in.job = newest(k);
        in.stalled = true;
        k.give(in);
      },
      [](Cluster& k) { k.progress(newest(k), k.now / kSecond, true); },
      [](Cluster& k) { k.ended(newest(k), JobEnd::kFailed); },
      [](Cluster& k) { k.ended(newest(k), JobEnd::kPreempted); },
      [](Cluster& k) { k.ended(newest(k), JobEnd::kNodeFailed, {"n3"}); },
      [](Cluster& k) { k.ended(newest(k), JobEnd::kCancelled); },
      [](Cluster& k) {
        ScheduledJob job = newest(k);
        ++job.restarts;
        k.start(job);
      },
      [](Cluster& k) {
        k.give(JobChanged{newest(k), ForeignKind::kHeld, "ann"});
      },
      [](Cluster& k) { answer(k, ActionState::kDone); },
      [](Cluster& k) { answer(k, ActionState::kFailed); },
      [](Cluster& k) { answer(k, ActionState::kAmbiguous); },
      [](Cluster& k) { k.later(15 * kMin); },
      [](Cluster& k) {
        k.give(HostChecked{"n1", CheckAnswer::kPassed, ""});
      },
      [](Cluster& k) {
        HostSeen in;
        in.host = "n1";
        in.out = true;
        in.by = "admin";
        k.give(in);
      },
      [](Cluster& k) {
        k.give(BreakerReset{"ann", kNoTime});
      },
      [](Cluster& k) {
        k.give(Approval{k.question.decision, true, "ann"});
      },
  };
  return kAll;
}

void play(Cluster& k, const std::vector<size_t>& path) {
  k.start(kPathJob);
  k.progress(kPathJob, 1);
  for (const size_t event : path) {
    k.now += kSecond;
    events()[event](k);
  }
}

// Lets time pass without inputs. Returns the number of steps until no limited state is left.
int settle(Cluster& k) {
  for (int steps = 0; steps < 50; ++steps) {
    const std::string state = k.state(kPathJob);
    if (state == "run" || state == "held" || state == "done") return steps;
    const TimeNs next = k.c.next_ns();
    if (next == kNoTime) return 50;
    k.now = std::max(k.now, next);
    k.give(Tick{});
  }
  return 50;
}

uint32_t count_of(const std::vector<std::string>& history, const std::string& line) {
  return static_cast<uint32_t>(std::ranges::count(history, line));
}

template <class F>
uint64_t for_all_paths(size_t length, const F& visit) {
  uint64_t count = 0;
  std::vector<size_t> path(length, 0);
  for (;; ++count) {
    visit(path);
    size_t at = 0;
    while (at < length && ++path[at] == events().size()) path[at++] = 0;
    if (at == length) return count + 1;
  }
}

std::string shown(const std::vector<size_t>& path) {
  std::string out;
  for (const size_t event : path) out += fmt::format("{} ", event);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_short_sequences_end_in_a_state_without_a_limit) {
  for (const Mode mode : {Mode::kObserve, Mode::kAsk, Mode::kAct}) {
    uint64_t bad = 0;
    std::string first;
    std::set<std::string> states;
    const uint64_t paths = for_all_paths(mode == Mode::kAct ? 3 : 2, [&](const std::vector<size_t>& path) {
      Cluster k(acting(mode));
      play(k, path);
      states.insert(k.state(kPathJob));
      const bool settles = settle(k) < 50;
      const bool silent = mode != Mode::kObserve || k.c.actions().size() == 0;
      if (settles && silent) return;
      if (bad++ == 0) first = shown(path);
    });
    BOOST_TEST(bad == 0u, to_string(mode) << ": " << bad << " of " << paths << ", first " << first);
    BOOST_TEST_MESSAGE(to_string(mode) << ": " << paths << " sequences, " << states.size() << " states");
  }
}

BOOST_AUTO_TEST_CASE(equal_inputs_give_equal_orders) {
  for_all_paths(2, [&](const std::vector<size_t>& path) {
    Cluster a, b;
    play(a, path);
    play(b, path);
    BOOST_TEST(a.history == b.history, shown(path));
  });
}

namespace {

// The collector after a restart. `carried_out`: the executor did what was reserved before the kill.
bool restarts(const Cluster& before, bool carried_out, Cluster& after) {
  bool loads = true;
  for (const auto& [op, row] : before.stored_actions) loads = loads && after.c.load(ActionRecord(row));
  for (const auto& [key, row] : before.stored_attempts) loads = loads && after.c.load(AttemptRecord(row));
  for (const auto& [key, row] : before.stored_machines) after.c.load(MachineRecord(row));
  after.now = before.now + 2 * kSecond;
  Restored in;
  for (const ActionRecord* record : before.c.actions().open())
    in.read.push_back({record->order.op, carried_out, true});
  after.give(in);
  return loads;
}

// Another member, which gained the job.
void moves(const Cluster& before, Cluster& after) {
  after.now = before.now + 2 * kSecond;
  after.c.lost_ledger(after.now);
  after.give(Restored{});
  JobAdopted in;
  for (const auto& [op, row] : before.stored_actions)
    if (!row.order.job.id.empty()) in.actions.push_back(row);
  for (const auto& [key, row] : before.stored_attempts) in.attempts.push_back(row);
  in.job = in.attempts.back().job;
  LedgerSeen seen;
  for (const auto& [key, row] : before.stored_machines) seen.machines.push_back(row);
  after.give(seen);
  after.give(in);
}

// Whether an order of before the restart came again although it was carried out or settled, or an open one
// did not come again although it was not carried out.
bool repeats_or_loses(const Cluster& before, bool carried_out, const Cluster& after) {
  std::set<std::string> open, young, again;
  for (const ActionRecord* record : before.c.actions().open()) {
    open.insert(record->order.op);
    if (after.now - record->reserved_ns < Actions::kRepeatWithin) young.insert(record->order.op);
  }
  for (const ActionOrder& order : after.orders)
    if (before.stored_actions.contains(order.op)) again.insert(order.op);
  for (const std::string& op : again)
    if (carried_out || !open.contains(op)) return true;
  for (const std::string& op : young)
    if (!carried_out && !again.contains(op)) return true;
  return false;
}

bool was_started(const Cluster& k) {
  return std::ranges::any_of(k.history, [](const auto& line) { return line.starts_with("run-again"); });
}

// Every order is answered, until the job runs again or no state with a limit is left.
bool starts_again(Cluster& k) {
  for (int steps = 0; steps < 40 && !was_started(k); ++steps) {
    if (newest_open(k) != nullptr) {
      answer(k, ActionState::kDone);
      continue;
    }
    const std::string state = k.state(kPathJob);
    if (state == "run" || state == "held" || state == "done" || k.c.next_ns() == kNoTime) break;
    k.now = std::max(k.now, k.c.next_ns());
    k.give(Tick{});
  }
  return was_started(k);
}

}  // namespace

// The collector is killed after each input of each sequence.
BOOST_AUTO_TEST_CASE(a_restart_repeats_no_action_and_loses_none) {
  uint64_t bad = 0, count = 0;
  std::string first;
  for_all_paths(3, [&](const std::vector<size_t>& path) {
    for (const bool carried_out : {false, true}) {
      Cluster before, after;
      play(before, path);
      const bool loads = restarts(before, carried_out, after);
      ++count;
      if (loads && !repeats_or_loses(before, carried_out, after) && settle(after) < 50) continue;
      if (bad++ == 0) first = shown(path) + (carried_out ? "done" : "not done");
    }
  });
  BOOST_TEST(bad == 0u, bad << " of " << count << ", first " << first);
  BOOST_TEST_MESSAGE(count << " restarts");
}

// A job that would have been started again is started again after a restart too, and no other is.
BOOST_AUTO_TEST_CASE(a_restart_loses_no_job) {
  uint64_t lost = 0, wrong = 0, started = 0;
  std::string first;
  for_all_paths(2, [&](const std::vector<size_t>& path) {
    Cluster before, after;
    play(before, path);
    if (was_started(before) || !restarts(before, true, after)) return;
    const std::string state = before.state(kPathJob);
    if (state == "verify") return;  // the engine reports a standstill by itself
    // The engine says again what holds of a running attempt, and the scheduler that the job is held.
    for (size_t i = 0; i < path.size(); ++i) {
      const bool over = i + 1 < path.size() && (path[i + 1] == 5 || path[i + 1] == 10);
      const bool holds = path[i] < 5 && !over && (state == "run" || state == "suspect");
      if (holds || (path[i] == 11 && i + 1 == path.size())) events()[path[i]](after);
    }
    const bool again = starts_again(after);
    const bool wanted = starts_again(before);
    started += again;
    lost += wanted && !again;
    wrong += again && !wanted;
    if (wanted != again) first += fmt::format("[{}{} {}]", shown(path), state, again ? "wrong" : "lost");
  });
  BOOST_TEST(started > 0u);
  BOOST_TEST(lost == 0u, lost << " lost: " << first);
  BOOST_TEST(wrong == 0u, wrong << " wrong: " << first);
}

// The job goes to another member after each input: what has no result is left to people, and nothing is done
// that was done before.
BOOST_AUTO_TEST_CASE(a_job_that_moves_to_another_member_goes_on_there) {
  uint64_t lost = 0, wrong = 0, twice = 0, started = 0;
  std::string first;
  for_all_paths(2, [&](const std::vector<size_t>& path) {
    Cluster before, after;
    play(before, path);
    const std::string state = before.state(kPathJob);
    const bool open = !before.c.actions().open().empty();
    if (was_started(before) || open || state == "done" || state == "verify") return;
    moves(before, after);
    BOOST_TEST(after.c.view(key_of(kPathJob))->attempt == before.c.view(key_of(kPathJob))->attempt);
    for (size_t i = 0; i < path.size(); ++i) {
      const bool over = i + 1 < path.size() && (path[i + 1] == 5 || path[i + 1] == 10);
      const bool holds = path[i] < 5 && !over && (state == "run" || state == "suspect");
      if (holds || (path[i] == 11 && i + 1 == path.size())) events()[path[i]](after);
    }
    const bool again = starts_again(after);
    const bool wanted = starts_again(before);
    for (const auto& [op, row] : before.stored_actions)
      twice += row.state == ActionState::kDone && after.stored_actions.contains(op);
    started += again;
    lost += wanted && !again;
    wrong += again && !wanted;
    if (wanted != again) first += fmt::format("[{}{} {}]", shown(path), state, again ? "wrong" : "lost");
  });
  BOOST_TEST(started > 0u);
  BOOST_TEST(twice == 0u);
  BOOST_TEST(lost == 0u, lost << " lost: " << first);
  BOOST_TEST(wrong == 0u, wrong << " wrong: " << first);
}

// Too old, not read, or no longer possible: abandoned.
BOOST_AUTO_TEST_CASE(an_old_reserved_action_is_abandoned_after_a_restart) {
  const struct {
    TimeNs later;
    bool read, holds;
    uint32_t wanted;
  } rows[] = {{2 * kSecond, true, true, 1},
              {61 * kSecond, true, true, 0},
              {2 * kSecond, true, false, 0},
              {2 * kSecond, false, true, 0}};
  for (const auto& row : rows) {
    Cluster before;
    before.start(kPathJob);
    before.verdict(kPathJob, gpu_lost("n1", before.now), false);
    Cluster after;
    for (const auto& [op, stored] : before.stored_actions) BOOST_TEST(after.c.load(ActionRecord(stored)));
    after.now = before.now + row.later;
    Restored in;
    if (row.read) in.read.push_back({before.orders[0].op, false, row.holds});
    after.give(in);
    BOOST_TEST(count_of(after.history, "isolate n1") == row.wanted);
    const ActionState state = after.c.actions().find(before.orders[0].op)->state;
    BOOST_TEST((state == (row.wanted == 1 ? ActionState::kReserved : ActionState::kAbandoned)));
  }
}

// NVSentinel ADR-056: an unreadable ledger is not an empty one.
BOOST_AUTO_TEST_CASE(a_row_that_contradicts_itself_is_refused) {
  Cluster k;
  k.start(kPathJob);
  k.verdict(kPathJob, gpu_lost("n1", k.now), false);
  const ActionRecord good = k.stored_actions.begin()->second;
  ActionRecord other_target = good, no_end = good, no_begin = good;
  other_target.order.target = "n7";
  no_end.state = ActionState::kDone;
  no_begin.reserved_ns = kNoTime;
  for (const ActionRecord& bad : {other_target, no_end, no_begin}) {
    Controller fresh;
    BOOST_TEST(!fresh.load(ActionRecord(bad)));
  }
  Controller fresh;
  BOOST_TEST(fresh.load(ActionRecord(good)));
  BOOST_TEST(!fresh.load(ActionRecord(good)));
}

BOOST_AUTO_TEST_CASE(breaker_veto_and_probation_survive_a_restart) {
  Cluster k(acting(), 100);
  k.start(kPathJob);
  k.verdict(kPathJob, gpu_lost("n1", k.now), false);
  k.all_done();
  HostSeen seen;
  seen.host = "n1";
  seen.by = "ann";
  k.now += kSecond;
  k.give(seen);
  Cluster after(acting(), 100);
  for (const auto& [op, row] : k.stored_actions) BOOST_TEST(after.c.load(ActionRecord(row)));
  for (const auto& [key, row] : k.stored_machines) after.c.load(MachineRecord(row));
  after.now = k.now + kMin;
  after.give(Restored{});
  BOOST_TEST(after.c.guard().on_probation("n1", after.now));
  const ScheduledJob other = job_named("10");
  after.start(other);
  BOOST_TEST((after.verdict(other, gpu_lost("n1", after.now), false) == Lines{"run-again 10 -n1"}));
  BOOST_TEST(after.noted(NoteKind::kRefused, "a person returned n1"));
}
