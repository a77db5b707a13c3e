// Several collectors that share partitions over one database and evidence over one bucket, in virtual time,
// one run per seed. The product decides: app/daemon's PartitionGate over core/cluster's member, and
// BucketUploader over store/bucket's objects. The database is a model of the statements of store/postgres,
// and the bucket one of S3 (cluster_places.h); agents send frames, which a model of the archive stores
// (cluster_evidence.h).
//
// Faults: members are paused, killed, stopped and started again; a hung process may wake after its next one
// has begun. Networks are parted; statements, frames and PUTs are lost, late, out of order or done twice, and
// so are their answers. The database or the bucket is away; the bucket loses or damages an object after its
// 200. Disks are lost. Wall clocks step, hosts' clocks drift, and in some runs the database's clock steps.
// After all faults each partition must have one owner, each member its share, and each archive all its
// frames in objects.
//
//   sim_cluster [--seeds N] [--from SEED] [--seed SEED]
//
// Broken promises: two processes act in one epoch, or one in an epoch that is not the newest; an action is
// done twice; two members believe at once that they own a partition, unless the database's clock stepped; a
// restart within the lease moves a partition; a member takes two partitions within five seconds; an object
// that has a row is deleted, or its bytes are in two objects; two PUTs of one key have different bytes; an
// acknowledged byte is neither in the reading of all objects nor in a reported gap. A failure prints its
// seed; --seed runs it alone and prints its events.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/daemon/collector/bucket_uploader.h"
#include "app/daemon/recover/partition_gate.h"
#include "base/hash.h"
#include "cluster_evidence.h"
#include "cluster_places.h"

namespace culprit::sim {
namespace {

constexpr cluster::Timing kTiming;
constexpr TimeNs kStartAt = 1000 * kS, kFaultsEnd = 400 * kS, kAgentsEnd = kFaultsEnd + 60 * kS;
constexpr TimeNs kAckWithin = 6 * kS;
constexpr uint64_t kJobs = 24, kAgents = 10;

// A job, or a host, of each partition.
const std::vector<std::string>& names_of_parts() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out(kPartitions);
    for (uint64_t n = 0; std::ranges::any_of(out, &std::string::empty); ++n)
      if (const std::string name = fmt::format("{}", n); out[cluster::partition_of(name)].empty())
        out[cluster::partition_of(name)] = name;
    return out;
  }();
  return names;
}

class ClusterRun {
 public:
  ClusterRun(uint64_t seed, bool prints, Account& account)
      : dice_(seed), prints_(prints), account_(account), network_(clock_, dice_, account_), files_(seed) {
    Troubles& t = network_.troubles;
    t = {dice_.chance(70), dice_.chance(70), dice_.chance(70),
         dice_.chance(50), dice_.chance(30), dice_.chance(40)};
    const uint64_t members = 2 + dice_.below(4);
    for (uint64_t i = 0; i < members; ++i) {
      Node& node = nodes_.emplace_back();
      node.name = fmt::format("c{}", i);
      node.drift_ppm = dice_.range(-500, 500);
      node.boot_ns = dice_.range(0, 1000) * kS;
      new_archive(node);
    }
    for (uint64_t i = 0; i < kAgents; ++i) {
      Agent& agent = agents_.emplace_back();
      agent.host = fmt::format("h{}", i);
      agent.job = fmt::format("{}", dice_.below(kJobs));
      agent.epoch = mix64(seed, i + 1000) | 1;
      agent.target = dice_.below(members);
    }
  }
  ~ClusterRun() {
    for (Node& node : nodes_) end(node);
    for (const Running& old : left_over_) old.who->alive = false;
    clock_.end_tasks();
  }

  void run() {
    for (size_t i = 0; i < nodes_.size(); ++i) clock_.at(dice_.range(0, 20 * kS), [this, i] { start(i); });
    for (size_t i = 0; i < agents_.size(); ++i) clock_.at(dice_.range(0, 30 * kS), [this, i] { send(i); });
    for (TimeNs when = 30 * kS; when < kFaultsEnd; when += dice_.range(2 * kS, 25 * kS))
      clock_.at(when, [this] { fault(); });
    clock_.at(kFaultsEnd, [this] { mend(); });
    const TimeNs end = kFaultsEnd + 2 * 64 * kTiming.take_ns + 120 * kS;
    while (account_.first_broken().empty() && clock_.now() < end && clock_.step()) {
    }
    if (account_.first_broken().empty()) settle();
    if (account_.first_broken().empty()) check_reading(agents_, archives_, database_, *stored_, account_);
    if (!account_.first_broken().empty()) tell("BROKEN " + account_.first_broken());
  }

 private:
  struct Running {
    std::shared_ptr<Process> who;
    std::shared_ptr<app::PartitionGate> gate;
  };
  struct Node {
    std::string name;
    TimeNs drift_ppm = 0, boot_ns = 0, wall_skew_ns = 0;
    Running now;
    SimArchive* archive = nullptr;
    std::set<std::string> ordered;  // actions, on its disk before they are reserved
    bool up() const { return now.who && now.who->alive; }
  };

  Places places() { return {clock_, dice_, account_, network_, database_}; }
  void tell(const std::string& what) const {
    if (prints_) fmt::print("{:9.3f} {}\n", static_cast<double>(clock_.now()) / 1e9, what);
  }
  // The host's CLOCK_BOOTTIME: it never steps, and runs at a rate of its own.
  TimeNs boot(size_t i) const {
    const Node& node = nodes_[i];
    return kStartAt + node.boot_ns + clock_.now() + clock_.now() / 1'000'000 * node.drift_ppm;
  }
  TimeNs wall(size_t i) const { return kStartAt + clock_.now() + nodes_[i].wall_skew_ns; }
  void new_archive(Node& node) {
    archives_.push_back(std::make_unique<SimArchive>(files_, mix64(dice_.below(UINT64_MAX), 7) | 1));
    node.archive = archives_.back().get();
  }

  // ---- members

  void end(Node& node) {
    if (node.now.who) node.now.who->alive = false;
  }
  void start(size_t i) {
    Node& node = nodes_[i];
    if (node.up()) return;
    const auto who = std::make_shared<Process>(Process{i, ++processes_});
    const auto boot_of = [this, i] { return boot(i); };
    const store::postgres::ClusterStoreOptions options{"", node.name, node.name};
    const auto gate = std::make_shared<app::PartitionGate>(
        options, std::make_unique<SimLeases>(places(), who, node.name, boot_of), boot_of);
    node.now = {who, gate};
    node.archive->commit();  // it adopts what its files have
    tell(node.name + " starts");
    clock_.start([=, this] { keep_leases(*who, *gate); });
    clock_.start([=, this] { act(*who, *gate); });
    clock_.start([=, this, archive = node.archive] { upload(who, *archive); });
    publish(who, gate);
  }
  void keep_leases(const Process& who, app::PartitionGate& gate) {
    while (who.alive) {
      if (gate.begins(clock_.now() > kFaultsEnd || !dice_.chance(5))) {
        gate.round(wall(who.node));
        look(who, gate);
      }
      network_.rest(who, 500 * kMs);
    }
  }
  // Reports of jobs: each commit has the epoch that was known when it was sent.
  void publish(const std::shared_ptr<Process>& who, const std::shared_ptr<app::PartitionGate>& gate) {
    if (!who->alive) return;
    if (clock_.now() < who->paused_until_ns)
      return clock_.at(who->paused_until_ns + dice_.range(0, 5 * kMs), [=, this] { publish(who, gate); });
    const auto part = static_cast<uint32_t>(dice_.below(kPartitions));
    if (const auto epoch = gate->epoch(names_of_parts()[part])) {
      // A pause, or a slow network, between the decision and its commit.
      const TimeNs late =
          network_.troubles.pauses && dice_.chance(5) ? dice_.range(0, 40 * kS) : network_.delay();
      clock_.after(late, [=, this] { commit(*who, {part, *epoch}); });
    }
    clock_.after(dice_.range(50 * kMs, 800 * kMs), [=, this] { publish(who, gate); });
  }
  void commit(const Process& who, const PartHold& with) {
    if (!network_.reaches(who.node, Place::kDatabase)) return;
    const Database::Part& row = database_.parts[with.part];
    Database::Report& report = database_.reports[with.part];
    const bool owns = row.owner == nodes_[who.node].name && row.epoch == with.epoch &&
                      (stepped_ || row.until_ns > clock_.now() + database_.skew_ns);
    if (!owns) return void(++account_.fenced);
    if (report.epoch > with.epoch)
      broken(fmt::format("epoch {} replaces a report of {}", with.epoch, report.epoch));
    report = {with.epoch, report.version + 1};
    ++account_.commits;
    note_epoch(who, with);
  }
  void note_epoch(const Process& who, const PartHold& with) {
    const auto [by, is_first] = acted_.try_emplace({with.part, with.epoch}, who.number);
    if (!is_first && by->second != who.number)
      broken(fmt::format("two processes acted on partition {} in epoch {}", with.part, with.epoch));
  }
  void broken(const std::string& what) {
    account_.broken(fmt::format("{} (at {:.3f} s)", what, static_cast<double>(clock_.now()) / 1e9));
  }

  // ---- actions

  void act(const Process& who, app::PartitionGate& gate) {
    while (who.alive) {
      network_.rest(who, dice_.range(500 * kMs, 6 * kS));
      if (!who.alive) return;
      ActionOrder order;
      order.kind = dice_.chance(50) ? OrderKind::kIsolate : OrderKind::kRunAgain;
      order.job.scheduler = "slurm";
      order.job.id = fmt::format("{}", dice_.below(kJobs));
      order.job.restarts = static_cast<uint32_t>(clock_.now() / (80 * kS));  // each failure is an attempt
      order.target = order.kind == OrderKind::kIsolate ? fmt::format("n{}", dice_.below(3)) : order.job.id;
      const std::string what = fmt::format("{} {} {} {}", static_cast<int>(order.kind), order.target,
                                           order.job.id, order.job.restarts);
      order.op = hex64(hash64(what));
      const auto epoch = gate.epoch(order.job.id);
      if (!epoch || !nodes_[who.node].ordered.insert(what).second) continue;
      const PartHold with{cluster::partition_of(order.job.id), *epoch};
      const app::ActGate::Answer answer = gate.reserve(order, [&](TimeNs ns) {
        network_.rest(who, ns);
        return who.alive;
      });
      if (!who.alive) return;
      if (answer.state != ActionState::kReserved) {
        ++account_.refused;
        // It says that nothing was done, so it may be ordered again.
        if (answer.state == ActionState::kFailed) nodes_[who.node].ordered.erase(what);
        continue;
      }
      // The process may be paused or killed before it carries the action out.
      network_.rest(who, network_.delay());
      if (!who.alive) return;
      ++account_.actions;
      if (++done_[what] > 1) broken(what + " was done twice");
      note_epoch(who, with);
      gate.finished();
    }
  }

  // ---- evidence

  void upload(const std::shared_ptr<Process>& who, const SimArchive& archive) {
    const std::string& name = nodes_[who->node].name;
    app::BucketUploader uploader(files_, {{}, "", name, archive.folder()},
                                 std::make_unique<SimBucket>(places(), who, stored_),
                                 std::make_unique<SimRows>(places(), who));
    int failures = 0;
    while (who->alive) {
      network_.rest(*who, failures > 0 ? kS << std::min(failures, 6) : dice_.range(8 * kS, 12 * kS));
      if (!who->alive) return;
      app::UploadPlan plan;
      plan.archive = archive.id();
      plan.segments = archive.segments();
      plan.now = wall(who->node);
      uploader.run(plan);
      failures = plan.status ? 0 : failures + 1;
      if (plan.fenced) network_.rest(*who, 60 * kS);
    }
  }
  void send(size_t i) {
    Agent& agent = agents_[i];
    if (clock_.now() < kAgentsEnd) {
      if (dice_.chance(60)) {
        const uint64_t bytes = 40 + dice_.below(dice_.chance(10) ? 6000 : 800);
        agent.frames.push_back({agent.frames.size() + 1, agent.bytes(), bytes});
      }
      clock_.after(dice_.range(kS, 4 * kS), [this, i] { send(i); });
    } else if (agent.acknowledged < agent.frames.size()) {
      clock_.after(dice_.range(kS, 4 * kS), [this, i] { send(i); });
    }
    if (agent.asked != 0 && clock_.now() < agent.until_ns) return;
    if (agent.asked != 0 || !nodes_[agent.target].up()) {
      agent.target = (agent.target + 1) % nodes_.size();
      agent.owner_epoch = 0;
      ++account_.moves;
    }
    agent.asked = 0;
    if (agent.acknowledged == agent.frames.size()) return;
    agent.asked = ++batches_;
    agent.until_ns = clock_.now() + kAckWithin;
    const uint64_t last = std::min<uint64_t>(agent.frames.size(), agent.acknowledged + 32);
    const Batch batch{i, agent.asked, agent.acknowledged + 1, last, agent.target};
    if (network_.loses()) return account_.count("frames lost");
    const TimeNs there = network_.delay(Place::kAgents);
    if (there > kAckWithin) account_.count("frames late");
    clock_.after(there, [this, batch] { arrive(batch); });
  }
  struct Batch {
    size_t agent = 0;
    uint64_t number = 0, first = 0, last = 0;
    size_t node = 0;
  };
  void arrive(const Batch& batch) {
    Node& node = nodes_[batch.node];
    if (!node.up() || !network_.reaches(batch.node, Place::kAgents)) return account_.count("frames lost");
    const auto who = node.now.who;
    if (clock_.now() < who->paused_until_ns)
      return clock_.at(who->paused_until_ns + dice_.range(0, 5 * kMs), [this, batch] { arrive(batch); });
    node.archive->append(agents_[batch.agent], batch.first, batch.last, wall(batch.node));
    clock_.after(dice_.range(5 * kMs, 60 * kMs), [=, this] { acknowledge(batch, who); });
  }
  void acknowledge(const Batch& batch, const std::shared_ptr<Process>& who) {
    if (!who->alive || who != nodes_[batch.node].now.who)
      return account_.count("killed before a commit of frames");
    if (clock_.now() < who->paused_until_ns)
      return clock_.at(who->paused_until_ns + dice_.range(0, 5 * kMs),
                       [=, this] { acknowledge(batch, who); });
    nodes_[batch.node].archive->commit();
    if (network_.loses() || !network_.reaches(batch.node, Place::kAgents))
      return account_.count("acknowledgement lost");
    const auto owners = nodes_[batch.node].now.gate->others_jobs({agents_[batch.agent].job},
                                                                 [](const std::string& job) { return job; });
    clock_.after(network_.delay(Place::kAgents), [=, this] { acknowledged(batch, owners); });
  }
  void acknowledged(const Batch& batch, const std::vector<peer::JobOwner>& owners) {
    Agent& agent = agents_[batch.agent];
    agent.acknowledged = std::max(agent.acknowledged, batch.last);
    if (agent.asked != batch.number) return;
    agent.asked = 0;
    if (owners.empty() || owners[0].epoch <= agent.owner_epoch || agent.acknowledged < agent.frames.size())
      return;
    agent.owner_epoch = owners[0].epoch;
    const auto at = std::ranges::find(nodes_, owners[0].address, &Node::name);
    if (at == nodes_.end()) return;
    agent.target = static_cast<size_t>(at - nodes_.begin());
    ++account_.moves;
  }

  // ---- what may not be

  // Ownership begins with a round only. The same member's process before is fenced by the epoch.
  void look(const Process& who, const app::PartitionGate& gate) {
    if (stepped_ || !who.alive) return;  // the database's clock is what leases go by
    for (const PartHold& one : gate.state().owned)
      for (const Node& other : nodes_)
        if (other.up() && other.now.who->node != who.node &&
            other.now.gate->epoch(names_of_parts()[one.part]))
          broken(fmt::format("{} and {} both own partition {}", nodes_[who.node].name, other.name, one.part));
  }
  void settle() {
    for (uint32_t part = 0; part < kPartitions; ++part) {
      int owners = 0;
      for (const Node& node : nodes_)
        owners += node.up() && node.now.gate->epoch(names_of_parts()[part]).has_value();
      if (owners != 1) broken(fmt::format("partition {} has {} owners at the end", part, owners));
    }
    // No member has more than an equal share, rounded up.
    const size_t most = (kPartitions + nodes_.size() - 1) / nodes_.size();
    const size_t least = kPartitions - (nodes_.size() - 1) * most;
    for (const Node& node : nodes_)
      if (const size_t owned = node.now.gate->state().held.size(); owned < least)
        broken(fmt::format("{} has {} of {} partitions at the end", node.name, owned, kPartitions));
    for (const Agent& agent : agents_)
      if (agent.acknowledged < agent.frames.size())
        broken(fmt::format("{} has {} of {} frames acknowledged at the end", agent.host, agent.acknowledged,
                           agent.frames.size()));
  }

  // ---- faults

  void note(const Node& node, const std::string& fault) {
    tell(node.name + ": " + fault);
    account_.count(fault);
  }
  void start_later(size_t i, TimeNs most = 60 * kS) {
    clock_.after(dice_.range(kS, most), [this, i] { start(i); });
  }
  void fault() {
    const size_t i = dice_.below(nodes_.size());
    Node& node = nodes_[i];
    const Troubles& t = network_.troubles;
    switch (dice_.below(12)) {
      case 0:
        if (!t.pauses || !node.up()) return;
        node.now.who->paused_until_ns = clock_.now() + dice_.range(kS, 60 * kS);
        return note(node, "member paused");
      case 1:
        if (!t.kills || !node.up()) return;
        end(node);
        start_later(i);
        return note(node, "member killed");
      case 2:
        if (t.kills && node.up()) quick_restart(i);
        return;
      case 3:
        if (!t.kills || !node.up() || clock_.now() < node.now.who->paused_until_ns) return;
        clock_.start([this, i, running = node.now] {
          (void)running.gate->give_back();
          running.who->alive = false;
          start_later(i);
        });
        return note(node, "clean stop");
      case 4:
      case 5:
        return away(dice_.chance(50) ? Place::kDatabase : Place::kBucket);
      case 6:
        if (!t.steps_clock) return;
        database_.skew_ns += dice_.range(-60 * kS, 60 * kS);
        stepped_ = true;
        return note(node, "database's clock step");
      case 7:
        node.wall_skew_ns += dice_.range(-7200 * kS, 7200 * kS);
        return note(node, "wall clock step");
      case 8:
        return part(i, node);
      case 9:
        if (!t.kills || !t.pauses || !node.up()) return;
        leave_over(i);
        return note(node, "hung process wakes after its next one");
      case 10:
        if (!t.kills || !t.lies) return;
        end(node);
        node.archive->wiped = true;
        new_archive(node);
        start_later(i);
        return note(node, "disk lost");
      default:
        if (!t.lies || !dice_.chance(30)) return;
        node.archive->drop_oldest();
        return note(node, "oldest segment dropped");
    }
  }
  void away(Place place) {
    bool& up = network_.up[static_cast<size_t>(place)];
    if (!network_.troubles.outages || !up) return;
    up = false;
    clock_.after(dice_.range(kS, 60 * kS), [&up] { up = true; });
    note(nodes_[0], place == Place::kDatabase ? "database away" : "bucket away");
  }
  void part(size_t i, const Node& node) {
    if (!network_.troubles.cuts) return;
    const TimeNs span = dice_.range(kS, 60 * kS);
    const uint64_t which = 1 + dice_.below(7);
    for (size_t place = 0; place < kPlaces; ++place)
      if (which >> place & 1) network_.cut(i, static_cast<Place>(place), span);
    note(node, which == 7 ? "member cut off" : "network parted");
  }
  // A supervisor gives up a process that hangs and starts the next one; the hung one wakes once more.
  void leave_over(size_t i) {
    Node& node = nodes_[i];
    const Running old = node.now;
    old.who->paused_until_ns = clock_.now() + dice_.range(kS, 30 * kS);
    left_over_.push_back(old);
    clock_.at(old.who->paused_until_ns + dice_.range(0, 20 * kS), [old] { old.who->alive = false; });
    node.now = {};
    start_later(i, 10 * kS);
  }
  // A restart that ends within the lease: what was owned before is owned after it, by the same member.
  void quick_restart(size_t i) {
    Node& node = nodes_[i];
    end(node);
    std::set<uint32_t> before;
    for (uint32_t part = 0; part < kPartitions; ++part)
      if (database_.living_owner(part, clock_.now() + 6 * kS) == node.name) before.insert(part);
    note(node, "restart within the lease");
    const TimeNs down = dice_.range(100 * kMs, 2 * kS);
    clock_.after(down, [this, i] { start(i); });
    const Troubles& t = network_.troubles;
    if (t.steps_clock || t.cuts || t.outages) return;
    clock_.after(down + kS, [=, this] {
      for (const uint32_t part : before)
        if (!database_.parts[part].owner.empty() && database_.parts[part].owner != nodes_[i].name)
          broken(fmt::format("the restart of {} moved partition {}", nodes_[i].name, part));
    });
  }
  void mend() {
    tell("faults end");
    network_.troubles = {};
    network_.mend();
    network_.up = {true, true, true};
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].up()) nodes_[i].now.who->paused_until_ns = 0;
      clock_.after(kS, [this, i] { start(i); });
    }
  }

  VirtualClock clock_;
  Dice dice_;
  const bool prints_;
  Account& account_;
  Network network_;
  Database database_;
  SimFiles files_;
  const std::shared_ptr<Stored> stored_ = std::make_shared<Stored>();
  std::vector<std::unique_ptr<SimArchive>> archives_;
  std::vector<Node> nodes_;
  std::vector<Running> left_over_;
  std::vector<Agent> agents_;
  bool stepped_ = false;
  uint64_t processes_ = 0, batches_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> acted_;  // the process that acted in an epoch
  std::map<std::string, int> done_;                          // actions
};

int run_all(uint64_t from, uint64_t seeds, bool prints) {
  Account all;
  uint64_t failures = 0;
  const std::clock_t begin = std::clock();
  for (uint64_t seed = from; seed < from + seeds; ++seed) {
    Account one;
    ClusterRun(seed, prints, one).run();
    for (const auto& [name, n] : one.faults) all.faults[name] += n;
    for (const auto member : {&Account::commits, &Account::fenced, &Account::actions, &Account::refused,
                              &Account::takes, &Account::gives, &Account::moves, &Account::objects,
                              &Account::acknowledged, &Account::read, &Account::gap_bytes})
      all.*member += one.*member;
    if (one.first_broken().empty()) continue;
    ++failures;
    fmt::print("seed {}: {}\n", seed, one.first_broken());
  }
  for (const auto& [name, n] : all.faults) fmt::print("  {:<40}{:>9}\n", name, n);
  fmt::print("partitions: {} taken, {} given; agents moved {} times\n", all.takes, all.gives, all.moves);
  fmt::print("actions: {} done, {} refused\n", all.actions, all.refused);
  fmt::print("{} commits, {} fenced; {} bytes acknowledged, {} read, {} in gaps; {} objects\n", all.commits,
             all.fenced, all.acknowledged, all.read, all.gap_bytes, all.objects);
  fmt::print("{} seeds, {:.1f} s of CPU, {} failed\n", seeds,
             static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, failures);
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
