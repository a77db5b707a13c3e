// A loop with a clock that a test moves, a server in it, and clients that write any bytes. One thread.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "io/env.h"
#include "serve/http_server.h"

namespace culprit::serve::test {

class ManualEnv final : public io::Env {
 public:
  TimeNs now(io::Clock) const override { return now_; }
  void post(std::function<void()> call) override { posted_.push_back(std::move(call)); }
  std::unique_ptr<io::Timer> timer(std::function<void()> call) override {
    return std::make_unique<ManualTimer>(*this, std::move(call));
  }
  Result<std::unique_ptr<io::Worker>> worker(const std::string&) override { return nullptr; }
  Result<std::unique_ptr<io::Poll>> poll(int descriptor, std::function<void()> readable) override {
    return std::make_unique<ManualPoll>(*this, descriptor, std::move(readable));
  }
  Result<std::unique_ptr<io::Listener>> listen(const std::string&, uint32_t,
                                               std::function<void(std::unique_ptr<io::Stream>)>) override {
    return nullptr;
  }
  Result<std::unique_ptr<io::Connecting>> connect(
      const std::string&, io::ConnectOptions,
      std::function<void(Result<std::unique_ptr<io::Stream>>)>) override {
    return nullptr;
  }
  Result<std::unique_ptr<io::FolderWatch>> folder_watch(std::function<void(const std::string&)>) override {
    return nullptr;
  }
  Result<std::unique_ptr<io::SignalWatch>> on_signal(int, std::function<void()>) override { return nullptr; }
  void run() override {
    while (!stopped_) turn(20);
  }
  void stop() override { stopped_ = true; }

  // Runs due timers, posts and readable descriptors; waits for descriptors at most `wait_ms`.
  void turn(int wait_ms) {
    for (const auto& call : std::exchange(posted_, {})) call();
    for (ManualTimer* t : std::vector<ManualTimer*>(timers_.begin(), timers_.end())) {
      if (!timers_.contains(t) || t->due == kNoTime || t->due > now_) continue;
      t->due = t->repeat ? now_ + t->repeat : kNoTime;
      t->call();
    }
    std::vector<pollfd> fds;
    for (const ManualPoll* p : polls_) fds.push_back({p->descriptor, POLLIN, 0});
    if (::poll(fds.data(), fds.size(), wait_ms) <= 0) return;
    for (ManualPoll* p : std::vector<ManualPoll*>(polls_.begin(), polls_.end()))
      if (polls_.contains(p)) p->readable();
  }
  void advance(TimeNs by) {
    now_ += by;
    turn(0);
  }

 private:
  struct ManualTimer final : io::Timer {
    ManualTimer(ManualEnv& e, std::function<void()> c) : env(e), call(std::move(c)) {
      env.timers_.insert(this);
    }
    ~ManualTimer() override { env.timers_.erase(this); }
    void start(TimeNs after, TimeNs again) override { due = env.now_ + after, repeat = again; }
    void stop() override { due = kNoTime; }
    ManualEnv& env;
    std::function<void()> call;
    TimeNs due = kNoTime, repeat = 0;
  };
  struct ManualPoll final : io::Poll {
    ManualPoll(ManualEnv& e, int d, std::function<void()> r) : env(e), descriptor(d), readable(std::move(r)) {
      env.polls_.insert(this);
    }
    ~ManualPoll() override { env.polls_.erase(this); }
    ManualEnv& env;
    int descriptor;
    std::function<void()> readable;
  };

  TimeNs now_ = 1'763'700'000 * kNsPerSecond;
  std::atomic<bool> stopped_{false};
  std::vector<std::function<void()>> posted_;
  std::set<ManualTimer*> timers_;
  std::set<ManualPoll*> polls_;
};

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/culprit-serve-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A connection of one client.
class Wire {
 public:
  Wire(ManualEnv& env, const std::string& address) : env_(env) {
    if (address.starts_with("unix:")) {
      sockaddr_un at{};
      at.sun_family = AF_UNIX;
      std::strncpy(at.sun_path, address.c_str() + 5, sizeof at.sun_path - 1);
      descriptor_ = socket(AF_UNIX, SOCK_STREAM, 0);
      connected_ = connect(descriptor_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    } else {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
      descriptor_ = socket(AF_INET, SOCK_STREAM, 0);
      connected_ = connect(descriptor_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
    }
    fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  }
  ~Wire() { hang_up(); }
  bool connected() const { return connected_; }
  void hang_up() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }

  void send(std::string_view bytes) {
    for (int quiet = 0; !bytes.empty() && quiet < 50;) {
      const ssize_t n = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0)
        bytes.remove_prefix(static_cast<size_t>(n));
      else if (errno != EAGAIN)
        return;
      else
        ++quiet;
      env_.turn(1);
    }
  }

  // Reads until `enough`, the server's end, or a time without bytes.
  std::string& read_until(const std::function<bool(const std::string&)>& enough) {
    char part[16 << 10];
    for (int quiet = 0; quiet < 100 && !enough(got_);) {
      env_.turn(2);
      const ssize_t n = recv(descriptor_, part, sizeof part, 0);
      if (n > 0)
        got_.append(part, static_cast<size_t>(n)), quiet = 0;
      else if (n == 0 || errno != EAGAIN)
        return ended_ = true, got_;
      else
        ++quiet;
    }
    return got_;
  }
  std::string& read_until(const std::string& text) {
    return read_until([&](const std::string& got) { return got.find(text) != got.npos; });
  }
  std::string& read_all() {
    return read_until([](const std::string&) { return false; });
  }
  bool ended() const { return ended_; }
  std::string& got() { return got_; }

 private:
  ManualEnv& env_;
  int descriptor_ = -1;
  bool connected_ = false, ended_ = false;
  std::string got_;
};

struct Answered {
  int status = 0;
  std::string head, body;
  bool has(const std::string& text) const { return head.find(text) != head.npos; }
};

inline Answered answered(const std::string& text) {
  Answered out;
  if (text.starts_with("HTTP/1.1 ")) out.status = std::atoi(text.c_str() + 9);
  const size_t end = text.find("\r\n\r\n");
  out.head = text.substr(0, end);
  if (end != text.npos) out.body = text.substr(end + 4);
  return out;
}

// One request on a connection of its own.
inline Answered ask(ManualEnv& env, const std::string& address, const std::string& bytes) {
  Wire wire(env, address);
  BOOST_REQUIRE(wire.connected());
  wire.send(bytes);
  return answered(wire.read_all());
}

inline std::string request(const std::string& method, const std::string& target,
                           const std::string& headers = "", const std::string& body = "") {
  std::string out = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers;
  if (!body.empty()) out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return out + "\r\n" + body;
}

}  // namespace culprit::serve::test
