// Any bytes of a client, sent to a real server over a socket: the server must answer the next client. The
// target of the first line is also parsed alone: the result must satisfy target.h.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "io/env.h"
#include "serve/http_server.h"

namespace {

using namespace culprit;
using namespace culprit::serve;

void require(bool condition) {
  if (!condition) std::abort();
}

// A clock that does not advance, and one descriptor: the server's.
class StillEnv final : public io::Env {
 public:
  TimeNs now(io::Clock) const override { return 0; }
  void post(std::function<void()>) override {}
  std::unique_ptr<io::Timer> timer(std::function<void()>) override { return std::make_unique<StillTimer>(); }
  Result<std::unique_ptr<io::Worker>> worker(const std::string&) override { return nullptr; }
  Result<std::unique_ptr<io::Poll>> poll(int descriptor, std::function<void()> readable) override {
    descriptor_ = descriptor;
    readable_ = std::move(readable);
    return std::make_unique<io::Poll>();
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
  void run() override {}
  void stop() override {}

  // Until no work is left.
  void settle() {
    pollfd fd{descriptor_, POLLIN, 0};
    for (int i = 0; i < 100 && ::poll(&fd, 1, 0) > 0; ++i) readable_();
  }

 private:
  struct StillTimer final : io::Timer {
    void start(TimeNs, TimeNs) override {}
    void stop() override {}
  };
  int descriptor_ = -1;
  std::function<void()> readable_;
};

struct World {
  StillEnv env;
  std::string folder, path;
  std::unique_ptr<HttpServer> server;

  World() {
    char name[] = "/tmp/culprit-fuzz-XXXXXX";
    require(mkdtemp(name));
    folder = name;
    path = folder + "/s";
    const auto echo = [](const Request& r, const Reply& reply) {
      for (const std::string& part : r.path) require(part.find('\0') == part.npos);
      require(r.body.size() <= 1 << 20);
      reply.send({200, "text/plain", r.body, {}});
    };
    auto started = HttpServer::start(env, {"unix:" + path},
                                     {{"GET", "/v1/status", echo},
                                      {"GET", "/v1/jobs/{job}/report", echo},
                                      {"POST", "/v1/hosts/{host}/clear", echo, Role::kOperate},
                                      {"GET", "/v1/never", [](const Request&, const Reply&) {}}});
    require(started.has_value());
    server = std::move(*started);
  }
  ~World() {
    server.reset();
    std::filesystem::remove_all(folder);
  }

  std::string send(std::string_view bytes) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
    const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    require(connect(descriptor, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    for (int tries = 0; !bytes.empty() && tries < 100; ++tries) {
      const ssize_t n = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
      env.settle();
    }
    shutdown(descriptor, SHUT_WR);
    std::string out;
    char part[4096];
    env.settle();
    for (ssize_t n; (n = recv(descriptor, part, sizeof part, 0)) > 0;) {
      out.append(part, static_cast<size_t>(n));
      env.settle();
    }
    close(descriptor);
    env.settle();
    return out;
  }
};

void check_target(std::string_view bytes) {
  const size_t begin = bytes.find(' ');
  if (begin == bytes.npos) return;
  const std::string raw(bytes.substr(begin + 1, bytes.find_first_of(" \r\n", begin + 1) - begin - 1));
  const auto target = parse_target(raw);
  if (!target) return require(!target.error().text.empty());
  size_t size = 0;
  for (const std::string& part : target->path) size += part.size();
  for (const auto& [key, value] : target->query) size += key.size() + value.size();
  require(size <= raw.size() && target->path.size() <= 16 && target->query.size() <= 16);
  host_allowed(raw, {"node"});
  require(!bearer_matches(raw, ""));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_target(bytes);
  world.send(bytes);
  const std::string answer = world.send("GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  require(answer.starts_with("HTTP/1.1 200 "));
  return 0;
}
