// The collector's part of the daemon: receives and acknowledges frames of agents, feeds engines, and restores
// all of it after a restart.
#include "app/daemon/collector/collector_service.h"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>

#include "../../io/fixtures.h"
#include "../../io/net_env.h"
#include "../../store/fixture.h"
#include "../jobs/remote_agent.h"
#include "app/daemon/self/black_box.h"
#include "model/peer.h"
#include "store/frames.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr const char* kAddress = "127.0.0.1:7421";
constexpr TimeNs kSecond = kNsPerSecond;

// A host: condenses into a spool, and sends its frames as an agent does.
struct Sender {
  explicit Sender(size_t number) : agent(number) {
    store::SpoolOptions options = store::testing::small_options();
    options.hold = true;
    spool = store::testing::open_spool(files, options);
  }
  // Steps of one second, in one frame.
  void run(int64_t from, int64_t to) {
    for (int64_t s = from; s < to; ++s) agent.write(step_line(s), kStart + s * kSecond);
    agent.writer().alive(true, kStart + to * kSecond);
    keep(agent.block(kStart + to * kSecond).batch);
  }
  void fail(int64_t at) {
    agent.write(xid_line(kStart + at * kSecond), kStart + at * kSecond);
    keep(agent.block(kStart + at * kSecond).batch);
  }
  void keep(const PieceBatch& batch) {
    store::testing::must(spool->append(batch, kStart));
    store::testing::must_commit(*spool);
    store::testing::must(spool->sync());
  }

  void connect(io::testing::NetEnv& env) {
    splitter = {};
    stream = env.dial(kAddress);
    BOOST_REQUIRE(stream);
    stream->start({[this](std::string_view bytes) { splitter.add(bytes); }, [](const Error*) {}});
    peer::Hello hello;
    hello.host = agent.name();
    hello.boot_id = "boot";
    hello.logs = {{peer::Log::kCondensed, spool->epoch(), 1, spool->last_sequence() + 1},
                  {peer::Log::kEvidence, 1000 + spool->epoch(), 1, 1}};
    say(hello);
    env.read();
  }
  void say(const peer::Message& message) { stream->write(peer::encode(message)); }
  void send(uint64_t after) {
    auto frames = store::FrameReader(files, store::testing::kFolder, spool->epoch())
                      .read({after, spool->synced_sequence(), 1 << 30});
    BOOST_REQUIRE(frames.has_value());
    for (store::VerbatimFrame& frame : *frames)
      say(peer::Frame{peer::Log::kCondensed, peer::FrameKind::kData, frame.header.sequence,
                      std::move(frame.bytes)});
  }
  // All messages since the last call.
  void hear() {
    for (;;) {
      auto message = splitter.next();
      BOOST_REQUIRE(message.has_value());
      if (!*message) return;
      if (const auto* welcome = std::get_if<peer::Welcome>(&**message))
        for (const peer::LogMark& log : welcome->logs)
          if (log.log == peer::Log::kCondensed) committed = log.known ? log.committed : 0;
      if (const auto* ack = std::get_if<peer::Ack>(&**message)) acknowledged = ack->sequence;
      if (const auto* refused = std::get_if<peer::Refused>(&**message)) refusal = refused->sentence;
      if (const auto* one = std::get_if<peer::Wanted>(&**message)) wanted.push_back(*one);
    }
  }

  RemoteAgent agent;
  store::testing::MemoryFiles files;
  std::unique_ptr<store::Spool> spool;
  std::unique_ptr<io::Stream> stream;
  peer::Splitter splitter;
  std::optional<uint64_t> committed;  // from the welcome
  uint64_t acknowledged = 0;
  std::vector<peer::Wanted> wanted;
  std::string refusal;
};

// Alternates between posted calls and network events.
class SteppedEnv final : public io::testing::NetEnv {
 public:
  void run() override {
    for (auto& call : std::exchange(posted_, {})) call();
  }
};

// One life of a collector over a folder.
struct Life {
  explicit Life(const std::string& folder, uint64_t read_twice_above = UINT64_MAX) {
    EngineWorkerOptions worker;
    worker.live = live_options();
    worker.live.host = "collector";
    worker.live.roots = {};
    worker.watch = &watch;
    worker.rule_watch = &rule_watch;
    worker.take = [this](std::vector<LiveEvent>&& more) {
      for (LiveEvent& e : more) events.push_back(std::move(e));
    };
    engine = std::move(*EngineWorker::start(env, std::move(worker)));
    CollectorServiceOptions options;
    options.state_dir = folder;
    options.listen = kAddress;
    options.engine = engine.get();
    options.read_twice_above = read_twice_above;
    options.report_error = [this](const std::string& what) { errors_reported.push_back(what); };
    options.info = [](const std::string&) {};
    auto opened = CollectorService::open(env, std::move(options));
    BOOST_REQUIRE_MESSAGE(opened.has_value(), (opened ? "" : opened.error().text));
    collecting = std::move(*opened);
  }
  ~Life() {
    env.read();
    collecting.reset();
    env.read();
  }
  void restore() {
    engine->query([](LiveJobs& live, TimeNs) { live.restoring({}); });
    collecting->restore({}, [this](bool passed_over) {
      if (passed_over) engine->begin_second({});
      engine->query([](LiveJobs& live, TimeNs now) {
        live.replayed(now);
        live.caught_up(now);
      });
      restored = true;
      collecting->go_on();
      if (passed_over) read_again();
    });
  }
  void read_again() {
    engine->query([this](LiveJobs& live, TimeNs) { first_answer = report_of(live, "j", kStart); });
    collecting->restore({{}, true}, [this](bool) {
      engine->end_second({}, [this](bool replaced) {
        read_twice = replaced;
        collecting->go_on();
      });
    });
  }
  // At least the time for which a commit waits for further frames.
  void commit() { env.advance(250 * kNsPerMs); }
  std::string report() {
    std::string out;
    engine->query([&](LiveJobs& live, TimeNs) { out = without_ids(report_of(live, "j", kStart)); });
    env.read();
    return out;
  }
  uint64_t lines() {
    uint64_t out = 0;
    engine->query([&](LiveJobs& live, TimeNs) {
      for (const LiveJobSummary& job : live.jobs()) out += job.lines;
    });
    env.read();
    return out;
  }

  SteppedEnv env;
  SelfWatch watch;
  BlackBox box;
  RuleWatch rule_watch{box};
  std::vector<LiveEvent> events;
  std::vector<std::string> errors_reported;
  std::unique_ptr<EngineWorker> engine;
  std::unique_ptr<CollectorService> collecting;
  bool restored = false, read_twice = false;
  std::string first_answer;  // before the second reading
};

// Limits the size of files: real files of the archive then report a full disk.
class FullDisk {
 public:
  FullDisk() {
    before_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit_);
    rlimit none = limit_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    signal(SIGXFSZ, before_);
  }

 private:
  rlimit limit_ = {};
  sighandler_t before_ = SIG_DFL;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(collecting)

BOOST_AUTO_TEST_CASE(a_frame_reaches_the_engine_at_once_and_is_acknowledged_when_it_is_committed) {
  io::testing::Folder folder;
  Life life(folder.path);
  life.collecting->listen();
  Sender a(0);
  a.connect(life.env);
  a.hear();
  BOOST_TEST(a.committed.value_or(9) == 0u);
  a.run(0, 10);
  a.run(10, 20);
  a.send(0);
  life.env.read();
  a.hear();
  BOOST_TEST(a.acknowledged == 0u);
  BOOST_TEST(life.lines() == 20u);
  life.commit();
  a.hear();
  BOOST_TEST(a.acknowledged == 2u);
  const auto hosts = life.collecting->hosts();
  BOOST_REQUIRE(hosts.size() == 1u);
  BOOST_TEST((hosts[0].host == "node-0" && hosts[0].connected));
  // The same frames on another connection: acknowledged, and not ingested twice.
  a.connect(life.env);
  a.send(0);
  life.env.read();
  life.commit();
  a.hear();
  BOOST_TEST(a.committed.value_or(0) == 2u);
  BOOST_TEST(life.lines() == 20u);
}

BOOST_AUTO_TEST_CASE(why_a_host_left_is_known_after_a_restart) {
  io::testing::Folder folder;
  const auto about = [](Life& life) {
    std::string out;
    life.collecting->query(
        [&](store::Archive& archive) {
          for (const store::HostRow& row : archive.hosts().value_or(std::vector<store::HostRow>()))
            out = row.about;
        },
        {});
    life.env.read();
    life.commit();
    return out;
  };
  {
    Life life(folder.path);
    life.collecting->listen();
    Sender a(0);
    a.connect(life.env);
    a.stream.reset();
    life.env.read();
    life.commit();
    BOOST_TEST(!life.collecting->hosts().at(0).connected);
    life.collecting->stop([] {});
    life.env.read();
  }
  Life again(folder.path);
  BOOST_TEST(about(again).find("\"left\":\"the connection was closed\"") != std::string::npos, about(again));
}

// Once and twice.
BOOST_DATA_TEST_CASE(after_a_restart_engines_have_what_was_archived_while_agents_go_on_sending,
                     boost::unit_test::data::make<uint64_t>({UINT64_MAX, 0}), read_twice_above) {
  const auto play = [](Life& life, std::vector<std::unique_ptr<Sender>>& hosts, uint64_t after) {
    for (auto& host : hosts) host->connect(life.env);
    for (auto& host : hosts) host->send(after);
  };
  const auto tell = [](std::vector<std::unique_ptr<Sender>>& hosts, int64_t from) {
    for (size_t h = 0; h < hosts.size(); ++h) {
      for (int64_t s = from; s < from + 30; s += 10) hosts[h]->run(s, s + 10);
      if (h == 2 && from > 0) hosts[h]->fail(from + 30);
    }
  };
  const auto four = [] {
    std::vector<std::unique_ptr<Sender>> out;
    for (size_t h = 0; h < 4; ++h) out.push_back(std::make_unique<Sender>(h));
    return out;
  };
  io::testing::Folder whole_folder, folder;
  auto once = four(), hosts = four();
  Life whole(whole_folder.path);
  whole.collecting->listen();
  tell(once, 0);
  play(whole, once, 0);
  whole.env.read();
  tell(once, 30);
  for (auto& host : once) host->send(3);
  whole.env.read();
  whole.commit();
  const std::string expected = whole.report();
  BOOST_TEST(expected.find("nvidia.xid.79") != std::string::npos);
  {
    Life first(folder.path);
    first.collecting->listen();
    tell(hosts, 0);
    play(first, hosts, 0);
    first.env.read();
    first.commit();
    for (auto& host : hosts) {
      host->hear();
      BOOST_TEST(host->acknowledged == 3u);
      host->stream.reset();
    }
  }
  // Frames that arrive during the restore wait in the archive, and are ingested once.
  Life second(folder.path, read_twice_above);
  second.collecting->listen();
  for (auto& host : hosts) host->connect(second.env);
  tell(hosts, 30);
  second.restore();
  for (auto& host : hosts) host->send(3);
  BOOST_TEST(second.collecting->counters().restoring);
  second.env.read();
  second.commit();
  BOOST_TEST(second.restored);
  const bool twice = read_twice_above == 0;
  BOOST_TEST(second.read_twice == twice);
  BOOST_TEST((second.first_answer.find("not read yet") != std::string::npos) == twice, second.first_answer);
  BOOST_TEST(second.errors_reported.empty());
  for (auto& host : hosts) {
    host->hear();
    BOOST_TEST(host->committed.value_or(0) == 3u);
    BOOST_TEST(host->acknowledged == host->spool->last_sequence());
  }
  BOOST_TEST(second.lines() == 4 * 60 + 1u);
  BOOST_TEST(second.report() == expected);
}

BOOST_AUTO_TEST_CASE(while_the_disk_takes_nothing_nothing_is_acknowledged_and_it_is_reported_once) {
  io::testing::Folder folder;
  Life life(folder.path);
  life.collecting->listen();
  Sender a(0);
  a.connect(life.env);
  {
    const FullDisk full;
    a.run(0, 10);
    a.send(0);
    life.env.read();
    for (int i = 0; i < 5; ++i) life.env.advance(kSecond);
    a.hear();
    BOOST_TEST(a.acknowledged == 0u);
    BOOST_TEST(life.errors_reported.size() == 1u);
    BOOST_TEST(life.collecting->unhealthy(life.env.monotonic_ns).has_value());
    // Queries are answered all the same.
    bool answered = false;
    life.collecting->query([](store::Archive&) {}, [&] { answered = true; });
    life.env.read();
    BOOST_TEST(answered);
  }
  life.env.advance(2 * kSecond);
  a.hear();
  BOOST_TEST(a.acknowledged == 1u);
  BOOST_TEST(life.errors_reported.size() == 2u);
  BOOST_TEST(!life.collecting->unhealthy(life.env.monotonic_ns).has_value());
  BOOST_TEST(life.lines() == 10u);
}

BOOST_AUTO_TEST_CASE(a_frame_that_differs_from_its_digest_ends_the_connection_and_takes_nothing) {
  io::testing::Folder folder;
  Life life(folder.path);
  life.collecting->listen();
  Sender a(0), b(1);
  a.run(0, 10);
  b.run(0, 10);
  a.connect(life.env);
  auto frames = store::FrameReader(b.files, store::testing::kFolder, b.spool->epoch()).read({0, 1, 1 << 20});
  BOOST_REQUIRE(frames.has_value());
  a.say(peer::Frame{peer::Log::kCondensed, peer::FrameKind::kData, 1, frames->at(0).bytes});
  life.env.read();
  life.commit();
  a.hear();
  BOOST_TEST(a.acknowledged == 0u);
  BOOST_TEST(a.refusal.find("differs from its announced digest") != std::string::npos);
  BOOST_TEST(life.lines() == 0u);
  BOOST_TEST(life.errors_reported.size() == 1u);
}

BOOST_AUTO_TEST_CASE(evidence_that_is_wanted_of_a_host_that_is_away_is_asked_when_it_comes) {
  io::testing::Folder folder;
  Life life(folder.path);
  life.collecting->listen();
  life.collecting->want({"node-0", "node-9"}, kStart, "a finding");
  life.collecting->want({"node-0"}, kStart + kSecond, "it was asked for already");
  Sender a(0);
  a.connect(life.env);
  a.hear();
  BOOST_REQUIRE(a.wanted.size() == 1u);
  BOOST_TEST(a.wanted[0].reason == "a finding");
  BOOST_TEST(a.wanted[0].from_ns == kStart);  // the agent chooses the time around it
  BOOST_TEST(a.wanted[0].to_ns == kStart);
  life.collecting->want({"node-0"}, kStart + 3600 * kSecond, "another");
  life.env.read();
  a.hear();
  BOOST_TEST(a.wanted.size() == 2u);
}

BOOST_AUTO_TEST_CASE(at_its_stop_what_came_is_committed) {
  io::testing::Folder folder;
  Sender a(0);
  a.run(0, 10);
  {
    Life life(folder.path);
    life.collecting->listen();
    a.connect(life.env);
    a.send(0);
    life.env.read();
    bool stopped = false;
    life.collecting->stop([&] { stopped = true; });
    life.env.read();
    BOOST_TEST(stopped);
    BOOST_TEST(life.errors_reported.empty());
  }
  Life again(folder.path);
  again.collecting->listen();
  a.connect(again.env);
  a.hear();
  BOOST_TEST(a.committed.value_or(0) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
