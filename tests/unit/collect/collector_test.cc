#include "collect/collector.h"

#include "../forward/fixtures.h"

using namespace culprit;
using namespace culprit::collect;
using culprit::forward::testing::MemorySink;
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
  std::string heard() {
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
    std::string heard;
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
    BOOST_TEST(rogue.heard() == row.heard);
    BOOST_TEST(receiver.refused(row.code) == 1u);
    BOOST_TEST(receiver.sink.events.back().starts_with(std::string("refused ") + peer::name_of(row.code)) ==
               !row.heard.starts_with("welcome"));
    rogue.say_bytes("whatever");
    receiver.env.advance(4 * kNsPerSecond);
    BOOST_TEST(rogue.ended);
    other.frame(2);
    BOOST_TEST(other.heard() == "welcome; ack 1; ack 2");
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
  for (size_t i = 0; i < 19; ++i) {  // a byte per second is no Hello in time
    slow.say_bytes(hello.substr(i, 1));
    receiver.env.advance(kNsPerSecond);
  }
  BOOST_TEST(receiver.refused(Refusal::kTimeout) == 0u);
  receiver.env.advance(2 * kNsPerSecond);
  BOOST_TEST(mute.heard() == "refused: it did not say hello in time");
  BOOST_TEST(slow.heard() == "refused: it did not say hello in time");
  receiver.env.advance(6 * kNsPerSecond);
  BOOST_TEST(silent.heard() == "welcome; refused: it was silent for 26 s");
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
    BOOST_TEST(older.heard() == row.older);
    BOOST_TEST(newer.heard() == row.newer);
    BOOST_TEST(receiver.collector->hosts().size() == 1u);
    Agent& alive = row.newer == "welcome" ? newer : older;
    alive.frame(1);
    BOOST_TEST(alive.heard() == "ack 1");
  }
}

BOOST_AUTO_TEST_CASE(copies_are_dropped_counted_and_acknowledged_once) {
  Receiver receiver;
  receiver.start();
  Agent agent(receiver.env);
  agent.hello("node-1", 1);
  for (const uint64_t sequence : {1, 2, 2, 1, 3}) agent.frame(sequence, std::to_string(sequence));
  BOOST_TEST(agent.heard() == "welcome; ack 1; ack 2; ack 3");
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
  BOOST_TEST(agents[3]->heard() == "welcome; refused: too much is on its way from all hosts together");
  agents[0]->say_bytes(part.substr(4'000'000));
  BOOST_TEST(agents[0]->heard() == "welcome; ack 1");
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
    BOOST_TEST(agent.heard() == "welcome; refused: the disk is full");
    BOOST_TEST(receiver.refused(refusal) == 1u);
    BOOST_TEST(receiver.collector->stats().held_bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(too_many_connections_are_closed_and_counted) {
  Receiver receiver;
  receiver.options.connections = 3;
  receiver.options.unknown_connections = 2;
  receiver.start();
  Agent one(receiver.env), two(receiver.env), three(receiver.env);
  receiver.env.read();
  BOOST_TEST(three.ended);
  one.hello("node-1", 1), two.hello("node-2", 11);
  Agent four(receiver.env), five(receiver.env);
  receiver.env.read();
  BOOST_TEST(!four.ended);
  BOOST_TEST(five.ended);
  BOOST_TEST(receiver.refused(Refusal::kTooMany) == 2u);
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
  BOOST_TEST(agent.heard().ends_with("ack 4999"));
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
  BOOST_TEST(agent.heard() == "welcome; wanted: a rank hangs; bye: the collector stops");
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

BOOST_AUTO_TEST_SUITE_END()
