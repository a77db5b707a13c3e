#include "respond/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "respond/order.h"

namespace culprit::respond {

// Lives until the last closure of a worker or of the loop is done.
struct Executor::Shared {
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::condition_variable stopping;
};

namespace {

template <class Shared>
class RealPace final : public Pace {
 public:
  explicit RealPace(Shared& shared) : shared_(shared) {}
  TimeNs now() const override { return steady_now(); }
  TimeNs wall() const override { return wall_now(); }
  bool pause(TimeNs ns) override {
    std::unique_lock lock(shared_.mutex);
    return !shared_.stopping.wait_for(lock, std::chrono::nanoseconds(ns),
                                      [this] { return shared_.stop.load(); });
  }
  const std::atomic<bool>& stop() const override { return shared_.stop; }

 private:
  Shared& shared_;
};

ActionResult checked(const Backend& backend, const ActionOrder& order, Pace& pace) {
  if (const Status sound = check_order(order); !sound)
    return result_of(order, ActionState::kFailed, sound.error().text);
  return backend.carry_out(order, pace);
}

}  // namespace

Executor::Executor(io::Env& env, std::unique_ptr<Backend> backend)
    : env_(env), backend_(std::move(backend)), shared_(std::make_shared<Shared>()) {}

Result<std::unique_ptr<Executor>> Executor::make(io::Env& env, std::unique_ptr<Backend> backend) {
  std::unique_ptr<Executor> out(new Executor(env, std::move(backend)));
  for (size_t i = 0; i < kThreads; ++i) {
    auto worker = env.worker("actions");
    if (!worker) return tl::unexpected(worker.error());
    out->workers_.push_back(std::move(*worker));
  }
  return out;
}

Executor::~Executor() { stop(); }

void Executor::carry_out(const ActionOrder& order, std::function<void(ActionResult)> done) {
  const auto answer = std::make_shared<ActionResult>();
  const auto give = [this, shared = shared_, answer, done = std::move(done)] {
    if (shared->stop.load()) return;  // the Executor may be destroyed
    --waiting_;
    answer->at_ns = env_.now(io::Clock::kWall);
    done(std::move(*answer));
  };
  const bool full = waiting_++ >= kWaitingMost;
  if (full || !backend_->can(order.kind)) {
    *answer = result_of(order, ActionState::kFailed,
                        full ? fmt::format("{} orders are waiting already", kWaitingMost)
                             : fmt::format("{} has no action {}", name(), name_of(order.kind)));
    return env_.post(give);
  }
  const auto least = std::ranges::min_element(workers_, {}, [](const auto& w) { return w->queued(); });
  (*least)->submit(
      [this, order, answer] {
        if (shared_->stop.load()) return;
        RealPace<Shared> pace(*shared_);
        *answer = checked(*backend_, order, pace);
      },
      give);
}

void Executor::stop() {
  {
    const std::scoped_lock lock(shared_->mutex);
    shared_->stop.store(true);
  }
  shared_->stopping.notify_all();
  workers_.clear();
}

}  // namespace culprit::respond
