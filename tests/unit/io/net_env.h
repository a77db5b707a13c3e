// A FakeEnv with a network in memory: connections between two ends in it, which a test may slow down, cut
// within a message, or leave half-open. No delivery happens within a write.
#pragma once

#include <algorithm>
#include <limits>

#include "fake_env.h"

namespace culprit::io::testing {

// A connection; end 0 connected, end 1 accepted.
struct Link {
  struct End {
    Stream::Handlers handlers;
    std::string wire;        // bytes on the way to this end
    uint64_t delivered = 0;  // to this end
    bool open = true, started = false, paused = false, ended = false;
    bool hung_up = false;  // the other end is closed
    bool reported = true;  // the other end knows that its bytes were accepted
  };
  End ends[2];
  bool half_open = false;               // no bytes arrive any more, not even the end
  uint64_t cut_at[2] = {~0ull, ~0ull};  // bytes to an end after which both ends have an error
  uint64_t bytes_per_second = 0;        // 0: no limit
  TimeNs moved_ns = 0;
  double may_move = 0;
  std::string address;

  void cut() { cut_at[0] = cut_at[1] = 0; }
};

class NetStream final : public Stream {
 public:
  NetStream(std::shared_ptr<Link> link, int end) : link_(std::move(link)), end_(end) {}
  ~NetStream() override {
    own().open = false;
    own().handlers = {};
    other().hung_up = true;
  }
  void start(Handlers handlers) override { own().handlers = std::move(handlers), own().started = true; }
  void pause() override { own().paused = true; }
  void resume() override { own().paused = false; }
  void write(std::string bytes) override {
    if (!other().open && !link_->half_open) return;
    other().wire += bytes, other().reported = false;
  }
  size_t unsent() const override { return link_->ends[1 - end_].wire.size(); }
  std::optional<PeerCredentials> peer() const override { return std::nullopt; }
  std::string address() const override { return link_->address; }
  size_t drain(size_t) override { return 0; }

 private:
  Link::End& own() { return link_->ends[end_]; }
  Link::End& other() { return link_->ends[1 - end_]; }
  std::shared_ptr<Link> link_;
  int end_;
};

class NetEnv : public FakeEnv {
 public:
  std::vector<std::shared_ptr<Link>> links;
  bool refuses = false;  // connections
  size_t largest_read = 64 << 10;
  std::function<void(Link&)> on_link;  // called for each new connection
  uint64_t connections = 0;

  Result<std::unique_ptr<Listener>> listen(const std::string& address, uint32_t,
                                           std::function<void(std::unique_ptr<Stream>)> call) override {
    listening_[address] = std::move(call);
    return std::make_unique<NetListener>(*this, address);
  }
  Result<std::unique_ptr<Connecting>> connect(
      const std::string& address, ConnectOptions,
      std::function<void(Result<std::unique_ptr<Stream>>)> done) override {
    auto connecting = std::make_unique<NetConnecting>();
    connecting->alive = std::make_shared<bool>(true);
    post([this, address, alive = std::weak_ptr<bool>(connecting->alive), done = std::move(done)] {
      if (alive.expired()) return;
      auto stream = dial(address);
      stream ? done(std::move(stream)) : done(fail(ErrorCode::kIo, address + ": connection refused"));
    });
    return connecting;
  }
  // The other end of a new connection; null without a listener.
  std::unique_ptr<Stream> dial(const std::string& address) {
    const auto to = listening_.find(address);
    if (to == listening_.end() || refuses) return nullptr;
    auto link = std::make_shared<Link>();
    link->address = "10.0.0." + std::to_string(++connections) + ":4000";
    link->moved_ns = monotonic_ns;
    links.push_back(link);
    if (on_link) on_link(*link);
    const auto call = to->second;
    call(std::make_unique<NetStream>(link, 1));
    return std::make_unique<NetStream>(link, 0);
  }
  // Runs everything that can happen now.
  void read() override {
    for (bool moved = true; moved;) {
      moved = !posted_.empty();
      run();
      for (size_t i = 0; i < links.size(); ++i) {
        const std::shared_ptr<Link> link = links[i];
        for (int end = 0; end < 2; ++end) moved |= deliver(*link, end);
      }
      std::erase_if(links, [](const auto& link) { return !link->ends[0].open && !link->ends[1].open; });
    }
  }

 private:
  struct NetConnecting final : Connecting {
    std::shared_ptr<bool> alive;
  };
  struct NetListener final : Listener {
    NetListener(NetEnv& env_in, std::string address_in) : env(env_in), at(std::move(address_in)) {}
    ~NetListener() override { env.listening_.erase(at); }
    std::string address() const override { return at; }
    uint64_t descriptors_missing() const override { return 0; }
    NetEnv& env;
    std::string at;
  };

  size_t may_move(Link& link) {
    if (link.bytes_per_second == 0) return std::numeric_limits<size_t>::max();
    link.may_move += static_cast<double>(link.bytes_per_second) *
                     static_cast<double>(monotonic_ns - std::exchange(link.moved_ns, monotonic_ns)) / 1e9;
    return static_cast<size_t>(link.may_move);
  }

  bool deliver(Link& link, int to) {
    Link::End& end = link.ends[to];
    if (link.half_open || !end.open || !end.started || end.ended) return false;
    if (end.delivered >= link.cut_at[to] || (link.cut_at[0] == 0 && link.cut_at[1] == 0)) {
      link.cut();
      end.ended = true;
      const auto call = end.handlers.on_end;
      const Error error{ErrorCode::kIo, "a connection: connection reset by peer"};
      if (call) call(&error);
      return true;
    }
    if (end.paused) return false;
    const size_t size = std::min({end.wire.size(), largest_read, may_move(link),
                                  static_cast<size_t>(link.cut_at[to] - end.delivered)});
    if (size > 0) {
      if (link.bytes_per_second > 0) link.may_move -= static_cast<double>(size);
      const std::string bytes = end.wire.substr(0, size);
      end.wire.erase(0, size);
      end.delivered += size;
      end.handlers.on_bytes(bytes);
      return true;
    }
    if (!end.wire.empty()) return false;
    if (!std::exchange(end.reported, true)) {
      Link::End& writer = link.ends[1 - to];
      const auto call = writer.handlers.on_sent;
      if (writer.open && call) call();
      return true;
    }
    if (!end.hung_up) return false;
    end.ended = true;
    const auto call = end.handlers.on_end;
    if (call) call(nullptr);
    return true;
  }

  std::map<std::string, std::function<void(std::unique_ptr<Stream>)>> listening_;
};

}  // namespace culprit::io::testing
