#include "app/daemon/watch/loop_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace culprit::app {
namespace {

constexpr auto kEndWithin = std::chrono::seconds(2);
constexpr int kIoIdle = 3 << 13;        // IOPRIO_CLASS_IDLE
constexpr int kIoLast = (2 << 13) | 7;  // IOPRIO_CLASS_BE, its lowest level
constexpr int kIoOfProcess = 1;         // IOPRIO_WHO_PROCESS: a thread, by its number

// A sandbox may forbid it: the work is then bounded by its rate alone.
void lower_to(LoopPriority priority) {
  const bool idle = priority == LoopPriority::kIdle;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), idle ? 19 : 10);
  (void)::syscall(SYS_ioprio_set, kIoOfProcess, 0, idle ? kIoIdle : kIoLast);
}

void block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct LoopThread::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  io::Env* env = nullptr;  // while the loop exists
  bool leaving = false, ended = false;
};

Result<std::unique_ptr<LoopThread>> LoopThread::start(const std::string& name, LoopPriority priority,
                                                      MakeEnv make_env,
                                                      std::function<std::shared_ptr<void>(io::Env&)> build) {
  auto shared = std::make_shared<Shared>();
  try {
    shared->thread = std::thread([shared, name, priority, make_env, build = std::move(build)]() mutable {
      block_signals();
      (void)::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
      lower_to(priority);
      {
        const auto env = make_env();
        auto built = build(*env);
        build = {};
        bool leaves = false;
        {
          const std::lock_guard lock(shared->mutex);
          shared->env = env.get();
          leaves = shared->leaving;
        }
        if (!leaves) env->run();
        {
          const std::lock_guard lock(shared->mutex);
          shared->env = nullptr;
        }
        built.reset();
      }
      const std::lock_guard lock(shared->mutex);
      shared->ended = true;
      shared->changed.notify_all();
    });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kLimit, name + ": no thread: " + error.what());
  }
  return std::unique_ptr<LoopThread>(new LoopThread(std::move(shared)));
}

void LoopThread::stop() {
  const std::lock_guard lock(shared_->mutex);
  if (std::exchange(shared_->leaving, true)) return;
  if (shared_->env != nullptr) shared_->env->stop();
}

bool LoopThread::end() {
  stop();
  if (!shared_->thread.joinable()) return true;
  std::unique_lock lock(shared_->mutex);
  const bool ended = shared_->changed.wait_for(lock, kEndWithin, [&] { return shared_->ended; });
  lock.unlock();
  if (ended)
    shared_->thread.join();
  else
    shared_->thread.detach();
  return ended;
}

struct Callback::Shared {
  std::mutex mutex;
  io::Env* env = nullptr;
};

Callback::Callback(io::Env& env) : shared_(std::make_shared<Shared>()) { shared_->env = &env; }

Callback::~Callback() {
  const std::lock_guard lock(shared_->mutex);
  shared_->env = nullptr;
}

Callback::Post Callback::post() const {
  return [shared = shared_](std::function<void()> call) {
    const std::lock_guard lock(shared->mutex);
    if (shared->env == nullptr) return;
    shared->env->post([shared, call = std::move(call)] {
      bool alive = false;
      {
        const std::lock_guard inner(shared->mutex);
        alive = shared->env != nullptr;
      }
      if (alive) call();
    });
  };
}

}  // namespace culprit::app
