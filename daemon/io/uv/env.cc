#include "io/uv/env.h"

#include <csignal>
#include <ctime>
#include <utility>

#include "base/check.h"
#include "io/system_error.h"
#include "io/uv/loop.h"

namespace culprit::io {

void Mailbox::post(std::function<void()> call, Wake wake) {
  const std::lock_guard lock(mutex_);
  if (wake_ == nullptr) return;
  calls_.push_back(std::move(call));
  if (wake == Wake::kLater || woken_) return;  // a wake-up serves all calls
  woken_ = true;
  uv_async_send(wake_);
}

void Mailbox::open(uv_async_t* wake) {
  const std::lock_guard lock(mutex_);
  wake_ = wake;
}

void Mailbox::close() {
  std::vector<std::function<void()>> dropped;  // destroyed without the lock: a closure may own anything
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
  dropped.swap(calls_);
}

std::vector<std::function<void()>> Mailbox::drain() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return std::exchange(calls_, {});
}

Error uv_error(const std::string& subject, int number) { return system_error(subject, -number); }

namespace {

class UvEnv final : public Env {
 public:
  UvEnv() {
    std::signal(SIGPIPE, SIG_IGN);
    CULPRIT_CHECK(uv_loop_init(&loop_.uv) == 0);
    CULPRIT_CHECK(uv_async_init(&loop_.uv, &wake_, [](uv_async_t* handle) {
                    call_all(*static_cast<Loop*>(handle->data));
                  }) == 0);
    wake_.data = &loop_;
    // Before each wait, runs calls that need no wake-up of their own.
    CULPRIT_CHECK(uv_prepare_init(&loop_.uv, &turn_) == 0);
    turn_.data = &loop_;
    uv_prepare_start(&turn_, [](uv_prepare_t* handle) { call_all(*static_cast<Loop*>(handle->data)); });
    uv_unref(reinterpret_cast<uv_handle_t*>(&turn_));
    loop_.mailbox->open(&wake_);
  }

  ~UvEnv() override {
    loop_.mailbox->close();
    uv_close(reinterpret_cast<uv_handle_t*>(&wake_), nullptr);
    uv_close(reinterpret_cast<uv_handle_t*>(&turn_), nullptr);
    // Only close callbacks are left; a write in progress needs a second turn.
    for (int turn = 0; turn < 3; ++turn) uv_run(&loop_.uv, UV_RUN_NOWAIT);
    CULPRIT_CHECK(uv_loop_close(&loop_.uv) == 0);  // otherwise an object of this Env still exists
  }

  TimeNs now(Clock clock) const override {
    timespec time;
    clock_gettime(clock == Clock::kWall ? CLOCK_REALTIME : CLOCK_MONOTONIC, &time);
    return time.tv_sec * kNsPerSecond + time.tv_nsec;
  }
  void post(std::function<void()> call) override { loop_.mailbox->post(std::move(call)); }

  std::unique_ptr<Timer> timer(std::function<void()> call) override {
    return make_timer(loop_, std::move(call));
  }
  Result<std::unique_ptr<Worker>> worker(const std::string& name) override {
    return make_worker(loop_, name);
  }
  Result<std::unique_ptr<Poll>> poll(int descriptor, std::function<void()> readable) override {
    return make_poll(loop_, descriptor, std::move(readable));
  }
  Result<std::unique_ptr<Listener>> listen(const std::string& address, uint32_t mode,
                                           OnConnection on_connection) override {
    return make_listener(loop_, address, mode, std::move(on_connection));
  }
  Result<std::unique_ptr<Connecting>> connect(const std::string& address, ConnectOptions options,
                                              OnConnected done) override {
    return make_connecting(loop_, address, options, std::move(done));
  }
  Result<std::unique_ptr<FolderWatch>> folder_watch(OnFolder changed) override {
    return make_folder_watch(loop_, std::move(changed));
  }
  Result<std::unique_ptr<SignalWatch>> on_signal(int number, std::function<void()> call) override {
    return make_signal_watch(loop_, number, std::move(call));
  }

  void run() override { uv_run(&loop_.uv, UV_RUN_DEFAULT); }
  void stop() override {
    post([this] { uv_stop(&loop_.uv); });
  }

 private:
  static void call_all(Loop& loop) {
    for (auto& call : loop.mailbox->drain()) call();
  }

  Loop loop_;
  uv_async_t wake_;
  uv_prepare_t turn_;
};

}  // namespace

std::unique_ptr<Env> make_uv_env() { return std::make_unique<UvEnv>(); }

}  // namespace culprit::io
