// Cost of forwarding and collecting, over TLS on loopback, with agents and collector in separate processes:
//
//   bench_collect bulk FOLDER [MB]              one agent whose spool is full: MB for each CPU second,
//                                               bytes on the wire over bytes of logs
//   bench_collect herd FOLDER [AGENTS FRAMES]   many light agents; the collector is killed when a third is
//                                               committed and comes back, and all of them with it
//
// Both end with an error unless everything is committed, as verified in the reopened archive.
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "../../sim/archive_sink.h"
#include "../../sim/spool_source.h"
#include "base/hash.h"
#include "certificates.h"
#include "collect/collector.h"
#include "forward/forwarder.h"
#include "io/uv/env.h"
#include "sim/sim_files.h"

extern char** environ;

using namespace culprit;
using peer::Log;

namespace {

[[noreturn]] void die(const std::string& why) {
  fmt::print(stderr, "bench_collect: {}\n", why);
  std::_Exit(1);
}
template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().text);
  return std::move(*result);
}
void must(const Status& status) {
  if (!status) die(status.error().text);
}

double seconds_of(const rusage& used) {
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}
double cpu_seconds() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return seconds_of(used);
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
TimeNs wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// ---- the process of the collector

int serve(const std::string& folder, const std::string& port) {
  auto env = io::make_uv_env();
  {
    auto worker = must(env->worker("archive"));
    std::shared_ptr<store::Archive> archive =
        must(store::Archive::open(io::real_files(), {.folder = folder + "/archive"}));
    sim::ArchiveSink sink(*env, *worker, archive);
    collect::CollectorOptions options;
    options.listen = "127.0.0.1:" + port;
    options.program = "bench";
    options.tls = must(
        io::TlsCredentials::load({folder + "/collector.crt", folder + "/collector.key", folder + "/ca.pem"}));
    auto collector = must(collect::Collector::start(*env, options, sink));
    sink.collector = collector.get();
    auto stop = must(env->on_signal(SIGTERM, [&] { env->stop(); }));
    env->run();
    sink.collector = nullptr;
  }
  return 0;
}

class CollectorProcess {
 public:
  CollectorProcess(std::string folder, int port) : folder_(std::move(folder)), port_(std::to_string(port)) {
    start();
  }
  void start() {
    std::string program = "/proc/self/exe", verb = "serve";
    char* arguments[] = {program.data(), verb.data(), folder_.data(), port_.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ) != 0) die("posix_spawn");
  }
  void end(int number) {
    kill(pid_, number);
    rusage used = {};
    int status = 0;
    if (wait4(pid_, &status, 0, &used) != pid_) die("wait4");
    cpu_s += seconds_of(used);
    peak_kb = std::max(peak_kb, used.ru_maxrss);
  }
  double cpu_s = 0;  // of all its lives
  long peak_kb = 0;

 private:
  std::string folder_, port_;
  pid_t pid_ = 0;
};

int free_port() {
  const int at = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(at, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(at, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    die("no port on loopback");
  ::close(at);
  return ntohs(address.sin_port);
}

// ---- agents

// Lines of a training log, with a realistic compression ratio.
std::string lines(uint64_t seed, size_t size) {
  std::string out;
  for (uint64_t i = 0; out.size() < size; ++i) {
    const uint64_t r = mix64(seed, i);
    out += fmt::format(
        "2026-03-01 12:{:02}:{:02},{:03} [rank{}] INFO train.py:{} iteration {} loss {:.6f} lr {:.3e} grad "
        "norm "
        "{:.4f}\n",
        i / 60 % 60, i % 60, r % 1000, r % 64, 100 + r % 7, seed + i, static_cast<double>(r % 1000000) / 3e5,
        static_cast<double>(r % 977) * 1e-7, static_cast<double>(r % 9973) / 977);
  }
  out.resize(size);
  return out;
}

struct AgentPlan {
  std::string host;
  std::string folder;  // of its spools
  io::Files* files = nullptr;
  io::TlsFiles tls;
  int port = 0;
};

struct Agent {
  Agent(io::Env& env, io::Worker& worker, const AgentPlan& plan) : name(plan.host) {
    sim::SpoolSource::Logs logs;
    for (const Log log : peer::kLogs) {
      const size_t i = static_cast<size_t>(log);
      logs[i].folder = plan.folder + "/" + peer::name_of(log);
      spools[i] = must(store::Spool::open(*plan.files, {.folder = logs[i].folder, .hold = true}, wall_ns()));
      logs[i].spool = spools[i].get();
    }
    fill = [this, &env, &worker, plan, logs] {
      source = std::make_unique<sim::SpoolSource>(*plan.files, worker, logs);
      source->on_acknowledged = [this](Log log, uint64_t, uint64_t sequence) {
        acked[static_cast<size_t>(log)] = sequence;
      };
      forward::ForwarderOptions options;
      options.to = {"localhost:" + std::to_string(plan.port)};
      options.tls = must(io::TlsCredentials::load(plan.tls));
      options.host = plan.host, options.boot_id = "boot", options.program = "bench";
      options.seed = hash64(plan.host);
      forwarder = std::make_unique<forward::Forwarder>(env, options, *source, [] { return peer::Status(); });
      forwarder->start();
    };
  }
  void write(Log log, int frames, size_t frame_bytes) {
    store::Spool& spool = *spools[static_cast<size_t>(log)];
    PieceBatch batch;
    StreamInfo info;
    info.id = spool.allocate();
    info.job = "job", info.path = "/log/" + name;
    batch.opened = {info};
    uint64_t at = 0;
    for (int i = 0; i < frames; ++i) {
      batch.pieces.clear();
      for (size_t left = frame_bytes; left > 0;) {  // as tailers read
        Piece piece;
        piece.stream = info.id, piece.offset = at;
        piece.bytes = lines(at, std::min<size_t>(left, 256 << 10));
        at += piece.bytes.size(), left -= piece.bytes.size();
        batch.pieces.push_back(std::move(piece));
      }
      must(spool.append(batch, wall_ns()));
      (void)must(spool.commit(wall_ns()));
      batch.opened.clear();
    }
    must(spool.sync());
  }
  bool is_done() const {
    for (size_t i = 0; i < spools.size(); ++i)
      if (acked[i] < spools[i]->last_sequence()) return false;
    return true;
  }

  const std::string name;
  std::array<std::unique_ptr<store::Spool>, peer::kLogs.size()> spools;
  std::array<uint64_t, peer::kLogs.size()> acked = {};
  std::function<void()> fill;  // connects after all frames were written
  std::unique_ptr<sim::SpoolSource> source;
  std::unique_ptr<forward::Forwarder> forwarder;
};

// All acknowledged frames must be in the reopened archive.
void check(const std::string& folder, const std::vector<std::unique_ptr<Agent>>& agents) {
  auto archive = must(store::Archive::open(io::real_files(), {.folder = folder + "/archive"}));
  for (const auto& agent : agents)
    for (const Log log : peer::kLogs) {
      const store::Spool& spool = *agent->spools[static_cast<size_t>(log)];
      if (spool.last_sequence() == 0) continue;
      const auto kind = log == Log::kCondensed ? store::LogKind::kCondensed : store::LogKind::kEvidence;
      const auto there = must(archive->begin({spool.epoch(), agent->name, kind}, wall_ns()));
      if (there.value_or(0) != spool.last_sequence())
        die(fmt::format("{}: {} of {} frames are committed", agent->name, there.value_or(0),
                        spool.last_sequence()));
    }
}

// Calls `each` repeatedly until it returns true.
void run_until(io::Env& env, TimeNs limit_ns, const std::function<bool()>& each) {
  const TimeNs until = env.now(io::Clock::kMonotonic) + limit_ns;
  auto timer = env.timer([&] {
    if (each()) return env.stop();
    if (env.now(io::Clock::kMonotonic) > until) die("not everything was committed in time");
  });
  timer->start(10 * kNsPerMs, 10 * kNsPerMs);
  env.run();
}

int bulk(const std::string& folder, size_t megabytes) {
  const bench::Authority authority(folder);
  authority.issue("collector", "DNS:localhost");
  const int port = free_port();
  auto env = io::make_uv_env();
  CollectorProcess collector(folder, port);
  std::vector<std::unique_ptr<Agent>> agents;
  auto worker = must(env->worker("store"));
  agents.push_back(std::make_unique<Agent>(*env, *worker,
                                           AgentPlan{"node-1", folder + "/spools", &io::real_files(),
                                                     authority.issue("node-1", "DNS:node-1"), port}));
  Agent& agent = *agents[0];
  const double before = cpu_seconds();
  agent.write(Log::kEvidence, static_cast<int>(megabytes), 1'000'000);
  const double written = cpu_seconds(), began = wall_seconds();
  agent.fill();
  run_until(*env, 600 * kNsPerSecond, [&] { return agent.is_done(); });
  const double sent = cpu_seconds() - written, wall = wall_seconds() - began;
  const forward::ForwarderStats stats = agent.forwarder->stats();
  const double wire = static_cast<double>(stats.logs[static_cast<size_t>(Log::kEvidence)].bytes) / 1e6;
  agents[0]->forwarder.reset();
  collector.end(SIGTERM);
  const double mb = static_cast<double>(megabytes);
  fmt::print("bulk: {:.0f} MB of logs, {:.1f} MB of frames on the wire ({:.3f}), {:.1f} s\n", mb, wire,
             wire / mb, wall);
  fmt::print("  agent: {:.0f} MB/cs to spool, {:.0f} MB/cs to send; both {:.0f} MB/cs\n",
             mb / (written - before), mb / sent, mb / (written - before + sent));
  fmt::print("  collector: {:.0f} MB/cs, peak {} MB; agent's sending and collector: {:.0f} MB/cs\n",
             mb / collector.cpu_s, collector.peak_kb / 1000, mb / (sent + collector.cpu_s));
  check(folder, agents);
  agents.clear(), worker.reset();
  return 0;
}

int herd(const std::string& folder, size_t count, int frames) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const bench::Authority authority(folder);
  authority.issue("collector", "DNS:localhost");
  const int port = free_port();
  auto env = io::make_uv_env();
  CollectorProcess collector(folder, port);
  auto worker = must(env->worker("store"));
  sim::SimFiles memory(1);
  std::vector<std::unique_ptr<Agent>> agents;
  for (size_t i = 0; i < count; ++i) {
    const std::string host = fmt::format("node-{}", i);
    agents.push_back(std::make_unique<Agent>(
        *env, *worker, AgentPlan{host, "/" + host, &memory, authority.issue(host, "DNS:" + host), port}));
    agents.back()->write(Log::kCondensed, frames, 300);
    agents.back()->write(Log::kEvidence, 2, 20'000);
  }
  const auto of_all = [&] {
    size_t done = 0;
    for (const auto& agent : agents) done += agent->is_done();
    return done;
  };
  const double began = wall_seconds(), cpu = cpu_seconds();
  for (const auto& agent : agents) agent->fill();
  bool killed = false;
  double killed_at = 0;
  run_until(*env, 300 * kNsPerSecond, [&] {
    const size_t done = of_all();
    if (!killed && done * 3 >= count) {
      killed = true, killed_at = wall_seconds();
      collector.end(SIGKILL);
      collector.start();
      // No stored frame is sent again: each agent has more to send.
      for (const auto& agent : agents) {
        agent->write(Log::kCondensed, frames, 300);
        agent->source->set_bounds(agent->source->look());
        agent->forwarder->appended(Log::kCondensed);
      }
      return false;
    }
    return killed && done == count;
  });
  const double wall = wall_seconds() - began;
  uint64_t attempts = 0;
  for (const auto& agent : agents) {
    attempts += agent->forwarder->stats().attempts;
    agent->forwarder.reset();
  }
  collector.end(SIGTERM);
  fmt::print(
      "herd: {} agents over TLS, {} frames each, all committed in {:.1f} s, {:.1f} s of them behind the "
      "collector's kill -9; {} connections tried\n",
      count, 2 * frames + 2, wall, wall_seconds() - killed_at, attempts);
  fmt::print("  collector: {:.1f} s of CPU in two lives, peak {} MB; all agents: {:.1f} s\n", collector.cpu_s,
             collector.peak_kb / 1000, cpu_seconds() - cpu);
  check(folder, agents);
  agents.clear(), worker.reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string verb = argv[1];
  if (verb == "serve" && argc == 4) return serve(argv[2], argv[3]);
  const auto number = [&](int i, size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const std::string folder = std::string(argv[2]) + "/bench_collect_" + verb;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int status = verb == "bulk"   ? bulk(folder, number(3, 512))
                     : verb == "herd" ? herd(folder, number(3, 1000), static_cast<int>(number(4, 100)))
                                      : 2;
  std::filesystem::remove_all(folder);
  return status;
}
