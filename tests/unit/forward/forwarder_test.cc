#include <algorithm>
#include <set>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::forward;
using namespace culprit::forward::testing;

BOOST_AUTO_TEST_SUITE(forwarding)

namespace {

constexpr Log kLogs[] = {Log::kCondensed, Log::kEvidence};

size_t position(const std::vector<std::string>& all, const std::string& one) {
  const auto at = std::find(all.begin(), all.end(), one);
  BOOST_REQUIRE_MESSAGE(at != all.end(), one + " did not arrive");
  return static_cast<size_t>(at - all.begin());
}

}  // namespace

BOOST_AUTO_TEST_CASE(frames_of_both_logs_arrive_in_order_and_are_acknowledged) {
  for (const bool later : {false, true}) {
    Pair pair;
    pair.source.later = later;
    for (int i = 0; i < 20; ++i) pair.source.add(kLogs[i % 2], std::string(1000, static_cast<char>('a' + i)));
    pair.start();
    for (int i = 0; i < 20; ++i) pair.add(kLogs[i % 2], "more " + std::to_string(i));
    for (const Log log : kLogs) {
      BOOST_TEST(pair.complete(log));
      BOOST_TEST(pair.stored(log).order.front() == "checkpoint 0");
      BOOST_TEST(pair.source.of(log).acknowledged == 20u);
    }
    const ForwarderStats stats = pair.forwarder->stats();
    BOOST_TEST(stats.sentence() == "connected");
    BOOST_TEST(stats.collector == "0.1.0");
    BOOST_TEST(stats.logs[0].frames == 20u);
    BOOST_TEST(stats.logs[1].unacked_bytes == 0u);
    BOOST_TEST(pair.collector->stats().frames == 42u);  // two checkpoints
    BOOST_TEST(pair.collector->hosts().at(0).host == "node-3");
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_acknowledged_before_the_commit) {
  Pair pair;
  pair.sink.commits = false;
  pair.start();
  pair.add(Log::kEvidence, "abc");
  BOOST_TEST(pair.stored(Log::kEvidence).bytes == "abc");
  BOOST_TEST(pair.source.of(Log::kEvidence).acknowledged == 0u);
  BOOST_TEST(pair.forwarder->stats().logs[1].unacked_bytes == 3u);
  pair.sink.commit();
  pair.env.read();
  BOOST_TEST(pair.source.of(Log::kEvidence).acknowledged == 1u);
}

BOOST_AUTO_TEST_CASE(after_a_reconnect_it_goes_on_behind_what_is_committed) {
  Pair pair;
  pair.start();
  for (int i = 0; i < 5; ++i) pair.add(Log::kEvidence, "committed");
  pair.sink.commits = false;
  for (int i = 0; i < 3; ++i) pair.add(Log::kEvidence, "not committed");
  const uint64_t before = pair.collector->stats().frames;
  pair.env.links.at(0)->cut();
  pair.sink.epochs.at(1002).bytes.resize(5 * 9);  // uncommitted frames are lost with the collector
  pair.sink.epochs.at(1002).last = 5;
  pair.sink.commits = true;
  pair.pass(2);
  BOOST_TEST(pair.complete(Log::kEvidence));
  BOOST_TEST(pair.collector->stats().frames - before == 3u);
  BOOST_TEST(pair.forwarder->stats().sessions == 2u);
}

BOOST_AUTO_TEST_CASE(a_connection_may_be_cut_anywhere) {
  for (uint64_t cut = 1; cut < 1200; cut += 7)
    for (const int end : {0, 1}) {
      Pair pair;
      int links = 0;
      pair.env.largest_read = 1 + cut % 50;
      pair.env.on_link = [&](Link& link) {
        if (++links == 1) link.cut_at[end] = cut;
      };
      pair.start();
      for (int i = 0; i < 12; ++i)
        pair.add(kLogs[i % 2], std::string(static_cast<size_t>(40 + i), static_cast<char>('a' + i)));
      pair.pass(3);
      for (const Log log : kLogs) BOOST_TEST(pair.complete(log), "cut at " << cut << " of end " << end);
    }
}

BOOST_AUTO_TEST_CASE(frames_that_the_collector_has_are_dropped_as_copies) {
  Pair pair;
  pair.sink.commits = false;
  pair.start();
  for (int i = 0; i < 4; ++i) pair.add(Log::kCondensed, "frame " + std::to_string(i));
  // The commit follows the end of the connection; the next Hello was requested before the commit.
  pair.env.links.at(0)->cut();
  pair.pass(2);
  pair.sink.commits = true;
  pair.sink.commit();
  pair.env.read();
  BOOST_TEST(pair.complete(Log::kCondensed));
  BOOST_TEST(pair.source.of(Log::kCondensed).acknowledged == 4u);
}

BOOST_AUTO_TEST_CASE(a_backlog_of_evidence_holds_a_condensed_frame_up_by_little) {
  Pair pair;
  for (int i = 0; i < 200; ++i) pair.source.add(Log::kEvidence, std::string(100'000, 'x'));
  pair.env.on_link = [](Link& link) { link.bytes_per_second = 1'000'000; };
  pair.start();
  pair.pass(3);
  const size_t arrived = pair.sink.arrivals.size();
  pair.add(Log::kCondensed, "urgent");
  pair.pass(30);
  const size_t at = position(pair.sink.arrivals, "condensed 1");
  BOOST_TEST(at >= arrived);
  BOOST_TEST(at - arrived <= 11u);  // 512 KiB in the socket, and as much in memory
  BOOST_TEST(pair.complete(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(the_condensed_log_goes_first) {
  Pair pair;
  for (int i = 0; i < 100; ++i) pair.source.add(kLogs[i % 2], std::string(5000, 'x'));
  pair.source.later = true;
  pair.start();
  for (size_t i = 0; i < 50; ++i) BOOST_TEST(pair.sink.arrivals.at(i).starts_with("condensed"));
  BOOST_TEST(pair.complete(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(what_is_out_stays_within_the_window_and_the_credit) {
  for (const uint64_t credit : {uint64_t{100'000}, uint64_t{4'000'000}}) {
    Pair pair;
    pair.agent.window_bytes = 300'000;
    pair.receiver.credit_bytes = credit;
    pair.sink.commits = false;
    for (int i = 0; i < 100; ++i) pair.source.add(Log::kEvidence, std::string(10'000, 'x'));
    pair.start();
    const uint64_t window = std::min<uint64_t>(300'000, credit);
    const auto out = [&] { return pair.forwarder->stats().logs[1].unacked_bytes; };
    BOOST_TEST(out() <= window * 3 / 4 + 10'000);  // one frame may be larger
    BOOST_TEST(out() > window / 2);
    pair.add(Log::kCondensed, std::string(20'000, 'y'));  // a quarter of the window is free for it
    BOOST_TEST(pair.stored(Log::kCondensed).bytes.size() == 20'000u);
    pair.sink.commits = true;
    pair.sink.commit();
    pair.env.read();
    BOOST_TEST(pair.complete(Log::kEvidence));
    BOOST_TEST(pair.source.largest_answer <= window);
  }
}

BOOST_AUTO_TEST_CASE(without_acknowledgements_it_stops_and_says_so) {
  Pair pair;
  pair.sink.commits = false;
  for (int i = 0; i < 1000; ++i) pair.source.add(Log::kEvidence, std::string(10'000, 'x'));
  pair.start();
  const uint64_t arrived = pair.sink.arrivals.size();
  pair.pass(120);
  BOOST_TEST(pair.sink.arrivals.size() == arrived);
  BOOST_TEST(pair.forwarder->stats().sessions == 1u);  // both are alive
  BOOST_TEST(pair.forwarder->stats().sentence().starts_with(
      "connected, but the collector has acknowledged nothing since 20"));
  pair.sink.commits = true;
  pair.sink.commit();
  pair.env.read();
  BOOST_TEST(pair.forwarder->stats().sentence() == "connected");
  BOOST_TEST(pair.complete(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(a_half_open_connection_is_noticed_by_both_within_thirty_seconds) {
  Pair pair;
  pair.start();
  pair.pass(100);
  BOOST_TEST(pair.forwarder->stats().sessions == 1u);  // an idle one stays
  pair.env.links.at(0)->half_open = true;
  pair.env.refuses = true;
  pair.pass(30);
  BOOST_TEST(pair.forwarder->stats().last_error == "collector:7421: connection refused");
  BOOST_TEST(pair.collector->hosts().size() == 0u);
  BOOST_TEST(pair.collector->stats().refused[size_t(peer::Refusal::kTimeout)] == 1u);
  pair.env.refuses = false;
  pair.pass(60);
  BOOST_TEST(pair.forwarder->stats().sessions == 2u);
}

BOOST_AUTO_TEST_CASE(a_collector_that_reads_a_byte_a_second_costs_no_memory_and_loses_nothing) {
  Pair pair;
  for (int i = 0; i < 1000; ++i) pair.source.add(Log::kEvidence, std::string(10'000, 'x'));
  pair.start_collector();
  pair.env.on_link = [&](Link& link) { link.bytes_per_second = 1; };
  pair.start_agent();
  pair.pass(1000);
  BOOST_TEST(pair.forwarder->stats().sessions == 0u);  // no Hello arrives in time
  pair.env.on_link = {};
  pair.pass(70);
  BOOST_TEST(pair.complete(Log::kEvidence));
  pair.env.links.at(0)->bytes_per_second = 1;
  for (int i = 0; i < 1000; ++i) pair.source.add(Log::kEvidence, std::string(10'000, 'y'));
  pair.forwarder->appended(Log::kEvidence);
  pair.pass(500);
  BOOST_TEST(pair.env.links.at(0)->ends[1].wire.size() < 1'100'000u);
  pair.env.links.at(0)->bytes_per_second = 0;
  pair.pass(100);
  BOOST_TEST(pair.complete(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(an_agent_whose_log_begins_later_tells_what_is_gone_and_declares_its_streams) {
  Pair pair;
  for (int i = 0; i < 10; ++i) pair.source.add(Log::kEvidence, "frame " + std::to_string(i));
  pair.source.of(Log::kEvidence).first = 5;
  pair.source.of(Log::kEvidence).unreadable[7] = true;  // frame 8
  pair.start();
  const std::vector<std::string> expected = {"gap 1-4: no longer held by the agent",
                                             "checkpoint 4",
                                             "5",
                                             "6",
                                             "7",
                                             "gap 8-8: cannot be read from the agent's disk",
                                             "9",
                                             "10"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == expected, boost::test_tools::per_element());
  // A collector that was reset to an earlier state needs them as well.
  pair.source.of(Log::kEvidence).first = 9;
  pair.stored(Log::kEvidence).committed = 6;
  pair.stored(Log::kEvidence).last = 6;
  pair.stored(Log::kEvidence).order.clear();
  pair.env.links.at(0)->cut();
  pair.pass(2);
  const std::vector<std::string> again = {"gap 7-8: no longer held by the agent", "checkpoint 8", "9", "10"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == again, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_wiped_spool_begins_a_new_epoch) {
  Pair pair;
  pair.start();
  for (int i = 0; i < 5; ++i) pair.add(Log::kEvidence, "old");
  auto& log = pair.source.of(Log::kEvidence);
  log = {};
  log.epoch = 2002;
  pair.forwarder->reopened();
  pair.pass(2);
  for (int i = 0; i < 3; ++i) pair.add(Log::kEvidence, "new");
  BOOST_TEST(pair.sink.epochs.at(1002).bytes == "oldoldoldoldold");
  BOOST_TEST(pair.sink.epochs.at(2002).bytes == "newnewnew");
}

BOOST_AUTO_TEST_CASE(a_log_that_lost_its_end_is_not_sent_and_reported) {
  Pair pair;
  pair.start();
  for (int i = 0; i < 5; ++i) pair.add(Log::kEvidence, "frame");
  auto& log = pair.source.of(Log::kEvidence);
  log.frames.resize(2), log.declares.resize(2), log.unreadable.resize(2);
  log.acknowledged = 0;
  pair.env.links.at(0)->cut();
  pair.pass(2);
  pair.add(Log::kEvidence, "another third");
  BOOST_TEST(log.fell_behind == 5u);
  BOOST_TEST(pair.stored(Log::kEvidence).bytes == "frameframeframeframeframe");
  BOOST_TEST(
      pair.forwarder->stats().sentence() ==
      "connected; of the evidence log nothing is sent: the collector has 5 frames and this host 2: its "
      "disk has lost some");
  pair.add(Log::kCondensed, "goes on");
  BOOST_TEST(pair.complete(Log::kCondensed));
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_is_tried_again_and_reported) {
  Pair pair;
  pair.start();
  pair.source.failing = true;
  pair.add(Log::kEvidence, "abc");
  pair.pass(5);
  BOOST_TEST(pair.source.reads < 20u);
  BOOST_TEST(pair.forwarder->stats().sentence() ==
             "connected; of the evidence log nothing is sent: /s/1.seg: input/output error");
  pair.source.failing = false;
  pair.pass(2);
  BOOST_TEST(pair.complete(Log::kEvidence));
  BOOST_TEST(pair.forwarder->stats().sentence() == "connected");
}

BOOST_AUTO_TEST_CASE(agents_that_lost_their_collector_at_one_moment_come_back_spread) {
  NetEnv env;
  MemorySink sink;
  collect::CollectorOptions receiver;
  receiver.listen = kAddress;
  auto collector = *collect::Collector::start(env, receiver, sink);
  sink.collector = collector.get();
  std::vector<std::unique_ptr<MemorySource>> sources;
  std::vector<std::unique_ptr<Forwarder>> agents;
  for (uint64_t i = 0; i < 1000; ++i) {
    sources.push_back(std::make_unique<MemorySource>(env));
    sources.back()->logs[0].epoch = 10 * i + 1, sources.back()->logs[1].epoch = 10 * i + 2;
    ForwarderOptions options;
    options.to = {kAddress};
    options.host = "node-" + std::to_string(i), options.boot_id = "b", options.seed = i;
    agents.push_back(std::make_unique<Forwarder>(env, options, *sources.back(), nullptr));
    agents.back()->start();
  }
  env.read();
  BOOST_TEST(collector->hosts().size() == 1000u);
  sink.collector = nullptr;
  collector.reset();
  env.read();
  std::map<TimeNs, int> attempts;  // by 100 ms
  uint64_t before = 0;
  const auto total = [&] {
    uint64_t n = 0;
    for (const auto& agent : agents) n += agent->stats().attempts;
    return n;
  };
  before = total();
  int largest_late = 0;
  for (int i = 0; i < 1200; ++i) {
    env.advance(100 * kNsPerMs);
    const uint64_t now = total();
    if (i >= 300) largest_late = std::max(largest_late, static_cast<int>(now - before));
    attempts[i] = static_cast<int>(now - before);
    before = now;
  }
  for (int i = 0; i < 10; ++i) BOOST_TEST(attempts[i] < 200);  // at most 199 per tenth of a second
  BOOST_TEST(largest_late < 40);                               // about three per tenth of a second later
  collector = *collect::Collector::start(env, receiver, sink);
  sink.collector = collector.get();
  env.advance(61 * kNsPerSecond);
  BOOST_TEST(collector->hosts().size() == 1000u);
  sink.collector = nullptr;
}

BOOST_AUTO_TEST_CASE(a_good_session_begins_the_backoff_again_and_a_short_one_does_not) {
  for (const bool good : {false, true}) {
    Pair pair;
    pair.env.refuses = true;
    pair.start();
    pair.pass(200);
    pair.env.refuses = false;
    pair.pass(61);
    BOOST_REQUIRE(pair.forwarder->stats().sessions == 1u);
    if (good) pair.pass(61);
    TimeNs longest = 0;
    for (int i = 0; i < 8; ++i) {  // each new connection is cut at once
      pair.env.links.at(0)->cut();
      pair.env.read();
      longest = std::max(longest, pair.forwarder->stats().next_attempt_ns - pair.env.wall_ns);
      if (good) break;
      pair.pass(61);
      if (pair.forwarder->stats().phase != Phase::kOpen) break;
    }
    if (good)
      BOOST_TEST(longest <= kNsPerSecond);
    else
      BOOST_TEST(longest > kNsPerSecond);
  }
}

BOOST_AUTO_TEST_CASE(backoff_doubles_up_to_a_minute_and_draws_from_all_of_it) {
  TimeNs bound = kNsPerSecond;
  for (int attempt = 0; attempt < 10; ++attempt, bound = std::min(2 * bound, 60 * kNsPerSecond)) {
    int low = 0, high = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
      Backoff backoff(seed);
      TimeNs delay = 0;
      for (int i = 0; i <= attempt; ++i) delay = backoff.next();
      BOOST_TEST(delay <= bound);
      low += delay < bound / 4 ? 1 : 0;
      high += delay > bound * 3 / 4 ? 1 : 0;
    }
    BOOST_TEST(low > 60);
    BOOST_TEST(high > 60);
  }
}

BOOST_AUTO_TEST_CASE(what_breaks_the_protocol_at_the_collectors_end_is_one_sentence) {
  const auto welcome = [](peer::Version version) {
    peer::Welcome w;
    w.version = version;
    w.credit = 1 << 20;
    w.logs = {{Log::kCondensed, 1001, true, 0}, {Log::kEvidence, 1002, true, 0}};
    return peer::encode(w);
  };
  const struct {
    std::string bytes, says;
  } cases[] = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n",
       "collector:7421: what came is none of our messages: HTTP/1.1 400 Bad"},
      {peer::encode(peer::Ack{}), "collector:7421: a message of kind \"ack\" came where it does not belong"},
      {peer::encode(peer::Refused{peer::Refusal::kVersion, "it is too new"}),
       "collector:7421: refuses this host: it is too new"},
      {peer::encode(peer::Bye{"the collector stops"}), "collector:7421: the collector stops"},
      {welcome({9, 0}), "collector:7421: a message of kind \"welcome\" came where it does not belong"},
      {welcome({1, 0}) + welcome({1, 0}),
       "collector:7421: a message of kind \"welcome\" came where it does not belong"},
      {welcome({1, 0}) + peer::encode(peer::Ack{Log::kEvidence, 1002, 5, 1}),
       "collector:7421: a message of kind \"ack\" came where it does not belong"},
      {std::string("CP\x05\0\xff\xff\xff\xff", 8),
       "collector:7421: a message of 4294967295 bytes came where at most 16384 are taken"},
      {"", "collector:7421: closed the connection"},
  };
  for (const auto& row : cases) {
    Pair pair;
    std::unique_ptr<io::Stream> accepted;
    auto listener = *pair.env.listen(kAddress, 0, [&](std::unique_ptr<io::Stream> stream) {
      accepted = std::move(stream);
      accepted->start({[](std::string_view) {}, [](const Error*) {}});
    });
    pair.start_agent();
    accepted->write(row.bytes);
    if (row.bytes.empty()) accepted.reset();
    pair.env.read();
    BOOST_TEST(pair.forwarder->stats().last_error == row.says);
    BOOST_TEST((pair.forwarder->stats().phase == Phase::kWaiting));
  }
}

BOOST_AUTO_TEST_CASE(a_peer_that_takes_a_connection_and_says_nothing_is_left) {
  Pair pair;
  std::unique_ptr<io::Stream> accepted;
  auto listener = *pair.env.listen(kAddress, 0, [&](std::unique_ptr<io::Stream> stream) {
    accepted = std::move(stream);
    accepted->start({[](std::string_view) {}, [](const Error*) {}});
  });
  pair.start_agent();
  pair.pass(22);
  BOOST_TEST(pair.forwarder->stats().last_error ==
             "collector:7421: took the connection and did not welcome it in time");
}

BOOST_AUTO_TEST_CASE(its_state_reaches_the_collector) {
  Pair pair;
  pair.start_collector();
  pair.sink.commits = false;
  pair.forwarder = std::make_unique<Forwarder>(pair.env, pair.agent, pair.source, [] {
    peer::Status status;
    status.dropped_bytes = 77;
    status.jobs = {"llama"};
    return status;
  });
  pair.forwarder->start();
  pair.env.read();
  for (int i = 0; i < 3; ++i) pair.add(Log::kEvidence, "abc");
  pair.pass(11);
  const peer::Status& status = pair.sink.states.at("node-3");
  BOOST_TEST(status.dropped_bytes == 77u);
  BOOST_TEST(status.jobs.at(0) == "llama");
  BOOST_TEST(status.logs.at(1).unacked_frames == 3u);
  BOOST_TEST(status.logs.at(1).oldest_ns == pair.source.logs[1].frames[0].packed_ns);
}

BOOST_AUTO_TEST_CASE(it_may_be_destroyed_and_stopped_at_any_time) {
  for (int step = 0; step < 6; ++step) {
    Pair pair;
    pair.source.later = true;
    for (int i = 0; i < 50; ++i) pair.source.add(Log::kEvidence, std::string(100'000, 'x'));
    pair.start_collector();
    pair.forwarder = std::make_unique<Forwarder>(pair.env, pair.agent, pair.source, nullptr);
    pair.forwarder->start();
    for (int i = 0; i < step; ++i) pair.env.run();
    if (step % 2 == 0) pair.env.read();
    pair.forwarder->stop();
    BOOST_TEST(pair.forwarder->stats().sentence() == "stopped");
    pair.forwarder.reset();
    pair.pass(100);
    BOOST_TEST(pair.collector->hosts().empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
