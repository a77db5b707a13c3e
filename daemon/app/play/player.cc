#include "app/play/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace culprit::app {
namespace {

constexpr TimeNs kTick = 10 * kNsPerMs;
// Agents flush once a minute (uplink.cc).
constexpr int64_t kFlushSteps = 60 * kNsPerSecond / kPlayStep;
// Limits of unacknowledged bytes beyond which a host pauses: per host, and in total. With 8,192 hosts memory
// stays below 1 GB.
constexpr uint64_t kHostBytes = 4 << 20, kAllBytes = 512 << 20;
// Hosts per work: the first frames are sent while others are condensed.
constexpr size_t kAtOnce = 16;
// Job time starts when all hosts are connected, or after this time, since some may be rejected.
constexpr TimeNs kConnectNs = 20 * kNsPerSecond;
constexpr TimeNs kLookEvery = 100 * kNsPerMs;

}  // namespace

struct Player::Host {
  struct Step {
    int64_t number;
    const std::vector<JobSlice>* slices;
  };
  std::string name;
  std::unique_ptr<PlayAgent> agent;
  std::unique_ptr<forward::Forwarder> forwarder;
  std::vector<Step> steps;
  size_t next = 0;
  int64_t flushed = 0;
  TimeNs phase_ns = 0;  // offset within a step, since agents start at different times
  bool connected = false, working = false;
  uint64_t log_bytes = 0, lines = 0;
  bool finished() const { return next == steps.size() && !working; }
  // Whether the next step ends a block.
  bool flushes() const {
    const bool goes_on = next + 1 < steps.size() && steps[next + 1].number < flushed + kFlushSteps;
    return !goes_on;
  }
};

struct Player::Work {
  struct One {
    Host* host;
    PlayAgent::Step step;
    PlayAgent::Made made;
  };
  std::vector<One> all;
};

Player::Player(io::Env& env, PlayOptions options, SlicedJob job)
    : env_(env),
      options_(std::move(options)),
      job_(std::make_shared<const SlicedJob>(std::move(job))),
      timer_(env.timer([this] { tick(); })) {}

Player::~Player() {
  worker_.reset();
  for (const auto& host : hosts_) host->forwarder.reset();
}

Result<std::unique_ptr<Player>> Player::start(io::Env& env, PlayOptions options, SlicedJob job) {
  std::unique_ptr<Player> player(new Player(env, std::move(options), std::move(job)));
  auto worker = env.worker("play");
  if (!worker) return tl::unexpected(worker.error());
  player->worker_ = std::move(*worker);
  if (const Status added = player->add_hosts(); !added) return tl::unexpected(added.error());
  for (const auto& host : player->hosts_) host->forwarder->start();
  player->looked_ns_ = player->started_ns_ = env.now(io::Clock::kMonotonic);
  player->timer_->start(kTick, kTick);
  return player;
}

Status Player::add_hosts() {
  const std::vector<std::string>& names = job_->hosts;
  std::vector<Host*> by_number(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (!peer::is_host_name(names[i]))
      return fail(ErrorCode::kInvalid, fmt::format("{}: is no name of a host", names[i]));
    auto host = std::make_unique<Host>();
    host->name = names[i];
    host->agent = std::make_unique<PlayAgent>(
        PlayAgentOptions{names[i], options_.job, options_.root, options_.evidence, options_.rules});
    forward::ForwarderOptions forward;
    forward.to = {options_.to};
    forward.host = names[i];
    forward.boot_id = fmt::format("played-{}", host->agent->bounds(peer::Log::kCondensed).epoch);
    forward.program = CULPRIT_VERSION;
    forward.seed = hash64(forward.boot_id);
    if (!options_.tls_folder.empty()) {
      const std::string base = options_.tls_folder + "/";
      auto tls =
          io::TlsCredentials::load({base + names[i] + ".pem", base + names[i] + ".key", base + "ca.pem"});
      if (!tls) return tl::unexpected(tls.error());
      forward.tls = std::move(*tls);
    }
    Host* const h = host.get();
    host->forwarder = std::make_unique<forward::Forwarder>(env_, forward, *host->agent, [this, h] {
      peer::Status status;
      status.jobs = {options_.job};
      status.read_bytes = h->log_bytes;
      return status;
    });
    host->agent->on_acknowledged = [this](uint64_t frames) { counters_.acknowledged += frames; };
    host->phase_ns = static_cast<TimeNs>(hash64(names[i]) % static_cast<uint64_t>(kPlayStep));
    host->flushed = -static_cast<int64_t>(hosts_.size()) % kFlushSteps;
    by_number[i] = h;
    hosts_.push_back(std::move(host));
  }
  if (hosts_.empty())
    return fail(ErrorCode::kInvalid, options_.root + ": its files name no hosts, so there are no agents");
  for (Host*& host : by_number)
    if (host == nullptr) host = hosts_.front().get();  // files of a launcher
  // Files without a host may share a step with the host's own files: the order of time is kept.
  for (const auto& [when, slices] : job_->slices)
    by_number[when.second]->steps.push_back({when.first, &slices});
  counters_.hosts = hosts_.size();
  if (!job_->slices.empty()) counters_.job_all_ns = (job_->slices.rbegin()->first.first + 1) * kPlayStep;
  return {};
}

bool Player::all_connected() {
  counters_.connected = 0;
  counters_.trouble.clear();
  bool all = true;
  for (const auto& host : hosts_) {
    const forward::ForwarderStats stats = host->forwarder->stats();
    host->connected = stats.phase == forward::Phase::kOpen;
    counters_.connected += host->connected;
    all = all && stats.sessions > 0;
    if (!host->connected && !stats.last_error.empty())
      counters_.trouble = host->name + ": " + stats.last_error;
  }
  return all;
}

void Player::tick() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (counters_.done_ns == kNoTime && now - looked_ns_ >= kLookEvery) {
    looked_ns_ = now;
    const bool all = all_connected();
    const bool enough = now - started_ns_ >= kConnectNs && counters_.connected > 0;
    if (counters_.begun_ns == kNoTime && (all || enough)) counters_.begun_ns = now;
  }
  if (counters_.begun_ns == kNoTime) return;
  pump();
  look_for_end();
}

TimeNs Player::job_now() const {
  const auto passed = static_cast<double>(env_.now(io::Clock::kMonotonic) - counters_.begun_ns);
  const auto all = static_cast<double>(counters_.job_all_ns + kPlayStep);
  return static_cast<TimeNs>(options_.speed > 0 ? std::min(passed * options_.speed, all) : all);
}

bool Player::is_due(const Host& host) const {
  if (host.working || host.next == host.steps.size()) return false;
  const uint64_t most = std::min<uint64_t>(kHostBytes, kAllBytes / hosts_.size());
  if (host.agent->waiting_bytes() > most) return false;
  return (host.steps[host.next].number + 1) * kPlayStep + host.phase_ns <= job_now();
}

void Player::pump() {
  if (busy_ || failed_) return;
  auto work = std::make_shared<Work>();
  const TimeNs now = env_.now(io::Clock::kWall);
  for (size_t i = 0; i < hosts_.size() && work->all.size() < kAtOnce; ++i) {
    cursor_ = (cursor_ + 1) % hosts_.size();
    Host& host = *hosts_[cursor_];
    if (!is_due(host)) continue;
    const Host::Step& step = host.steps[host.next];
    const bool flush = host.flushes();
    work->all.push_back({&host, {step.slices, flush, host.next + 1 == host.steps.size(), now}, {}});
    if (flush) host.flushed = step.number;
    ++host.next;
    host.working = true;
    counters_.job_ns = std::max(counters_.job_ns, (step.number + 1) * kPlayStep);
  }
  if (work->all.empty()) return;
  busy_ = true;
  worker_->submit(
      [work, job = job_] {
        for (Work::One& one : work->all) one.made = one.host->agent->condense(*job, one.step);
      },
      [this, work] {
        busy_ = false;
        worked(*work);
        pump();
      });
}

void Player::worked(Work& work) {
  for (Work::One& one : work.all) {
    Host& host = *one.host;
    host.working = false;
    if (!one.made.read && !std::exchange(failed_, true) && on_failed) on_failed(one.made.read.error());
    counters_.log_bytes += one.made.log_bytes - host.log_bytes;
    counters_.lines += one.made.lines - host.lines;
    host.log_bytes = one.made.log_bytes;
    host.lines = one.made.lines;
    counters_.finished += host.finished();
    for (const auto& frames : one.made.frames)
      for (const forward::SourceFrame& frame : frames) {
        ++counters_.frames;
        counters_.bytes += frame.bytes.size();
      }
    host.agent->add(std::move(one.made));
    for (const peer::Log log : peer::kLogs) host.forwarder->appended(log);
  }
}

void Player::look_for_end() {
  if (counters_.finished < hosts_.size() || counters_.done_ns != kNoTime) return;
  const auto all = [&](bool (PlayAgent::*is)() const) {
    return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& host) { return (*host->agent.*is)(); });
  };
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (counters_.given_ns == kNoTime && all(&PlayAgent::all_given)) {
    counters_.given_ns = now;
    if (on_given) on_given();
  }
  if (counters_.given_ns == kNoTime || !all(&PlayAgent::all_acknowledged)) return;
  counters_.done_ns = now;
  if (on_done) on_done();
}

PlayCounters Player::counters() const { return counters_; }

}  // namespace culprit::app
