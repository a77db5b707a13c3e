// A machine of a simulated world, as io::Env: timers, workers and connections during one life of a program.
//
// kill() simulates kill -9 or a power loss: afterwards no object of this life has any effect, even if its
// calls are still on the stack. The owner destroys these objects and makes another SimEnv for the next
// life. Blocking work (Worker) takes no time, or a random time. Descriptors, watched folders and signals do
// not exist.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "io/env.h"
#include "sim/sim_world.h"

namespace culprit::sim {

struct SimEnvOptions {
  std::string machine;
  TimeNs wall_at_start_ns = 1'763'700'000 * kNsPerSecond;  // wall clock where the world's time is 0
  TimeNs work_ns = 0;  // longest duration of blocking work; random, sometimes 50 times as long
};

class SimEnv final : public io::Env {
 public:
  enum class Death { kKilled, kPowerLoss };

  SimEnv(World& world, SimEnvOptions options);
  ~SimEnv() override;

  const std::string& machine() const { return options_.machine; }
  World& world() { return world_; }
  bool is_alive() const { return alive_ != nullptr; }
  // kKilled: the machine's kernel closes the connections. kPowerLoss: peers receive nothing.
  void kill(Death death);
  void step_wall_clock(TimeNs ns) { options_.wall_at_start_ns += ns; }
  // Called from a Worker's work: delays its completion by `ns`; its effects are visible at once.
  void prolong_work(TimeNs ns) { prolonged_ns_ += ns; }

  TimeNs now(io::Clock clock) const override;
  void post(std::function<void()> call) override;
  std::unique_ptr<io::Timer> timer(std::function<void()> call) override;
  Result<std::unique_ptr<io::Worker>> worker(const std::string& name) override;
  Result<std::unique_ptr<io::Poll>> poll(int, std::function<void()>) override;
  Result<std::unique_ptr<io::Listener>> listen(
      const std::string& address, uint32_t mode,
      std::function<void(std::unique_ptr<io::Stream>)> on_connection) override;
  Result<std::unique_ptr<io::Connecting>> connect(
      const std::string& address, io::ConnectOptions options,
      std::function<void(Result<std::unique_ptr<io::Stream>>)> done) override;
  Result<std::unique_ptr<io::FolderWatch>> folder_watch(std::function<void(const std::string&)>) override;
  Result<std::unique_ptr<io::SignalWatch>> on_signal(int, std::function<void()>) override;
  // Runs until stop(), or until no event is left.
  void run() override;
  void stop() override { stopped_ = true; }

 private:
  friend class World;
  friend class SimTimer;
  friend class SimWorker;
  // Calls back unless this life ends before.
  void after(TimeNs ns, std::function<void()> call);

  World& world_;
  SimEnvOptions options_;
  Random random_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool stopped_ = false;
  TimeNs prolonged_ns_ = 0;  // of the work under way
};

// One end of a Link.
class SimStream final : public io::Stream {
 public:
  SimStream(World& world, std::shared_ptr<Link> link, int end)
      : world_(world), link_(std::move(link)), end_(end) {}
  ~SimStream() override;
  void start(Handlers handlers) override;
  void pause() override { own().paused = true; }
  void resume() override;
  void write(std::string bytes) override;
  size_t unsent() const override;
  std::optional<io::PeerCredentials> peer() const override { return std::nullopt; }
  std::string address() const override;
  size_t drain(size_t) override { return 0; }

 private:
  Link::End& own() { return link_->ends[end_]; }
  Link::End& other() { return link_->ends[1 - end_]; }
  World& world_;
  const std::shared_ptr<Link> link_;
  const int end_;
};

}  // namespace culprit::sim
