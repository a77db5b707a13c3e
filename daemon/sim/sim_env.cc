#include "sim/sim_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace culprit::sim {

namespace {

tl::unexpected<Error> none(const char* what) {
  return fail(ErrorCode::kIo, fmt::format("{}: there is none in a simulation", what));
}

}  // namespace

class SimTimer final : public io::Timer {
 public:
  SimTimer(SimEnv& env, std::function<void()> call) : env_(env), state_(std::make_shared<State>()) {
    state_->call = std::move(call);
  }
  ~SimTimer() override { stop(); }
  void start(TimeNs after_ns, TimeNs repeat_ns) override {
    schedule(env_, {state_, ++state_->start, repeat_ns}, after_ns);
  }
  void stop() override { ++state_->start; }

 private:
  struct State {
    std::function<void()> call;
    uint64_t start = 0;  // the latest start; events of earlier ones have no effect
  };
  struct Due {
    std::shared_ptr<State> state;
    uint64_t start;
    TimeNs repeat_ns;
  };
  static void schedule(SimEnv& env, const Due& due, TimeNs after_ns) {
    env.after(after_ns, [&env, due] {
      if (due.state->start != due.start) return;
      if (due.repeat_ns > 0) schedule(env, due, due.repeat_ns);
      due.state->call();
    });
  }

  SimEnv& env_;
  const std::shared_ptr<State> state_;
};

class SimWorker final : public io::Worker {
 public:
  explicit SimWorker(SimEnv& env) : env_(env), queue_(std::make_shared<Queue>()) {}
  ~SimWorker() override { queue_->exited = true; }
  void submit(std::function<void()> work, std::function<void()> done) override {
    queue_->items.push_back({std::move(work), std::move(done)});
    if (queue_->items.size() == 1) next(env_, queue_);
  }
  size_t queued() const override { return queue_->items.size(); }
  void abandon() override { queue_->exited = true; }

 private:
  struct Queue {
    std::deque<std::pair<std::function<void()>, std::function<void()>>> items;
    bool exited = false;
  };
  static void finish(SimEnv& env, const std::shared_ptr<Queue>& queue, const std::function<void()>& done) {
    env.post([queue, done] {
      if (!queue->exited && done) done();
    });
    queue->items.pop_front();
    if (!queue->items.empty()) next(env, queue);
  }
  static void next(SimEnv& env, const std::shared_ptr<Queue>& queue) {
    const TimeNs most = env.options_.work_ns;
    TimeNs takes = most == 0 ? 0 : env.random_.range(0, most);
    if (most > 0 && env.random_.per_mille(10)) takes *= 50;
    env.after(takes, [&env, queue] {
      if (queue->exited) return;
      const auto item = std::move(queue->items.front());
      item.first();
      const TimeNs more = std::exchange(env.prolonged_ns_, 0);
      if (more > 0) return env.after(more, [&env, queue, done = item.second] { finish(env, queue, done); });
      finish(env, queue, item.second);
    });
  }

  SimEnv& env_;
  const std::shared_ptr<Queue> queue_;
};

class SimListener final : public io::Listener {
 public:
  SimListener(World& world, std::weak_ptr<bool> alive, std::string address)
      : world_(world), alive_(std::move(alive)), address_(std::move(address)) {}
  ~SimListener() override {
    if (!alive_.expired()) world_.listening_.erase(address_);  // else another life may listen at this address
  }
  std::string address() const override { return address_; }
  uint64_t descriptors_missing() const override { return 0; }

 private:
  World& world_;
  const std::weak_ptr<bool> alive_;
  const std::string address_;
};

class SimConnecting final : public io::Connecting {
 public:
  std::shared_ptr<bool> wanted = std::make_shared<bool>(true);
};

SimEnv::SimEnv(World& world, SimEnvOptions options)
    : world_(world), options_(std::move(options)), random_(world.random_.next()) {}

SimEnv::~SimEnv() { kill(Death::kKilled); }

void SimEnv::kill(Death death) {
  if (!alive_) return;
  alive_.reset();
  std::erase_if(world_.listening_, [](const auto& entry) { return entry.second.alive.expired(); });
  for (const auto& weak : std::vector(world_.links_)) {
    const auto link = weak.lock();
    for (int end = 0; link && end < 2; ++end) {
      Link::End& own = link->ends[end];
      // Selects the links of this life: their pointer has expired, but their end is still open.
      if (own.machine != options_.machine || !own.alive.expired() || !own.open) continue;
      own.open = false;
      if (death == Death::kPowerLoss) {
        link->half_open = true;
      } else if (!own.wire.empty()) {  // unread bytes make the kernel reset the connection
        world_.reset(link);
      } else {
        link->ends[1 - end].hung_up = true;
        world_.pump_soon(link, 1 - end, link->latency_ns);
      }
    }
  }
}

TimeNs SimEnv::now(io::Clock clock) const {
  return world_.now_ + (clock == io::Clock::kWall ? options_.wall_at_start_ns : 0);
}

void SimEnv::after(TimeNs ns, std::function<void()> call) {
  if (!alive_) return;
  world_.after(ns, [alive = std::weak_ptr<bool>(alive_), call = std::move(call)] {
    if (!alive.expired()) call();
  });
}

void SimEnv::post(std::function<void()> call) { after(0, std::move(call)); }

std::unique_ptr<io::Timer> SimEnv::timer(std::function<void()> call) {
  return std::make_unique<SimTimer>(*this, std::move(call));
}
Result<std::unique_ptr<io::Worker>> SimEnv::worker(const std::string&) {
  return std::make_unique<SimWorker>(*this);
}
Result<std::unique_ptr<io::Poll>> SimEnv::poll(int, std::function<void()>) { return none("a descriptor"); }
Result<std::unique_ptr<io::FolderWatch>> SimEnv::folder_watch(std::function<void(const std::string&)>) {
  return none("a watched folder");
}
Result<std::unique_ptr<io::SignalWatch>> SimEnv::on_signal(int, std::function<void()>) {
  return none("a signal");
}

Result<std::unique_ptr<io::Listener>> SimEnv::listen(
    const std::string& address, uint32_t, std::function<void(std::unique_ptr<io::Stream>)> on_connection) {
  if (world_.listening_.contains(address))
    return fail(ErrorCode::kIo, fmt::format("{}: another process serves it", address));
  world_.listening_[address] = {alive_, options_.machine, std::move(on_connection)};
  return std::make_unique<SimListener>(world_, alive_, address);
}

Result<std::unique_ptr<io::Connecting>> SimEnv::connect(
    const std::string& address, io::ConnectOptions options,
    std::function<void(Result<std::unique_ptr<io::Stream>>)> done) {
  auto connecting = std::make_unique<SimConnecting>();
  const auto blocked = world_.blocked_.find(options_.machine);
  const bool lost = world_.net_random_.chance(world_.faults.lost_percent) ||
                    (blocked != world_.blocked_.end() && blocked->second);
  const TimeNs takes = lost ? options.timeout_ns : world_.net_random_.range(1, world_.faults.latency_ns + 1);
  after(takes, [this, address, lost, wanted = std::weak_ptr<bool>(connecting->wanted), done] {
    if (wanted.expired()) return;
    if (lost) return done(fail(ErrorCode::kIo, fmt::format("{}: connection timed out", address)));
    auto stream = world_.dial(*this, address);
    stream ? done(std::move(stream))
           : done(fail(ErrorCode::kIo, fmt::format("{}: connection refused", address)));
  });
  return connecting;
}

void SimEnv::run() {
  stopped_ = false;
  while (!stopped_ && alive_ && !world_.events_.empty())
    if (!world_.run_for(std::max<TimeNs>(0, world_.events_.front().when - world_.now_))) return;
}

// ---- streams

SimStream::~SimStream() {
  own().open = false;
  own().handlers = nullptr;
  if (own().alive.expired()) return;  // kill() informed the peer already
  other().hung_up = true;
  world_.pump_soon(link_, 1 - end_, link_->latency_ns);
}

void SimStream::start(Handlers handlers) {
  own().handlers = std::make_shared<Handlers>(std::move(handlers));
  own().started = true;
  world_.pump_soon(link_, end_, 0);
}

void SimStream::resume() {
  own().paused = false;
  world_.pump_soon(link_, end_, 0);
}

void SimStream::write(std::string bytes) {
  if (own().alive.expired() || own().ended || link_->cut_at == 0) return;
  other().wire += bytes;
  other().reported = false;
  world_.pump_soon(link_, 1 - end_, link_->latency_ns);
  if (unsent() == 0)
    world_.after(0, [&world = world_, link = link_, to = 1 - end_] { world.notify_sent(link, to); });
}

size_t SimStream::unsent() const {
  const size_t size = link_->ends[1 - end_].wire.size();
  return size - std::min(size, link_->kernel_bytes);
}

std::string SimStream::address() const {
  return fmt::format("{}:{}", link_->ends[1 - end_].machine, 40'000 + link_->number % 20'000);
}

}  // namespace culprit::sim
