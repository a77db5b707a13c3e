// Several collectors that share partitions over one database, in virtual time, one run per seed. The members
// are core/cluster's. The database is a model of the statements of store/postgres: each is carried out at
// once, by the database's own clock. Members are paused, killed and started again. Connections break, before
// or after the statement, which may also be carried out long after its client gave up. Clocks of hosts drift,
// and in some runs the database's clock steps. After all faults end, each partition must have one owner, and
// each member its share.
//
//   sim_cluster [--seeds N] [--from SEED] [--seed SEED]
//
// Broken promises: two members commit an action in one epoch; a commit with an epoch that is not the newest;
// two members believe at once that they own a partition, unless the database's clock stepped; a restart
// within the lease moves a partition; a member takes two partitions within five seconds. A failure prints its
// seed; --seed runs it alone and prints its events.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/cluster/member.h"

namespace culprit::sim {
namespace {

using cluster::kPartitions;
using cluster::Member;

constexpr TimeNs kMs = kNsPerMs, kS = kNsPerSecond;
constexpr cluster::Timing kTiming;
constexpr TimeNs kStartAt = 1000 * kS;

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(mix64(seed, 99)) {}
  uint64_t below(uint64_t n) { return (state_ = mix64(state_, 1)) % n; }
  TimeNs range(TimeNs from, TimeNs to) {
    return from + static_cast<TimeNs>(below(static_cast<uint64_t>(to - from) + 1));
  }
  bool chance(uint64_t per_cent) { return below(100) < per_cent; }

 private:
  uint64_t state_;
};

// The statements of store/postgres/cluster_store.cc.
class Database {
 public:
  TimeNs skew_ns = 0;  // of its clock
  bool up = true;

  std::vector<PartHold> adopt(const std::string& me, const std::vector<PartHold>& held, TimeNs now) {
    std::vector<PartHold> out;
    for (uint32_t part = 0; part < kPartitions; ++part) {
      Row& row = rows_[part];
      const auto is_it = [&](const PartHold& one) { return one.part == part; };
      if (row.owner != me || std::ranges::any_of(held, is_it)) continue;
      out.push_back({part, ++row.epoch});
      row.until_ns = now + skew_ns + kTiming.lease_ns;
    }
    return out;
  }
  std::vector<uint32_t> renew(const std::string& me, const std::vector<PartHold>& held, TimeNs now) {
    std::vector<uint32_t> out;
    for (const PartHold& one : held) {
      Row& row = rows_[one.part];
      if (row.owner != me || row.epoch != one.epoch) continue;
      row.until_ns = now + skew_ns + kTiming.lease_ns;
      out.push_back(one.part);
    }
    return out;
  }
  std::optional<PartHold> take(const std::string& me, const std::vector<PartHold>& held, TimeNs now,
                               uint64_t from) {
    for (uint64_t i = 0; i < kPartitions; ++i) {
      const auto part = static_cast<uint32_t>((from + i) % kPartitions);
      Row& row = rows_[part];
      const auto is_it = [&](const PartHold& one) { return one.part == part; };
      if (std::ranges::any_of(held, is_it)) continue;
      if (!row.owner.empty() && row.until_ns >= now + skew_ns) continue;
      const bool free_long = row.until_ns < now + skew_ns - 60 * kS;
      if (!free_long && held.size() >= share(now)) continue;
      row = {me, row.epoch + 1, now + skew_ns + kTiming.lease_ns};
      ++takes;
      return PartHold{part, row.epoch};
    }
    return std::nullopt;
  }
  void give(const std::string& me, const PartHold& one, TimeNs now) {
    Row& row = rows_[one.part];
    if (row.owner != me || row.epoch != one.epoch) return;
    row.owner.clear();
    row.until_ns = now + skew_ns;
    ++gives;
  }
  void seen(const std::string& me, bool takes_any, TimeNs now) { members_[me] = {now + skew_ns, takes_any}; }
  ClusterView view(TimeNs now) const {
    ClusterView out;
    for (const auto& [name, at] : members_)
      out.members.push_back({name, "", std::max<TimeNs>(0, now + skew_ns - at.first), at.second});
    for (uint32_t part = 0; part < kPartitions; ++part)
      out.parts.push_back({part, rows_[part].owner, rows_[part].epoch, rows_[part].until_ns - now - skew_ns});
    return out;
  }
  void give_back(const std::string& me, const std::vector<PartHold>& held, TimeNs now) {
    members_[me].second = false;
    for (const PartHold& one : held)
      if (Row& row = rows_[one.part]; row.owner == me && row.epoch == one.epoch)
        row.until_ns = std::min(row.until_ns, now + skew_ns + 10 * kS);
  }
  // Whether the action's row was inserted.
  bool commit(const std::string& me, const PartHold& with) {
    const Row& row = rows_[with.part];
    return row.owner == me && row.epoch == with.epoch;
  }
  std::string owner(uint32_t part) const { return rows_[part].owner; }
  uint64_t epoch(uint32_t part) const { return rows_[part].epoch; }
  std::string living_owner(uint32_t part, TimeNs now) const {
    return rows_[part].until_ns < now + skew_ns ? "" : rows_[part].owner;
  }
  uint64_t takes = 0, gives = 0;

 private:
  size_t share(TimeNs now) const {
    const auto live = std::ranges::count_if(members_, [&](const auto& one) {
      return one.second.second && one.second.first > now + skew_ns - kTiming.lease_ns;
    });
    const size_t members = std::max<size_t>(1, static_cast<size_t>(live));
    return (kPartitions + members - 1) / members;
  }
  std::map<std::string, std::pair<TimeNs, bool>> members_;  // when they were seen; whether they take any
  struct Row {
    std::string owner;
    uint64_t epoch = 0;
    TimeNs until_ns = 0;
  };
  std::array<Row, kPartitions> rows_;
};

struct Totals {
  std::map<std::string, uint64_t> faults;
  uint64_t commits = 0, fenced = 0, takes = 0, gives = 0;
};

class ClusterRun {
 public:
  ClusterRun(uint64_t seed, bool prints)
      : dice_(seed),
        prints_(prints),
        steps_clock_(dice_.chance(30)),
        cuts_(dice_.chance(70)),
        pauses_(dice_.chance(70)),
        kills_(dice_.chance(70)),
        outages_(dice_.chance(50)) {
    const uint64_t members = 2 + dice_.below(4);
    for (uint64_t i = 0; i < members; ++i) {
      Node& node = nodes_.emplace_back();
      node.name = fmt::format("c{}", i);
      node.drift_ppm = dice_.range(-500, 500);
      node.boot_ns = dice_.range(0, 1000) * kS;
    }
  }

  std::string run(Totals& totals) {
    for (size_t i = 0; i < nodes_.size(); ++i) at(dice_.range(0, 20 * kS), [this, i] { start(i); });
    for (TimeNs when = 30 * kS; when < kFaultsEnd; when += dice_.range(2 * kS, 25 * kS))
      at(when, [this] { fault(); });
    at(kFaultsEnd, [this] { mend(); });
    const TimeNs end = kFaultsEnd + 2 * 64 * kTiming.take_ns + 120 * kS;
    while (!events_.empty() && now_ < end && broken_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.when;
      (*event.what)();
      look();
    }
    if (broken_.empty()) settle();
    for (const auto& [name, n] : faults_) totals.faults[name] += n;
    totals.commits += commits_;
    totals.fenced += fenced_;
    totals.takes += database_.takes;
    totals.gives += database_.gives;
    return broken_;
  }

 private:
  static constexpr TimeNs kFaultsEnd = 400 * kS;

  struct Node {
    std::string name;
    TimeNs drift_ppm = 0, boot_ns = 0;
    bool up = false;
    uint64_t process = 0;  // the number of the process: what is of an earlier one is dropped
    TimeNs paused_until_ns = 0;
    std::unique_ptr<Member> member;
    TimeNs took_ns = kNoTime;  // when this process last decided to take one
    ClusterView view;          // as last read
    bool takes = true;
  };
  struct Event {
    TimeNs when = 0;
    uint64_t number = 0;
    std::shared_ptr<std::function<void()>> what;
    bool operator<(const Event& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };

  void at(TimeNs when, std::function<void()> what) {
    events_.push({when, ++number_, std::make_shared<std::function<void()>>(std::move(what))});
  }
  void after(TimeNs span, std::function<void()> what) { at(now_ + span, std::move(what)); }
  void tell(const std::string& what) const {
    if (prints_) fmt::print("{:9.3f} {}\n", static_cast<double>(now_) / 1e9, what);
  }
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = fmt::format("{} (at {:.3f} s)", what, static_cast<double>(now_) / 1e9);
    tell("BROKEN " + what);
  }
  void count(const std::string& what) { ++faults_[what]; }

  // The host's CLOCK_BOOTTIME: it never steps, and runs at a rate of its own.
  TimeNs boot(const Node& node) const {
    return kStartAt + node.boot_ns + now_ + now_ / 1'000'000 * node.drift_ppm;
  }

  // ---- members

  void start(size_t i) {
    Node& node = nodes_[i];
    if (node.up) return;
    node.up = true;
    node.process = ++number_;
    node.member = std::make_unique<Member>();
    node.took_ns = kNoTime;
    tell(node.name + " starts");
    tick(i, node.process);
    act(i, node.process);
  }
  // Whether the process still exists; one that is paused does its work when it wakes.
  bool runs(size_t i, uint64_t process, const std::function<void()>& again) {
    Node& node = nodes_[i];
    if (!node.up || node.process != process) return false;
    if (now_ >= node.paused_until_ns) return true;
    at(node.paused_until_ns + dice_.range(0, 5 * kMs), again);
    return false;
  }
  void tick(size_t i, uint64_t process) {
    if (!runs(i, process, [=, this] { tick(i, process); })) return;
    Node& node = nodes_[i];
    node.takes = now_ > kFaultsEnd || !dice_.chance(5);
    const bool gives =
        node.member->is_fresh(boot(node)) && cluster::has_surplus(node.view, node.name, kTiming.lease_ns);
    if (auto work = node.member->due(boot(node), {node.takes, gives})) {
      if (work->take && node.took_ns != kNoTime && boot(node) - node.took_ns < kTiming.take_ns)
        broken(node.name + " takes two partitions in five seconds");
      if (work->take) node.took_ns = boot(node);
      ask(i, std::move(*work));
    }
    after(500 * kMs, [=, this] { tick(i, process); });
  }
  TimeNs delay() { return cuts_ && dice_.chance(3) ? dice_.range(0, 8 * kS) : dice_.range(kMs / 5, 5 * kMs); }

  struct Round {
    size_t node = 0;
    uint64_t process = 0;
    Member::Work work;
    Member::Answer answer;
    ClusterView view;
    bool takes = true;
    bool given_up = false;
  };
  // One round: a statement after the other, each at its own time.
  void ask(size_t i, Member::Work work) {
    const auto round = std::make_shared<Round>();
    round->node = i, round->process = nodes_[i].process, round->work = std::move(work);
    round->takes = nodes_[i].takes;
    after(4 * kS, [=, this] { give_up(round); });
    after(delay(), [=, this] { statement(round, 0); });
  }
  void give_up(const std::shared_ptr<Round>& round) {
    if (round->given_up) return;
    if (!runs(round->node, round->process, [=, this] { give_up(round); })) return;
    round->given_up = true;  // what was sent may still be carried out
    Node& node = nodes_[round->node];
    node.member->failed(boot(node));
  }
  void statement(const std::shared_ptr<Round>& round, int step) {
    if (!database_.up || (cuts_ && dice_.chance(1))) return count("statement lost");
    const std::string& me = nodes_[round->node].name;
    std::vector<PartHold> known = round->work.renew;
    if (round->work.give) known.push_back(*round->work.give);
    if (step == 0 && round->work.adopt) round->answer.adopted = database_.adopt(me, known, now_);
    if (step == 1) {
      round->answer.renewed = database_.renew(me, round->work.renew, now_);
      database_.seen(me, round->takes, now_);
      if (round->work.give) database_.give(me, *round->work.give, now_);
    }
    if (step == 2 && round->work.take)
      round->answer.taken = database_.take(me, round->work.renew, now_, dice_.below(kPartitions));
    if (step == 2) round->view = database_.view(now_);
    if (round->given_up && step < 3) count("statement after its client gave up");
    if (cuts_ && dice_.chance(1)) return count("answer lost");
    after(delay(), [=, this] {
      // The next statement needs the answer to this one.
      if (!runs(round->node, round->process, [=, this] { next(round, step); })) return;
      next(round, step);
    });
  }
  void next(const std::shared_ptr<Round>& round, int step) {
    if (round->given_up) return;
    if (!runs(round->node, round->process, [=, this] { next(round, step); })) return;
    if (step < 2) return after(delay(), [=, this] { statement(round, step + 1); });
    round->given_up = true;
    nodes_[round->node].member->answered(round->answer);
    nodes_[round->node].view = round->view;
  }

  // ---- actions

  // An owner reserves an action, as before each one: the row is inserted, or not.
  void act(size_t i, uint64_t process) {
    if (!runs(i, process, [=, this] { act(i, process); })) return;
    Node& node = nodes_[i];
    std::vector<PartHold> owned;
    for (const PartHold& one : node.member->holds())
      if (node.member->epoch(one.part, boot(node))) owned.push_back(one);
    if (!owned.empty()) {
      const PartHold with = owned[dice_.below(owned.size())];
      // A pause, or a slow network, between the decision and its commit.
      const TimeNs late = pauses_ && dice_.chance(5) ? dice_.range(0, 40 * kS) : delay();
      after(late, [=, this] { commit(i, process, with); });
    }
    after(dice_.range(100 * kMs, 3 * kS), [=, this] { act(i, process); });
  }
  void commit(size_t i, uint64_t process, const PartHold& with) {
    if (!database_.up) return;
    const Node& node = nodes_[i];
    if (!database_.commit(node.name, with)) return void(++fenced_);
    ++commits_;
    const auto [by, is_first] = committed_.try_emplace({with.part, with.epoch}, process);
    if (!is_first && by->second != process)
      broken(fmt::format("two processes acted on partition {} in epoch {}", with.part, with.epoch));
    uint64_t& newest = newest_[with.part];
    if (with.epoch < newest)
      broken(fmt::format("an action in epoch {} after one in {} on partition {}", with.epoch, newest,
                         with.part));
    newest = std::max(newest, with.epoch);
  }

  // ---- what may not be, at any time

  void look() {
    if (stepped_) return;  // the database's clock is what leases go by
    std::array<const Node*, kPartitions> owners{};
    for (const Node& node : nodes_) {
      if (!node.up || !node.member) continue;
      for (uint32_t part = 0; part < kPartitions; ++part) {
        if (!node.member->epoch(part, boot(node))) continue;
        if (owners[part])
          broken(fmt::format("{} and {} both own partition {}", owners[part]->name, node.name, part));
        owners[part] = &node;
      }
    }
  }
  void settle() {
    for (uint32_t part = 0; part < kPartitions; ++part) {
      int owners = 0;
      for (const Node& node : nodes_) owners += node.up && node.member->epoch(part, boot(node)).has_value();
      if (owners != 1) broken(fmt::format("partition {} has {} owners at the end", part, owners));
    }
    // No member has more than an equal share, rounded up.
    const size_t most = (kPartitions + nodes_.size() - 1) / nodes_.size();
    const size_t least = kPartitions - (nodes_.size() - 1) * most;
    for (const Node& node : nodes_)
      if (const size_t owned = node.member->holds().size(); owned < least)
        broken(fmt::format("{} has {} of {} partitions at the end", node.name, owned, kPartitions));
  }

  // ---- faults

  void fault() {
    Node& node = nodes_[dice_.below(nodes_.size())];
    const size_t i = static_cast<size_t>(&node - nodes_.data());
    switch (dice_.below(6)) {
      case 0:
        if (!pauses_ || !node.up) return;
        node.paused_until_ns = now_ + dice_.range(kS, 60 * kS);
        return tell(node.name + " is paused"), count("member paused");
      case 1:
        if (!kills_ || !node.up) return;
        node.up = false;
        after(dice_.range(kS, 60 * kS), [=, this] { start(i); });
        return tell(node.name + " is killed"), count("member killed");
      case 2:
        if (kills_ && node.up) quick_restart(i);
        return;
      case 3:
        if (!kills_ || !node.up || now_ < node.paused_until_ns || !database_.up) return;
        database_.give_back(node.name, node.member->stop(), now_);
        node.up = false;
        after(dice_.range(kS, 60 * kS), [=, this] { start(i); });
        return tell(node.name + " stops"), count("clean stop");
      case 4:
        if (!outages_ || !database_.up) return;
        database_.up = false;
        after(dice_.range(kS, 60 * kS), [this] { database_.up = true; });
        return tell("the database is away"), count("database away");
      default:
        if (!steps_clock_) return;
        database_.skew_ns += dice_.range(-60 * kS, 60 * kS);
        stepped_ = true;
        return tell("the database's clock steps"), count("clock step");
    }
  }
  // A restart that ends within the lease: what was owned before is owned after it, by the same member.
  void quick_restart(size_t i) {
    Node& node = nodes_[i];
    node.up = false;
    node.paused_until_ns = 0;
    std::set<uint32_t> before;
    for (uint32_t part = 0; part < kPartitions; ++part)
      if (database_.living_owner(part, now_ + 6 * kS) == node.name) before.insert(part);
    tell(node.name + " restarts");
    count("restart within the lease");
    const TimeNs down = dice_.range(100 * kMs, 2 * kS);
    after(down, [=, this] { start(i); });
    const bool calm = !steps_clock_ && !cuts_ && !outages_;
    if (!calm) return;
    after(down + kS, [=, this] {
      for (const uint32_t part : before)
        if (!database_.owner(part).empty() && database_.owner(part) != nodes_[i].name)
          broken(fmt::format("the restart of {} moved partition {}", nodes_[i].name, part));
    });
  }
  void mend() {
    tell("faults end");
    cuts_ = pauses_ = kills_ = outages_ = steps_clock_ = false;
    database_.up = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].paused_until_ns = 0;
      after(kS, [=, this] { start(i); });
    }
  }

  Dice dice_;
  const bool prints_;
  bool steps_clock_, cuts_, pauses_, kills_, outages_, stepped_ = false;
  Database database_;
  std::vector<Node> nodes_;
  std::priority_queue<Event> events_;
  TimeNs now_ = 0;
  uint64_t number_ = 0, commits_ = 0, fenced_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> committed_;  // the process that acted in an epoch
  std::map<uint32_t, uint64_t> newest_;                          // epoch of the newest action
  std::map<std::string, uint64_t> faults_;
  std::string broken_;
};

int run_all(uint64_t from, uint64_t seeds, bool prints) {
  Totals totals;
  uint64_t failures = 0;
  for (uint64_t seed = from; seed < from + seeds; ++seed) {
    const std::string broken = ClusterRun(seed, prints).run(totals);
    if (broken.empty()) continue;
    ++failures;
    fmt::print("seed {}: {}\n", seed, broken);
  }
  fmt::print("{} seeds, {} failures; {} actions committed, {} fenced, {} partitions taken, {} given\n", seeds,
             failures, totals.commits, totals.fenced, totals.takes, totals.gives);
  for (const auto& [name, n] : totals.faults) fmt::print("  {}: {}\n", name, n);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace culprit::sim

int main(int argc, char** argv) {
  uint64_t from = 1, seeds = 200;
  bool prints = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = value;
    if (std::strcmp(argv[i], "--from") == 0) from = value;
    if (std::strcmp(argv[i], "--seed") == 0) from = value, seeds = 1, prints = true;
  }
  return culprit::sim::run_all(from, seeds, prints);
}
