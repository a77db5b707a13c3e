#include "collect/collector.h"

#include "../forward/fixtures.h"
#include "../io/certificates.h"

using namespace culprit;
using namespace culprit::collect;
using culprit::forward::testing::MemorySink;
using culprit::io::testing::Link;
using culprit::io::testing::NetEnv;
using peer::FrameKind;
using peer::Log;
using peer::Refusal;

BOOST_AUTO_TEST_SUITE(collecting)

namespace {

constexpr const char* kAddress = "collector:7421";

// An agent that sends what a test chooses.
struct Agent {
  explicit Agent(NetEnv& env_in) : env(env_in), stream(env.dial(kAddress)) {
    BOOST_REQUIRE(stream);
    stream->start(
        {[this](std::string_view bytes) { splitter.add(bytes); }, [this](const Error*) { ended = true; }});
  }
  void say(const peer::Message& message) { say_bytes(peer::encode(message)); }
  void say_bytes(std::string bytes) {
    stream->write(std::move(bytes));
    env.read();
  }
  void hello(const std::string& host, uint64_t epoch, const std::string& boot = "boot") {
    peer::Hello hello;
    hello.host = host, hello.boot_id = boot;
    hello.logs = {{Log::kCondensed, epoch, 1, 1}, {Log::kEvidence, epoch + 1, 1, 1}};
    say(hello);
  }
  void frame(uint64_t sequence, const std::string& bytes = "frame") {
    say(peer::Frame{Log::kEvidence, FrameKind::kData, sequence, bytes});
  }
  // Received messages, "welcome", "ack 3", without pings.
  std::string received() {
    std::string all;
    for (;;) {
      auto message = splitter.next();
      BOOST_REQUIRE(message);
      if (!*message) return all;
      if (std::holds_alternative<peer::Ping>(**message)) continue;
      all += all.empty() ? "" : "; ";
      all += peer::name_of(**message);
      if (const auto* ack = std::get_if<peer::Ack>(&**message)) all += " " + std::to_string(ack->sequence);
      if (const auto* refused = std::get_if<peer::Refused>(&**message)) all += ": " + refused->sentence;
      if (const auto* wanted = std::get_if<peer::Wanted>(&**message)) all += ": " + wanted->reason;
      if (const auto* bye = std::get_if<peer::Bye>(&**message)) all += ": " + bye->sentence;
    }
  }

  NetEnv& env;
  std::unique_ptr<io::Stream> stream;
  peer::Splitter splitter;
  bool ended = false;
};

struct Receiver {
  NetEnv env;
  MemorySink sink;
  CollectorOptions options;
  std::unique_ptr<Collector> collector;
  void start() {
    options.listen = kAddress;
    collector = *Collector::start(env, options, sink);
    sink.collector = collector.get();
  }
  uint64_t refused(Refusal code) const { return collector->stats().refused[static_cast<size_t>(code)]; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_peer_that_breaks_the_protocol_is_refused_counted_and_the_others_go_on) {
  const auto hello = [](auto change) {
    peer::Hello h;
    h.host = "node-9", h.boot_id = "boot";
    h.logs = {{Log::kCondensed, 91, 1, 1}, {Log::kEvidence, 92, 1, 1}};
    change(h);
    return peer::encode(h);
  };
  const std::string good = hello([](peer::Hello&) {});
  const auto frame = [](uint64_t sequence, FrameKind kind = FrameKind::kData) {
    return peer::encode(peer::Frame{Log::kEvidence, kind, sequence, "x"});
  };
  const struct {
    std::string bytes;
    Refusal code;
    std::string received;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", Refusal::kProtocol,
       "refused: what came is none of our messages: GET / HTTP/1.1\\x0d\\x0a"},
      {std::string("CP\1\0\xff\xff\xff\x7f", 8), Refusal::kProtocol,
       "refused: a message of 2147483647 bytes came where at most 16384 are taken"},
      {frame(1), Refusal::kProtocol, "refused: a message of kind \"frame\" came before hello"},
      {peer::encode(peer::Ping{1}), Refusal::kProtocol,
       "refused: a message of kind \"ping\" came before hello"},
      {std::string("CP\1\0\2\0\0\0ab", 10), Refusal::kProtocol,
       "refused: a hello cannot be read: it is too short"},
      {hello([](peer::Hello& h) {
         h.oldest = h.newest = {3, 0};
       }),
       Refusal::kVersion, "refused: it speaks protocol 3 to 3, this program 1 to 1: it is too new"},
      {hello([](peer::Hello& h) { h.logs[0].epoch = 2; }), Refusal::kIdentity,
       "refused: the log is of node-1"},
      {good + good, Refusal::kProtocol,
       "welcome; refused: a message of kind \"hello\" came where it does not belong"},
      {good + peer::encode(peer::Ack{}), Refusal::kProtocol,
       "welcome; refused: a message of kind \"ack\" came where it does not belong"},
      {good + frame(2), Refusal::kBadFrame,
       "welcome; refused: frame 2 of the evidence log came where 1 is next"},
      {good + frame(1) + frame(3), Refusal::kBadFrame,
       "welcome; refused: frame 3 of the evidence log came where 2 is next"},
      {good + frame(1, FrameKind::kCheckpointEnd), Refusal::kBadFrame,
       "welcome; refused: a checkpoint before frame 2 of the evidence log came where 1 is next"},
      {good + peer::encode(peer::Skipped{Log::kCondensed, 2, 3, "x"}), Refusal::kBadFrame,
       "welcome; refused: a gap at frame 2 of the condensed log came where 1 is next"},
      {hello([](peer::Hello& h) { h.logs.pop_back(); }) + frame(1), Refusal::kBadFrame,
       "welcome; refused: frame of the evidence log came without being announced"},
  };
  for (const auto& row : cases) {
    Receiver receiver;
    receiver.start();
    Agent other(receiver.env);
    other.hello("node-1", 1);
    other.frame(1);
    Agent rogue(receiver.env);
    rogue.say_bytes(row.bytes);
    BOOST_TEST(rogue.received() == row.received);
    BOOST_TEST(receiver.refused(row.code) == 1u);
    BOOST_TEST(receiver.sink.events.back().starts_with(std::string("refused ") + peer::name_of(row.code)) ==
               !row.received.starts_with("welcome"));
    rogue.say_bytes("whatever");
    receiver.env.advance(4 * kNsPerSecond);
    BOOST_TEST(rogue.ended);
    other.frame(2);
    BOOST_TEST(other.received() == "welcome; ack 1; ack 2");
    BOOST_TEST(receiver.collector->hosts().size() == 1u);
    BOOST_TEST(receiver.collector->stats().connections == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_says_nothing_or_falls_silent_is_refused_in_time) {
  Receiver receiver;
  receiver.start();
  Agent mute(receiver.env), silent(receiver.env), slow(receiver.env);
  silent.hello("node-1", 1);
  const std::string hello = peer::encode(peer::Hello{{1, 0}, {1, 0}, "", "node-2", "", 0, {}});
  for (size_t i = 0; i < 3; ++i) {  // a byte per second is no Hello in time
    slow.say_bytes(hello.substr(i, 1));
    receiver.env.advance(kNsPerSecond);
  }
  BOOST_TEST(receiver.refused(Refusal::kTimeout) == 0u);
  receiver.env.advance(2 * kNsPerSecond);
  BOOST_TEST(mute.received() == "refused: it did not say hello in time");
  BOOST_TEST(slow.received() == "refused: it did not say hello in time");
  receiver.env.advance(21 * kNsPerSecond);
  BOOST_TEST(silent.received() == "welcome; refused: it was silent for 26 s");
  receiver.env.advance(3 * kNsPerSecond);
  BOOST_TEST(receiver.collector->stats().connections == 0u);
}

BOOST_AUTO_TEST_CASE(a_newer_connection_of_a_host_replaces_a_dead_one_or_one_of_the_same_boot) {
  const struct {
    std::string boot;
    int64_t silent_s;
    std::string older, newer;
  } cases[] = {
      {"boot", 0, "welcome; refused: a newer connection of the host has come, from node-1 (10.0.0.2:4000)",
       "welcome"},
      {"other", 0, "welcome", "refused: the host is connected already as node-1 (10.0.0.1:4000), and alive"},
      {"other", 21, "welcome; refused: a newer connection of the host has come, from node-1 (10.0.0.2:4000)",
       "welcome"},
  };
  for (const auto& row : cases) {
    Receiver receiver;
    receiver.start();
    Agent older(receiver.env);
    older.hello("node-1", 1);
    receiver.env.advance(row.silent_s * kNsPerSecond);
    Agent newer(receiver.env);
    newer.hello("node-1", 1, row.boot);
    BOOST_TEST(older.received() == row.older);
    BOOST_TEST(newer.received() == row.newer);
    BOOST_TEST(receiver.collector->hosts().size() == 1u);
    Agent& alive = row.newer == "welcome" ? newer : older;
    alive.frame(1);
    BOOST_TEST(alive.received() == "ack 1");
  }
}

BOOST_AUTO_TEST_CASE(a_host_has_one_name_in_any_case) {
  Receiver receiver;
  receiver.start();
  Agent first(receiver.env);
  first.hello("Node-1", 1);
  for (const char* name : {"node-1", "NODE-1", "nOdE-1"}) {
    Agent other(receiver.env);
    other.hello(name, 1, "other");
    BOOST_TEST(other.received() ==
               "refused: the host is connected already as Node-1 (10.0.0.1:4000), and alive");
  }
  BOOST_TEST(receiver.collector->hosts().size() == 1u);
  BOOST_TEST(receiver.collector->hosts()[0].host == "Node-1");
}

BOOST_AUTO_TEST_CASE(copies_are_dropped_counted_and_acknowledged_once) {
  Receiver receiver;
  receiver.start();
  Agent agent(receiver.env);
  agent.hello("node-1", 1);
  for (const uint64_t sequence : {1, 2, 2, 1, 3}) agent.frame(sequence, std::to_string(sequence));
  BOOST_TEST(agent.received() == "welcome; ack 1; ack 2; ack 3");
  BOOST_TEST(receiver.sink.epochs[2].bytes == "123");
  BOOST_TEST(receiver.collector->stats().duplicates == 2u);
  agent.say(peer::Skipped{Log::kEvidence, 2, 5, "policy"});  // only the new part counts
  BOOST_TEST(receiver.sink.epochs[2].order.back() == "gap 4-5: policy");
}

BOOST_AUTO_TEST_CASE(a_sink_that_is_behind_holds_reading_and_memory) {
  Receiver receiver;
  receiver.options.held_bytes = 20 << 20;
  receiver.options.credit_bytes = 1 << 20;
  receiver.start();
  receiver.sink.holds = true;
  std::vector<std::unique_ptr<Agent>> agents;
  const std::string large(1 << 20, 'x');
  for (uint64_t i = 0; i < 4; ++i) {
    agents.push_back(std::make_unique<Agent>(receiver.env));
    agents.back()->hello("node-" + std::to_string(i), 10 * i + 1);
  }
  for (uint64_t sequence = 1; sequence <= 15; ++sequence)
    for (auto& agent : agents) agent->frame(sequence, large);
  const CollectorStats stats = receiver.collector->stats();
  BOOST_TEST(stats.held_bytes <= (24u << 20));
  BOOST_TEST(stats.holds == 1u);
  // No host counts as silent while no connection is read.
  receiver.env.advance(100 * kNsPerSecond);
  BOOST_TEST(receiver.collector->hosts().size() == 4u);
  for (int i = 0; i < 10; ++i) {
    receiver.sink.let_go();
    receiver.env.read();
  }
  BOOST_TEST(receiver.collector->stats().held_bytes == 0u);
  for (uint64_t i = 0; i < 4; ++i) BOOST_TEST(receiver.sink.epochs[10 * i + 2].bytes.size() == 15u << 20);
}

BOOST_AUTO_TEST_CASE(gaps_count_as_held_and_adjacent_ones_are_one) {
  Receiver receiver;
  receiver.options.credit_bytes = 1 << 20;
  receiver.start();
  Agent agent(receiver.env);
  agent.hello("node-1", 1);
  std::string gaps;
  for (uint64_t i = 1; i <= 100; ++i) gaps += peer::encode(peer::Skipped{Log::kEvidence, i, i, "policy"});
  agent.say_bytes(gaps);
  BOOST_TEST(receiver.sink.epochs[2].order == std::vector<std::string>{"gap 1-100: policy"},
             boost::test_tools::per_element());
  receiver.sink.holds = true;
  const std::string words(1000, 'x');
  for (uint64_t i = 101; i <= 40'100; ++i)
    agent.say(peer::Skipped{Log::kEvidence, i, i, words + std::to_string(i % 2)});
  const uint64_t held = receiver.collector->stats().held_bytes;
  BOOST_TEST(held >= 8u << 20);
  BOOST_TEST(held <= 9u << 20);
  for (int i = 0; i < 10; ++i) {
    receiver.sink.let_go();
    receiver.env.read();
  }
  BOOST_TEST(receiver.collector->stats().held_bytes == 0u);
  BOOST_TEST(receiver.sink.epochs[2].last == 40'100u);
}

BOOST_AUTO_TEST_CASE(what_came_in_part_is_bounded_over_all_connections) {
  Receiver receiver;
  receiver.options.held_bytes = 10 << 20;
  receiver.start();
  std::vector<std::unique_ptr<Agent>> agents;
  const std::string part =
      peer::encode(peer::Frame{Log::kEvidence, FrameKind::kData, 1, std::string(8 << 20, 'x')});
  for (uint64_t i = 0; i < 4; ++i) {
    agents.push_back(std::make_unique<Agent>(receiver.env));
    agents.back()->hello("node-" + std::to_string(i), 10 * i + 1);
    agents.back()->say_bytes(part.substr(0, 4'000'000 + i));
  }
  receiver.env.advance(kNsPerSecond);
  BOOST_TEST(receiver.refused(Refusal::kTooMany) == 2u);
  BOOST_TEST(agents[3]->received() == "welcome; refused: too much is on its way from all hosts together");
  agents[0]->say_bytes(part.substr(4'000'000));
  BOOST_TEST(agents[0]->received() == "welcome; ack 1");
}

BOOST_AUTO_TEST_CASE(frames_that_the_sink_refuses_end_the_connection) {
  for (const auto& [code, refusal] : {std::pair(ErrorCode::kInvalid, Refusal::kBadFrame),
                                      std::pair(ErrorCode::kIo, Refusal::kUnavailable)}) {
    Receiver receiver;
    receiver.start();
    receiver.sink.refuses = fail(code, "the disk is full");
    Agent agent(receiver.env);
    agent.hello("node-1", 1);
    agent.frame(1);
    BOOST_TEST(agent.received() == "welcome; refused: the disk is full");
    BOOST_TEST(receiver.refused(refusal) == 1u);
    BOOST_TEST(receiver.collector->stats().held_bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(too_many_connections_are_closed_and_counted) {
  Receiver receiver;
  receiver.options.connections = 3;
  receiver.start();
  Agent one(receiver.env), two(receiver.env), idle(receiver.env);
  one.hello("node-1", 1), two.hello("node-2", 11);
  Agent three(receiver.env);  // in place of the idle one
  receiver.env.read();
  BOOST_TEST(idle.ended);
  three.hello("node-3", 21);
  BOOST_TEST(three.received() == "welcome");
  Agent four(receiver.env);
  receiver.env.read();
  BOOST_TEST(four.ended);
  BOOST_TEST(receiver.refused(Refusal::kTooMany) == 2u);
}

BOOST_AUTO_TEST_CASE(idle_connections_of_an_address_leave_room_for_an_agent_of_the_same_address) {
  Receiver receiver;
  receiver.env.on_link = [](Link& link) { link.address = "10.0.0.9:" + link.address.substr(7, 1); };
  receiver.start();
  std::vector<std::unique_ptr<Agent>> idle;
  for (int i = 0; i < 4300; ++i) idle.push_back(std::make_unique<Agent>(receiver.env));
  BOOST_TEST(receiver.collector->stats().unknown == receiver.options.unknown_per_address);
  Agent agent(receiver.env);
  agent.say_bytes("C");  // it has begun: the idle ones go before it
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<Agent>(receiver.env));
  receiver.env.advance(kNsPerSecond);
  peer::Hello hello;
  hello.host = "node-1", hello.boot_id = "boot";
  agent.say_bytes(peer::encode(hello).substr(1));
  BOOST_TEST(agent.received() == "welcome");
  receiver.env.advance(6 * kNsPerSecond);  // refused, and given time to read it
  BOOST_TEST(receiver.collector->stats().unknown == 0u);
  BOOST_TEST(receiver.collector->stats().connections == 1u);
}

BOOST_AUTO_TEST_CASE(handshakes_under_way_do_not_give_way_at_once) {
  Receiver receiver;
  receiver.options.unknown_connections = 4;  // two strangers
  receiver.start();
  Agent one(receiver.env), two(receiver.env);
  one.say_bytes("C"), two.say_bytes("C");
  Agent three(receiver.env);
  receiver.env.read();
  BOOST_TEST(three.ended);
  receiver.env.advance(600 * kNsPerMs);  // enough for a handshake
  Agent four(receiver.env);
  receiver.env.read();
  BOOST_TEST(one.ended);
  BOOST_TEST(!two.ended);
  BOOST_TEST(!four.ended);
}

BOOST_AUTO_TEST_CASE(strangers_do_not_take_the_places_of_addresses_that_had_a_session) {
  Receiver receiver;
  receiver.options.unknown_connections = 8;  // four strangers, four known
  receiver.options.known = {{"10.0.0.7:4000", receiver.env.wall_ns}};
  receiver.start();
  const auto from = [&](const char* address) {
    receiver.env.on_link = [address](Link& link) { link.address = address; };
    return std::make_unique<Agent>(receiver.env);
  };
  auto agent = from("10.0.0.1:4000");
  agent->hello("node-1", 1);
  BOOST_TEST(agent->received() == "welcome");
  agent.reset();
  receiver.env.advance(23 * 3600 * kNsPerSecond);
  std::vector<std::unique_ptr<Agent>> strangers;
  for (const char* address : {"10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1", "10.0.0.5:1"}) {
    strangers.push_back(from(address));
    strangers.back()->say_bytes("C");
  }
  auto before_restart = from("10.0.0.7:1");
  before_restart->hello("node-7", 71);
  BOOST_TEST(before_restart->received() == "welcome");
  auto refused = from("10.0.0.6:1");
  agent = from("10.0.0.1:4001");
  agent->hello("node-1", 1);
  BOOST_TEST(refused->ended);
  BOOST_TEST(agent->received() == "welcome");
}

BOOST_AUTO_TEST_CASE(after_a_stall_of_the_loop_no_handshake_is_too_late) {
  Receiver receiver;
  receiver.start();
  Agent agent(receiver.env), mute(receiver.env);
  receiver.env.monotonic_ns += 10 * kNsPerSecond;
  receiver.env.advance(0);
  agent.hello("node-1", 1);
  BOOST_TEST(agent.received() == "welcome");
  receiver.env.advance(2 * kNsPerSecond);
  BOOST_TEST(mute.received() == "refused: it did not say hello in time");
}

namespace {

// An agent with TLS that says hello.
struct TlsAgent {
  TlsAgent(NetEnv& env_in, const std::string& host, std::shared_ptr<const io::TlsCredentials> tls)
      : env(env_in) {
    stream = std::make_unique<io::TlsStream>(
        env, env.dial(kAddress), std::move(tls),
        io::TlsStream::Options{io::TlsStream::Side::kConnects, "collector.example"},
        [this, host](Status status) {
          BOOST_REQUIRE(status);
          stream->start({[](std::string_view) {}, [](const Error*) {}});
          peer::Hello hello;
          hello.host = host, hello.boot_id = "boot";
          stream->write(peer::encode(hello));
        });
    env.read();
  }
  void say(const peer::Message& message) {
    stream->write(peer::encode(message));
    env.read();
  }
  NetEnv& env;
  std::unique_ptr<io::TlsStream> stream;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_ends_when_its_certificate_expires_or_is_revoked) {
  const io::testing::Folder folder;
  const io::testing::Authority authority(folder, "site");
  io::TlsFiles files = authority.issue("c", {"DNS:collector.example"});
  const io::TlsFiles good = authority.issue("a", {"DNS:node-1"}), bad = authority.issue("b", {"DNS:node-2"});
  const io::TlsFiles brief = authority.issue("s", {"DNS:node-3", 1'700'000'000, 1'763'700'100});
  Receiver receiver;
  receiver.options.tls = *io::TlsCredentials::load(files);
  receiver.start();
  std::vector<std::unique_ptr<TlsAgent>> agents;
  for (const auto& [host, of] :
       {std::pair("node-1", good), std::pair("node-2", bad), std::pair("node-3", brief)})
    agents.push_back(std::make_unique<TlsAgent>(receiver.env, host, *io::TlsCredentials::load(of)));
  BOOST_TEST(receiver.collector->hosts().size() == 3u);
  files.crl = authority.revoke("site.crl", {bad.cert});
  receiver.collector->set_tls(*io::TlsCredentials::load(files));
  receiver.env.advance(2 * kNsPerSecond);
  BOOST_TEST(receiver.collector->hosts().size() == 2u);
  BOOST_TEST(receiver.collector->stats().last_refusal.ends_with("node-2: certificate is revoked"));
  for (int i = 0; i < 20; ++i) {
    receiver.env.advance(5 * kNsPerSecond);
    for (auto& agent : agents) agent->say(peer::Pong{1});
  }
  BOOST_REQUIRE(receiver.collector->hosts().size() == 1u);
  BOOST_TEST(receiver.collector->hosts()[0].host == "node-1");
  BOOST_TEST(receiver.collector->stats().last_refusal.ends_with(
      "node-3: certificate expired on 2025-11-21 04:41:40 UTC"));
}

BOOST_AUTO_TEST_CASE(an_agent_that_reads_nothing_gets_no_queue) {
  Receiver receiver;
  receiver.start();
  Agent agent(receiver.env);
  agent.hello("node-1", 1);
  agent.stream->pause();
  for (uint64_t i = 0; i < 10'000; ++i) agent.stream->write(peer::encode(peer::Ping{i}));
  for (uint64_t i = 1; i < 5'000; ++i)
    agent.stream->write(peer::encode(peer::Frame{Log::kEvidence, FrameKind::kData, i, "x"}));
  receiver.env.read();
  BOOST_TEST(receiver.env.links.at(0)->ends[0].wire.size() < 70'000u);
  agent.stream->resume();
  receiver.env.read();
  BOOST_TEST(agent.received().ends_with("ack 4999"));
}

BOOST_AUTO_TEST_CASE(a_collector_that_stops_says_bye_and_what_comes_late_does_nothing) {
  Receiver receiver;
  receiver.start();
  receiver.sink.holds = true;
  Agent agent(receiver.env);
  agent.hello("node-1", 1);
  agent.frame(1);
  receiver.collector->want("node-1", peer::Wanted{1, 2, "a rank hangs"});
  receiver.collector->want("node-2", peer::Wanted{1, 2, "no host"});
  receiver.collector->stop();
  receiver.env.read();
  BOOST_TEST(agent.received() == "welcome; wanted: a rank hangs; bye: the collector stops");
  BOOST_TEST(agent.ended);
  BOOST_TEST(receiver.sink.events.back() == "node-1 disconnected: the collector stops");
  BOOST_TEST(receiver.env.dial(kAddress) == nullptr);
  receiver.sink.collector = nullptr;
  receiver.collector.reset();
  receiver.sink.let_go();
}

BOOST_AUTO_TEST_CASE(the_clock_of_a_host_is_compared_with_ours) {
  Receiver receiver;
  receiver.start();
  Agent agent(receiver.env);
  agent.say(
      peer::Hello{{1, 0}, {1, 5}, "0.2.0", "node-1", "b", receiver.env.wall_ns + 90 * kNsPerSecond, {}});
  const HostConnection host = receiver.collector->hosts().at(0);
  BOOST_TEST(host.clock_ahead_ns == 90 * kNsPerSecond);
  BOOST_TEST(host.program == "0.2.0");
  BOOST_TEST(host.version.minor == 0u);
}

BOOST_AUTO_TEST_CASE(a_status_with_jobs_is_answered_with_their_owners_where_others_share_them) {
  for (const bool shares : {false, true}) {
    Receiver receiver;
    std::vector<std::string> asked;
    if (shares)
      receiver.options.others_jobs = [&](const std::vector<std::string>& jobs) {
        asked = jobs;
        return std::vector<peer::JobOwner>{{"qwen", "b:1", 7}};
      };
    receiver.start();
    Agent agent(receiver.env);
    agent.hello("node-1", 1);
    peer::Status status;
    agent.say(status);
    status.jobs = {"llama", "qwen"};
    agent.say(status);
    BOOST_TEST(agent.received() == (shares ? "welcome; job owners" : "welcome"));
    BOOST_TEST((asked == (shares ? status.jobs : std::vector<std::string>())));
    agent.frame(1);  // frames of all jobs are accepted all the same
    BOOST_TEST(agent.received() == "ack 1");
  }
}

BOOST_AUTO_TEST_SUITE_END()
