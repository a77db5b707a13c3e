// An Env without a system: the test advances its clock and acts as its peers.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io/env.h"

namespace culprit::io::testing {

// The test's end of a connection. Bytes for a paused end wait, as in the kernel.
class FakePeer {
 public:
  void send(std::string_view bytes) { waiting_ += bytes, deliver(); }
  void hang_up() { ended_ = true, deliver(); }
  void fail(Error error) { error_ = std::move(error), hang_up(); }
  bool is_open() const { return open_; }  // the other end exists
  bool is_paused() const { return paused_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  friend class FakeEnv;
  friend class FakeStream;

  // At most one read's size per call, as in a loop.
  void deliver() {
    constexpr size_t kReadBytes = 64 << 10;
    while (open_ && !paused_ && !waiting_.empty()) {
      const std::string bytes = waiting_.substr(0, kReadBytes);
      waiting_.erase(0, kReadBytes);
      handlers_.on_bytes(bytes);
    }
    if (open_ && !paused_ && std::exchange(ended_, false)) {
      const auto on_end = handlers_.on_end;
      on_end(error_ ? &*error_ : nullptr);
    }
  }

  Stream::Handlers handlers_;
  std::string waiting_;
  std::optional<Error> error_;
  bool open_ = true, paused_ = true, ended_ = false;
};

class FakeStream final : public Stream {
 public:
  FakeStream(std::shared_ptr<FakePeer> other, std::optional<PeerCredentials> credentials)
      : other_(std::move(other)), credentials_(credentials) {}
  ~FakeStream() override { other_->open_ = false; }
  void start(Handlers handlers) override { other_->handlers_ = std::move(handlers), other_->paused_ = false; }
  void pause() override { other_->paused_ = true; }
  void resume() override { other_->paused_ = false; }
  void write(std::string bytes) override { unsent_ += bytes.size(); }
  size_t unsent() const override { return unsent_; }
  std::optional<PeerCredentials> peer() const override { return credentials_; }
  size_t drain(size_t max) override {
    size_t done = 0;
    while (done < max && !other_->waiting_.empty()) {
      const std::string bytes = std::exchange(other_->waiting_, {});
      done += bytes.size();
      other_->handlers_.on_bytes(bytes);
    }
    return done;
  }

 private:
  std::shared_ptr<FakePeer> other_;
  std::optional<PeerCredentials> credentials_;
  size_t unsent_ = 0;
};

class FakeEnv : public Env {
 public:
  TimeNs wall_ns = 1'763'700'000 * kNsPerSecond, monotonic_ns = kNsPerSecond;

  // Advances the time; due timers call in order.
  void advance(TimeNs ns) {
    for (const TimeNs end = monotonic_ns + ns;;) {
      FakeTimer* next = nullptr;
      for (FakeTimer* timer : timers_)
        if (timer->due_ns != kNoTime && timer->due_ns <= end && (!next || timer->due_ns < next->due_ns))
          next = timer;
      const TimeNs to = next ? std::max(next->due_ns, monotonic_ns) : end;
      wall_ns += to - monotonic_ns, monotonic_ns = to;
      if (next == nullptr) return read();
      next->due_ns = next->repeat_ns > 0 ? monotonic_ns + next->repeat_ns : kNoTime;
      next->call();
      read();
    }
  }
  // Delivers waiting bytes to the ends that resumed reading.
  virtual void read() {
    for (size_t i = 0; i < peers_.size(); ++i) peers_[i]->deliver();
  }
  // Null without a listener.
  std::shared_ptr<FakePeer> connect(const std::string& address, std::optional<PeerCredentials> credentials) {
    const auto listener = listeners_.find(address);
    if (listener == listeners_.end()) return nullptr;
    auto peer = std::make_shared<FakePeer>();
    peers_.push_back(peer);
    listener->second(std::make_unique<FakeStream>(peer, credentials));
    return peer;
  }

  TimeNs now(Clock clock) const override { return clock == Clock::kWall ? wall_ns : monotonic_ns; }
  void post(std::function<void()> call) override { posted_.push_back(std::move(call)); }
  std::unique_ptr<Timer> timer(std::function<void()> call) override {
    return std::make_unique<FakeTimer>(*this, std::move(call));
  }
  bool has_threads = true;
  Result<std::unique_ptr<Worker>> worker(const std::string& name) override {
    if (!has_threads) return fail(ErrorCode::kIo, "a thread for " + name + ": there is none here");
    return std::make_unique<FakeWorker>(*this);
  }
  Result<std::unique_ptr<Poll>> poll(int, std::function<void()>) override { return none("poll"); }
  Result<std::unique_ptr<Listener>> listen(const std::string& address, uint32_t,
                                           std::function<void(std::unique_ptr<Stream>)> call) override {
    if (listeners_.contains(address)) return fail(ErrorCode::kIo, address + ": another process serves it");
    listeners_[address] = std::move(call);
    return std::make_unique<FakeListener>(*this, address);
  }
  Result<std::unique_ptr<Connecting>> connect(const std::string&, ConnectOptions,
                                              std::function<void(Result<std::unique_ptr<Stream>>)>) override {
    return none("a network");
  }
  Result<std::unique_ptr<FolderWatch>> folder_watch(std::function<void(const std::string&)>) override {
    return none("inotify");
  }
  Result<std::unique_ptr<SignalWatch>> on_signal(int, std::function<void()>) override {
    return none("signals");
  }
  // Runs what was posted.
  void run() override {
    while (!posted_.empty())
      for (auto& call : std::exchange(posted_, {})) call();
  }
  void stop() override {}

 private:
  struct FakeTimer final : Timer {
    FakeTimer(FakeEnv& env_in, std::function<void()> call_in) : env(env_in), call(std::move(call_in)) {
      env.timers_.insert(this);
    }
    ~FakeTimer() override { env.timers_.erase(this); }
    void start(TimeNs after_ns, TimeNs repeat) override {
      due_ns = env.monotonic_ns + after_ns, repeat_ns = repeat;
    }
    void stop() override { due_ns = kNoTime; }
    FakeEnv& env;
    std::function<void()> call;
    TimeNs due_ns = kNoTime, repeat_ns = 0;
  };
  // Works on request.
  struct FakeWorker final : Worker {
    explicit FakeWorker(FakeEnv& env_in) : env(env_in) {}
    void submit(std::function<void()> work, std::function<void()> done) override {
      work();
      if (done) env.post(std::move(done));
    }
    size_t queued() const override { return 0; }
    void abandon() override {}
    FakeEnv& env;
  };
  struct FakeListener final : Listener {
    FakeListener(FakeEnv& env_in, std::string address_in) : env(env_in), at(std::move(address_in)) {}
    ~FakeListener() override { env.listeners_.erase(at); }
    std::string address() const override { return at; }
    uint64_t descriptors_missing() const override { return 0; }
    FakeEnv& env;
    std::string at;
  };

 protected:
  static tl::unexpected<Error> none(const std::string& what) {
    return fail(ErrorCode::kIo, what + ": there is none here");
  }

  std::vector<std::function<void()>> posted_;

 private:
  std::set<FakeTimer*> timers_;
  std::map<std::string, std::function<void(std::unique_ptr<Stream>)>> listeners_;
  std::vector<std::shared_ptr<FakePeer>> peers_;
};

}  // namespace culprit::io::testing
