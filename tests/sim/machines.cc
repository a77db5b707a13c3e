#include "machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"

namespace culprit::sim {

using peer::Log;

namespace {

constexpr size_t kLineBytes = 64;
constexpr std::array kFolders = {"/state/condensed", "/state/evidence"};  // by number of the log
static_assert(static_cast<size_t>(Log::kCondensed) == 0);

uint64_t name_of_source(const std::string& host, Log log, StreamId id) {
  return hash64(host, mix64(static_cast<uint64_t>(log), id));
}

}  // namespace

std::string text_of(const std::string& host, Log log, StreamId id, uint64_t from, size_t size) {
  const uint64_t name = name_of_source(host, log, id);
  std::string out;
  const uint64_t first = from / kLineBytes;
  for (uint64_t line = first; out.size() < from % kLineBytes + size; ++line)
    out += fmt::format("{:012d} {:016x} step loss grad_norm tokens per s {:05d}\n", line, mix64(name, line),
                       line % 1000)
               .substr(0, kLineBytes);
  return out.substr(from % kLineBytes, size);
}

// ---- the agent

Daemon::Daemon(World& world, AgentPlan its_plan, Witness& witness)
    : disk(mix64(its_plan.seed, 1)),
      plan(std::move(its_plan)),
      world_(world),
      witness_(witness),
      random_(mix64(plan.seed, 2)) {}

bool Daemon::start() {
  disk.begin_life();
  SimEnvOptions options;
  options.machine = plan.host;
  options.work_ns = plan.work_ns;
  env_ = std::make_unique<SimEnv>(world_, options);
  ++lives;
  for (const Log log : peer::kLogs) {
    store::SpoolOptions spool;
    spool.folder = kFolders[static_cast<size_t>(log)];
    spool.max_bytes = plan.spool_bytes;
    spool.segment_bytes = plan.segment_bytes;
    spool.hold = true;
    spool.new_epoch = mix64(mix64(plan.seed, lives), static_cast<uint64_t>(log)) | 1;
    auto opened = store::Spool::open(disk, spool, env_->now(io::Clock::kWall));
    if (!opened) {
      why_not_started = opened.error().text;
      return kill(SimEnv::Death::kKilled), false;
    }
    spools_[static_cast<size_t>(log)] = std::move(*opened);
  }
  worker_ = std::move(*env_->worker("store"));
  SpoolSource::Logs logs;
  for (size_t i = 0; i < logs.size(); ++i) logs[i] = {spools_[i].get(), kFolders[i]};
  source_ = std::make_unique<SpoolSource>(disk, *worker_, logs);
  source_->on_acknowledged = [this](Log log, uint64_t epoch, uint64_t sequence) {
    const uint64_t durable = witness_.durable[epoch];
    if (sequence > durable)
      witness_.fault(fmt::format("{}: {} {} is acknowledged and {} committed", plan.host, peer::name_of(log),
                                 sequence, durable));
    uint64_t& known = witness_.acknowledged[epoch];
    known = std::max(known, sequence);
  };
  forward::ForwarderOptions forward;
  forward.to = {kCollectorAddress};
  forward.host = plan.host, forward.boot_id = "boot", forward.program = "0.1.0";
  forward.seed = mix64(plan.seed, 100 + lives);
  forward.window_bytes = plan.window_bytes;
  forward.evidence = plan.evidence;
  forwarder_ = std::make_unique<forward::Forwarder>(*env_, forward, *source_, [] { return peer::Status(); });
  timer_ = env_->timer([this] { tick(); });
  timer_->start(plan.tick_ns, plan.tick_ns);
  forwarder_->start();
  return true;
}

void Daemon::kill(SimEnv::Death death) {
  if (env_ == nullptr) return;
  env_->kill(death);
  death == SimEnv::Death::kPowerLoss ? disk.lose_power() : disk.kill();
  forwarder_.reset();
  timer_.reset();
  source_.reset();
  worker_.reset();
  for (auto& spool : spools_) spool.reset();
  env_.reset();
}

std::optional<uint64_t> Daemon::epoch_or_none(Log log) const {
  if (env_ == nullptr) return std::nullopt;
  return epoch(log);
}

void Daemon::wipe() {
  for (const char* folder : kFolders) disk.remove_all(folder);
}

void Daemon::finding(TimeNs at_ns) {
  if (is_up()) forwarder_->finding(at_ns);
}

void Daemon::tick() {
  auto bounds = std::make_shared<std::array<peer::LogBounds, peer::kLogs.size()>>();
  const bool sync = ++ticks_ % plan.sync_every == 0;
  worker_->submit(
      [this, bounds, sync] {
        for (const Log log : peer::kLogs) {
          store::Spool& spool = *spools_[static_cast<size_t>(log)];
          const TimeNs now = env_->now(io::Clock::kWall);
          if (writes && !(plan.write ? plan.write(log, spool, now) : write_some(log, random_)))
            ++refused_appends;
          // Failed frames are retried with the next ones. A spool full of unacknowledged frames commits
          // nothing, but must be synced: else its last frames are not sent.
          (void)spool.commit(env_->now(io::Clock::kWall));
          if (sync) (void)spool.sync();
        }
        *bounds = source_->look();
      },
      [this, bounds] {
        source_->set_bounds(*bounds);
        for (const Log log : peer::kLogs) forwarder_->appended(log);
      });
}

Status Daemon::write_some(Log log, Random& random) {
  store::Spool& spool = *spools_[static_cast<size_t>(log)];
  const TimeNs now = env_->now(io::Clock::kWall);
  PieceBatch batch;
  size_t open = 0;
  for (const StreamState& state : spool.appended()) {
    if (state.ended) continue;
    ++open;
    Piece piece;
    piece.stream = state.info.id;
    piece.offset = state.size;
    piece.bytes = text_of(plan.host, log, piece.stream, piece.offset, random.below(plan.tick_bytes));
    piece.time_ns = now;
    piece.ends = random.per_mille(20);
    if (!piece.bytes.empty() || piece.ends) batch.pieces.push_back(std::move(piece));
  }
  for (; open < plan.streams; ++open) {
    StreamInfo info;
    info.id = spool.allocate();
    info.kind = OriginKind::kRing;
    info.job = "job";
    info.path = fmt::format("/log/{}", info.id);
    info.opened_ns = now;
    Piece piece;
    piece.stream = info.id;
    piece.bytes = text_of(plan.host, log, info.id, 0, 1 + random.below(plan.tick_bytes));
    piece.time_ns = now;
    batch.opened.push_back(std::move(info));
    batch.pieces.push_back(std::move(piece));
  }
  return batch.pieces.empty() ? Status() : spool.append(batch, now);
}

bool Daemon::is_done() const {
  if (!is_up()) return false;
  for (const Log log : peer::kLogs) {
    const store::Spool& spool = this->spool(log);
    const auto acked = witness_.acknowledged.find(spool.epoch());
    const uint64_t have = acked == witness_.acknowledged.end() ? 0 : acked->second;
    if (spool.stats().pending_bytes > 0 || have < spool.last_sequence()) return false;
  }
  return true;
}

std::string Daemon::state() const {
  if (!is_up()) return fmt::format("{}: down: {}", plan.host, why_not_started);
  std::string out = fmt::format("{}: {}", plan.host, forwarder_->stats().sentence());
  for (const Log log : peer::kLogs) {
    const store::Spool& spool = this->spool(log);
    out += fmt::format("; {} {} of {} ({} synced, {} pending) acknowledged", peer::name_of(log),
                       witness_.acknowledged[spool.epoch()], spool.last_sequence(), spool.synced_sequence(),
                       spool.stats().pending_bytes);
  }
  return out;
}

std::vector<store::StoredStream> Daemon::streams(Log log) const {
  return spools_[static_cast<size_t>(log)]->streams();
}

// One frame beyond the window may be in flight; data that waited while the spool was full is one frame too.
void Daemon::check_bounds() const {
  if (!is_up()) return;
  const auto reported = forwarder_->stats();
  uint64_t unacked = 0;
  for (const forward::LogProgress& log : reported.logs) unacked += log.unacked_bytes;
  if (unacked > plan.window_bytes + plan.frame_bytes)
    witness_.fault(fmt::format("{}: {} bytes are on their way, the window has {}", plan.host, unacked,
                               plan.window_bytes));
  for (const Log log : peer::kLogs) {
    const store::SpoolStats stats = spool(log).stats();
    if (stats.bytes > plan.spool_bytes + 2 * plan.segment_bytes + 2 * plan.frame_bytes)
      witness_.fault(fmt::format("{}: the {} log has {} bytes, its bound is {}", plan.host,
                                 peer::name_of(log), stats.bytes, plan.spool_bytes));
  }
}

// ---- the collector

CollectorMachine::CollectorMachine(World& world, CollectorPlan its_plan, Witness& witness)
    : disk(mix64(its_plan.seed, 3)), plan(std::move(its_plan)), world_(world), witness_(witness) {
  std::filesystem::create_directories(plan.folder);
}

bool CollectorMachine::start() {
  disk.begin_life();
  SimEnvOptions options;
  options.machine = "collector";
  options.work_ns = plan.work_ns;
  env_ = std::make_unique<SimEnv>(world_, options);
  store::ArchiveOptions archive;
  archive.folder = plan.folder;
  archive.segment_bytes = plan.segment_bytes;
  auto opened = store::Archive::open(disk, archive);
  if (!opened) {
    why_not_started = opened.error().text;
    return kill(SimEnv::Death::kKilled), false;
  }
  archive_ = std::move(*opened);
  worker_ = std::move(*env_->worker("archive"));
  sink_ = std::make_unique<ArchiveSink>(*env_, *worker_, archive_);
  sink_->on_committed = [this](uint64_t epoch, uint64_t sequence) {
    uint64_t& durable = witness_.durable[epoch];
    if (sequence < durable)
      witness_.fault(fmt::format("log {:x}: committed went from {} to {}", epoch, durable, sequence));
    durable = std::max(durable, sequence);
  };
  collect::CollectorOptions collect;
  collect.listen = kCollectorAddress;
  collect.program = "0.1.0";
  collect.credit_bytes = plan.credit_bytes;
  collect.held_bytes = plan.held_bytes;
  auto started = collect::Collector::start(*env_, collect, *sink_);
  if (!started) {
    why_not_started = started.error().text;
    return kill(SimEnv::Death::kKilled), false;
  }
  collector_ = std::move(*started);
  sink_->collector = collector_.get();
  return true;
}

void CollectorMachine::kill(SimEnv::Death death) {
  if (env_ == nullptr) return;
  env_->kill(death);
  death == SimEnv::Death::kPowerLoss ? disk.lose_power() : disk.kill();
  if (archive_) made_room |= archive_->stats().dropped_segments > 0;
  if (sink_) sink_->collector = nullptr;
  collector_.reset();
  sink_.reset();
  worker_.reset();
  archive_.reset();
  env_.reset();
}

void CollectorMachine::lose_index() {
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(plan.folder + "/archive.db" + part);
}

void CollectorMachine::check_bounds() {
  if (!is_up()) return;
  made_room |= archive_->stats().dropped_segments > 0;
  const collect::CollectorStats stats = collector_->stats();
  // Each host may send one message beyond its share.
  if (stats.held_bytes > plan.held_bytes + stats.connections * (64 << 10) + (1 << 20))
    witness_.fault(
        fmt::format("the collector holds {} bytes, its bound is {}", stats.held_bytes, plan.held_bytes));
}

}  // namespace culprit::sim
