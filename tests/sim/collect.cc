// Agents and a collector in a simulated world, one run per seed. Machines are killed and lose power in the
// middle of a write, cables are unplugged, connections are cut, half-open or slow, disks fill and fail,
// spools are wiped. After all faults end, the archive must have everything that the agents' spools took, in
// order and once. Acknowledged frames must have been committed, and all sizes must stay within their limits,
// without help.
//
//   sim_collect [--runs N] [--from SEED] [--seed SEED] [--folder FOLDER] [--outage DAYS]
//
// --outage: instead, a collector that is away for this many days (outage.h). A failure prints its seed;
// --seed runs it alone and prints its events.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/hash.h"
#include "machines.h"
#include "outage.h"
#include "store/archive_replay.h"
#include "store/evidence.h"

namespace culprit::sim {
namespace {

using peer::Log;

// Faults of one run. Each run has some of them, so that a failure shows which are needed.
struct Weather {
  bool net, cables, kills, power, collector_dies, full_collector, failing_disks, wipes, lost_index;
  bool small_spools, findings, slow_work;
  static Weather draw(Random& random) {
    const auto some = [&] { return random.chance(40); };
    return {some(),
            some(),
            some(),
            some(),
            some(),
            random.chance(15),
            random.chance(15),
            random.chance(15),
            random.chance(15),
            random.chance(30),
            random.chance(15),
            some()};
  }
};

store::LogKind kind_of(Log log) {
  return log == Log::kCondensed ? store::LogKind::kCondensed : store::LogKind::kEvidence;
}

class Run {
 public:
  Run(uint64_t seed, const std::string& folder, bool tells)
      : seed_(seed), tells_(tells), world_(seed), random_(Random(seed).fork(7)) {
    weather_ = Weather::draw(random_);
    witness_.fault = [this](const std::string& what) { broken(what); };
    CollectorPlan plan;
    plan.folder = folder;
    plan.seed = mix64(seed, 50);
    plan.segment_bytes = 4096 << random_.below(6);
    plan.work_ns = weather_.slow_work ? 40 * kNsPerMs : 0;
    plan.credit_bytes = 16'384 << random_.below(6);
    collector_ = std::make_unique<CollectorMachine>(world_, plan, witness_);
    const uint64_t hosts = 1 + random_.below(4);
    for (uint64_t i = 0; i < hosts; ++i) add_agent(i);
  }

  // Empty: all checks passed.
  std::string run() {
    if (!collector_->start()) broken("the collector does not start: " + collector_->why_not_started);
    for (auto& agent : agents_)
      if (random_.chance(80)) start(*agent);
    set_net();
    look_at_bounds();
    plan_fault();
    pass(random_.range(20, 120) * kNsPerSecond);
    mend();
    pass(random_.range(1, 10) * kNsPerSecond);
    for (auto& agent : agents_) agent->writes = false;
    settle();
    if (broken_.empty()) verify();
    if (tells_) summary();
    return broken_;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t faults() const { return faults_; }

 private:
  void add_agent(uint64_t i) {
    AgentPlan plan;
    plan.host = fmt::format("node-{}", i);
    plan.seed = mix64(seed_, 60 + i);
    plan.spool_bytes = weather_.small_spools ? 24'000 + random_.below(100'000) : 8 << 20;
    plan.segment_bytes = weather_.small_spools ? 4096 : 8192 << random_.below(4);
    plan.tick_ns = random_.range(100, 2000) * kNsPerMs;
    plan.tick_bytes = 100 + random_.below(4000);
    plan.sync_every = 1 + static_cast<int>(random_.below(5));
    plan.streams = 1 + random_.below(3);
    plan.work_ns = weather_.slow_work ? 20 * kNsPerMs : 0;
    if (weather_.findings) {
      plan.evidence.mode = forward::EvidenceMode::kFindings;
      plan.evidence.around_ns = random_.range(1, 10) * kNsPerSecond;
    }
    if (random_.chance(10)) plan.evidence.bytes_per_second = 2000 + random_.below(20'000);
    agents_.push_back(std::make_unique<Daemon>(world_, plan, witness_));
  }

  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = fmt::format("{} (at {:.3f} s)", what, seconds());
    tell("BROKEN " + what);
  }
  double seconds() const { return static_cast<double>(world_.monotonic_ns()) / 1e9; }
  void tell(const std::string& what) const {
    if (tells_) fmt::print("{:10.3f} {}\n", seconds(), what);
  }
  void pass(TimeNs ns) {
    if (broken_.empty() && !world_.run_for(ns)) broken("time stands still");
  }
  void look_at_bounds() {
    for (const auto& agent : agents_) agent->check_bounds();
    collector_->check_bounds();
    world_.after(kNsPerSecond, [this] { look_at_bounds(); });
  }

  // ---- machines

  void start(Daemon& agent) {
    if (agent.is_up()) return;
    const bool up = agent.start();
    tell(agent.plan.host + (up ? " starts" : " does not start: " + agent.why_not_started));
    // A failed start is repeated, as systemd does.
    if (!up) again([this, &agent] { start(agent); });
  }
  void start_collector() {
    if (collector_->is_up()) return;
    const bool up = collector_->start();
    tell(up ? "the collector starts" : "the collector does not start: " + collector_->why_not_started);
    if (up) {
      const store::ArchiveStats stats = collector_->archive().stats();
      tell(fmt::format("it adopted {} frames and cut {} bytes; {} segments, {} missing, {} damaged frames",
                       stats.adopted_frames, stats.cut_bytes, stats.segments, stats.missing_segments,
                       stats.damaged_frames));
    }
    if (!up) again([this] { start_collector(); });
  }
  void again(std::function<void()> call) { world_.after(random_.range(1, 5000) * kNsPerMs, std::move(call)); }

  SimEnv::Death draw_death() {
    return weather_.power && random_.chance(50) ? SimEnv::Death::kPowerLoss : SimEnv::Death::kKilled;
  }
  const char* name_of(SimEnv::Death death) {
    return death == SimEnv::Death::kPowerLoss ? "loses power" : "is killed";
  }

  void kill(Daemon& agent) {
    if (!agent.is_up()) return;
    const SimEnv::Death death = draw_death();
    if (random_.chance(50)) {  // in the middle of one of the disk's next calls
      agent.disk.dies_at = agent.disk.calls + 1 + random_.below(40);
      agent.disk.on_death = [this, &agent, death] {
        world_.after(0, [this, &agent, death] { down(agent, death); });
        agent.mark_dead(death);
      };
      return;
    }
    down(agent, death);
  }
  void down(Daemon& agent, SimEnv::Death death) {
    tell(fmt::format("{} {}", agent.plan.host, name_of(death)));
    note_epochs(agent);
    agent.kill(death);
    if (weather_.wipes && random_.chance(30)) {
      tell(agent.plan.host + ": its spools are wiped");
      agent.wipe();
    }
    again([this, &agent] { start(agent); });
  }
  void note_epochs(Daemon& agent) {
    for (const Log log : peer::kLogs)
      if (const auto epoch = agent.epoch_or_none(log)) epochs_[*epoch] = {agent.plan.host, log};
  }
  void kill_collector() {
    if (!collector_->is_up()) return;
    const SimEnv::Death death = draw_death();
    if (random_.chance(50)) {
      collector_->disk.dies_at = collector_->disk.calls + 1 + random_.below(60);
      collector_->disk.on_death = [this, death] {
        world_.after(0, [this, death] { collector_down(death); });
        collector_->mark_dead(death);
      };
      return;
    }
    collector_down(death);
  }
  void collector_down(SimEnv::Death death) {
    tell(fmt::format("the collector {}", name_of(death)));
    collector_->kill(death);
    if (weather_.lost_index && random_.chance(30)) {
      tell("its index is lost");
      collector_->lose_index();
    }
    again([this] { start_collector(); });
  }

  // ---- faults

  void set_net() {
    if (!weather_.net) return;
    NetFaults& net = world_.faults;
    const auto up_to = [&](uint64_t most) { return static_cast<uint32_t>(random_.below(most + 1)); };
    net.refused_percent = up_to(30), net.lost_percent = up_to(20), net.cut_percent = up_to(60);
    net.half_open_percent = up_to(30), net.slow_percent = up_to(20);
    net.fault_after_bytes = 1 << (6 + random_.below(12));
    net.latency_ns = random_.range(1, 500) * kNsPerMs;
    net.kernel_bytes = 1 << (8 + random_.below(12));
  }
  void plan_fault() {
    if (mended_) return;
    world_.after(random_.range(50, 12'000) * kNsPerMs, [this] {
      if (mended_) return;
      ++faults_;
      make_fault();
      plan_fault();
    });
  }
  Daemon& any_agent() { return *agents_[random_.below(agents_.size())]; }

  void make_fault() {
    Daemon& agent = any_agent();
    switch (random_.below(8)) {
      case 0:
        if (weather_.kills || weather_.power) kill(agent);
        return;
      case 1:
        if (weather_.collector_dies) kill_collector();
        return;
      case 2:
        if (weather_.cables) pull_cable(random_.chance(30) ? "collector" : agent.plan.host);
        return;
      case 3:
        if (weather_.net) tell("cut: " + agent.plan.host), world_.cut_all(agent.plan.host);
        return;
      case 4:
        if (weather_.net) tell("half-open: " + agent.plan.host), world_.set_half_open(agent.plan.host);
        return;
      case 5:
        if (weather_.full_collector) fill(collector_->disk);
        return;
      case 6:
        if (weather_.failing_disks) fail_now_and_then(random_.chance(50) ? collector_->disk : agent.disk);
        return;
      default:
        if (weather_.findings) agent.finding(agent_time());
    }
  }
  TimeNs agent_time() const { return world_.monotonic_ns() + SimEnvOptions().wall_at_start_ns; }
  void pull_cable(const std::string& machine) {
    tell("the cable of " + machine + " is out");
    world_.block(machine, true);
    world_.after(random_.range(1, 90) * kNsPerSecond, [this, machine] { world_.block(machine, false); });
  }
  void fill(SimFiles& disk) {
    tell("the collector's disk is full");
    disk.capacity = disk.used() + random_.below(50'000);
    world_.after(random_.range(1, 40) * kNsPerSecond, [&disk] { disk.capacity = uint64_t{1} << 40; });
  }
  void fail_now_and_then(SimFiles& disk) {
    tell("a disk fails now and then");
    disk.failing_per_mille = 1 + static_cast<uint32_t>(random_.below(300));
    world_.after(random_.range(1, 30) * kNsPerSecond, [&disk] { disk.failing_per_mille = 0; });
  }
  void mend() {
    tell("all is mended");
    mended_ = true;
    world_.heal();
    for (auto& agent : agents_) {
      agent->disk.failing_per_mille = 0;
      agent->disk.dies_at = 0;
      start(*agent);
    }
    collector_->disk.failing_per_mille = 0;
    collector_->disk.dies_at = 0;
    collector_->disk.capacity = uint64_t{1} << 40;
    start_collector();
  }

  // ---- checks

  // No further help. Time for a minute of backoff, half a minute to detect a half-open connection, and the
  // content of the spools.
  void settle() {
    const auto done = [&] {
      return std::all_of(agents_.begin(), agents_.end(), [](const auto& agent) { return agent->is_done(); });
    };
    for (int i = 0; i < 600 && broken_.empty(); ++i) {
      pass(kNsPerSecond);
      if (done()) return;
    }
    for (const auto& agent : agents_)
      if (!agent->is_done()) return broken("it does not recover: " + agent->state());
  }

  void verify() {
    for (const auto& [epoch, of] : epochs_) {
      const auto at = collector_->archive().begin({epoch, of.first, kind_of(of.second)}, 0);
      const uint64_t acked = witness_.acknowledged[epoch];
      // The archive may have deleted all of its frames to make room, and then does not know it.
      if (at && !*at && makes_room()) continue;
      if (!at || at->value_or(0) < acked)
        return broken(fmt::format("{}: {} of an older spool was acknowledged, and {} is there", of.first,
                                  acked, at ? at->value_or(0) : 0));
    }
    for (const auto& agent : agents_)
      for (const Log log : peer::kLogs) verify_log(*agent, log);
    verify_replay();
  }

  void verify_log(const Daemon& agent, Log log) {
    store::StoredQuery query;
    query.host = agent.plan.host, query.job = "job", query.kind = kind_of(log);
    const auto stored = collector_->archive().stored(query);
    if (!stored) return broken(stored.error().text);
    std::map<StreamId, uint64_t> there;
    for (const store::HostStream& stream : *stored) {
      const StreamState& state = stream.stored.state;
      if (stream.stored.epoch == agent.epoch(log)) there[state.info.id] = state.size;
      verify_stream(agent, log, stream.stored);
    }
    for (const store::StoredStream& stream : agent.streams(log)) {
      const auto found = there.find(stream.state.info.id);
      if (found == there.end() && !makes_room())
        broken(fmt::format("{}: source {} is missing", agent.plan.host, stream.state.info.id));
      else if (found != there.end() && found->second != stream.state.size && !may_skip(agent, log))
        broken(fmt::format("{}: source {} has {} bytes, and {} are there", agent.plan.host,
                           stream.state.info.id, stream.state.size, found->second));
    }
  }
  bool may_skip(const Daemon& agent, Log log) const {
    return log == Log::kEvidence && agent.plan.evidence.mode != forward::EvidenceMode::kAll;
  }

  // A full disk deletes the oldest segments, as the size limit does.
  bool makes_room() const { return collector_->made_room; }
  // Garbage before later writes is missing in the agent's spool, and reported as gaps.
  static bool has_holes(const Daemon& agent) { return agent.disk.reordered > 0; }

  void verify_stream(const Daemon& agent, Log log, const store::StoredStream& stored) {
    uint64_t at = 0;
    const auto who = [&] {
      return fmt::format("{}: {} of source {} at byte {}", agent.plan.host, peer::name_of(log),
                         stored.state.info.id, at);
    };
    store::EvidenceSink sink;
    sink.bytes = [&](std::string_view bytes) {
      if (bytes != text_of(agent.plan.host, log, stored.state.info.id, at, bytes.size()))
        return broken(who() + " is not what was written"), false;
      at += bytes.size(), bytes_ += bytes.size();
      return true;
    };
    sink.gap = [&](const store::EvidenceGap& gap) {
      const bool dropped = at == 0 && makes_room() && gap.gap.reason == store::kDropped;
      if (!may_skip(agent, log) && !has_holes(agent) && !dropped)
        broken(fmt::format("{} is missing: {}", who(), gap.gap.reason));
      at = gap.offset + std::max(gap.in_range, gap.gap.bytes);
    };
    const auto damage = store::EvidenceReader(collector_->disk, collector_->plan.folder)
                            .read({{stored}, 0, UINT64_MAX}, sink);
    if (!damage) return broken(damage.error().text);
    if (damage->frames > 0) broken(who() + ": " + damage->first);
    if (at != stored.state.size)
      broken(fmt::format("{} it ends, and its size is {}", who(), stored.state.size));
  }

  // Rebuilt engines get every piece once and in order.
  void verify_replay() {
    const auto plan = collector_->archive().replay_plan();
    if (!plan) return broken(plan.error().text);
    std::map<std::pair<uint64_t, StreamId>, uint64_t> at;
    store::ArchiveVisitor visitor;
    visitor.wanted = [](const store::LogOrigin&, const StreamInfo&) { return true; };
    visitor.piece = [&](const store::LogOrigin& origin, const Piece& piece) {
      const auto [found, first] = at.try_emplace({origin.epoch, piece.stream});
      uint64_t& place = found->second;
      const bool jumps = std::any_of(agents_.begin(), agents_.end(), [&](const auto& agent) {
        return agent->plan.host == origin.host && has_holes(*agent);
      });
      if ((first && makes_room()) || (jumps && piece.offset > place)) place = piece.offset;
      if (piece.offset != place ||
          piece.bytes != text_of(origin.host, Log::kCondensed, piece.stream, place, piece.bytes.size()))
        broken(fmt::format("{}: replay gives byte {} of source {} where {} is next", origin.host,
                           piece.offset, piece.stream, place));
      place += piece.bytes.size();
      return broken_.empty();
    };
    const auto damage = store::replay(collector_->disk, collector_->plan.folder, *plan, visitor);
    if (damage.frames > 0) broken("replay: " + damage.first);
    for (const auto& agent : agents_)
      for (const store::StoredStream& stream : agent->streams(Log::kCondensed))
        if (const uint64_t place = at[{agent->epoch(Log::kCondensed), stream.state.info.id}];
            place != stream.state.size && !(makes_room() && place == 0))
          broken(fmt::format("{}: replay gives {} of {} bytes of source {}", agent->plan.host, place,
                             stream.state.size, stream.state.info.id));
  }

  void summary() const {
    const store::ArchiveStats stats = collector_->archive().stats();
    fmt::print(
        "{} agents, {} faults, {} connections, {} cuts, {} half-open; {} frames stored, {} copies, {} "
        "refused; {} bytes compared\n",
        agents_.size(), faults_, world_.connections, world_.cuts, world_.half_opens, stats.frames,
        stats.duplicates, stats.refused, bytes_);
  }

  const uint64_t seed_;
  const bool tells_;
  World world_;
  Random random_;
  Weather weather_;
  Witness witness_;
  std::unique_ptr<CollectorMachine> collector_;
  std::vector<std::unique_ptr<Daemon>> agents_;
  std::map<uint64_t, std::pair<std::string, Log>> epochs_;  // by epoch, also of spools that were wiped later
  bool mended_ = false;
  std::string broken_;
  uint64_t bytes_ = 0, faults_ = 0;
};

}  // namespace
}  // namespace culprit::sim

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  uint64_t runs = 500, from = 1, outage_days = 0;
  bool tells = false;
  std::string folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--runs") == 0) runs = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--from") == 0) from = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--folder") == 0) folder = argv[i + 1];
    if (std::strcmp(argv[i], "--outage") == 0) outage_days = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seed") == 0)
      runs = 1, from = std::strtoull(argv[i + 1], nullptr, 10), tells = true;
  }
  if (folder.empty()) {
    // In memory if possible: each commit waits for a disk.
    std::string name =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm/culprit-sim-XXXXXX" : "/tmp/culprit-sim-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return std::perror("mkdtemp"), 2;
    folder = name;
  }
  if (outage_days > 0) {
    const bool held = culprit::sim::run_outage(outage_days, folder + "/outage");
    std::filesystem::remove_all(folder);
    return held ? 0 : 1;
  }
  uint64_t failed = 0, bytes = 0, faults = 0;
  for (uint64_t seed = from; seed < from + runs; ++seed) {
    const std::string of_run = fmt::format("{}/{}", folder, seed);
    {
      culprit::sim::Run run(seed, of_run, tells);
      if (const std::string broken = run.run(); !broken.empty()) {
        fmt::print("FAIL sim_collect --seed {}: {}\n", seed, broken);
        ++failed;
      }
      bytes += run.bytes(), faults += run.faults();
    }
    std::filesystem::remove_all(of_run);
    if (failed >= 10) break;
  }
  std::filesystem::remove_all(folder);
  fmt::print("{} runs from seed {}, {} faults, {:.1f} MB compared, {} failed\n", runs, from, faults,
             static_cast<double>(bytes) / 1e6, failed);
  return failed > 0;
}
