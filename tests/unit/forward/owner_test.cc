#include "fixtures.h"

using namespace culprit;
using namespace culprit::forward;
using namespace culprit::forward::testing;

BOOST_AUTO_TEST_SUITE(forwarding_to_owners)

namespace {

constexpr const char* kSecond = "127.0.0.1:7422";

// Two collectors: the first one names the owner of the agent's job.
struct Three {
  Pair pair;
  MemorySink second_sink;
  std::unique_ptr<collect::Collector> second;
  std::vector<peer::JobOwner> owners;

  Three() {
    pair.receiver.listen = "127.0.0.1:7421";
    pair.agent.to = {pair.receiver.listen};
    pair.jobs = {"train"};
    pair.receiver.others_jobs = [this](const auto&) { return owners; };
  }
  void start_second() {
    collect::CollectorOptions options;
    options.listen = kSecond;
    second = *collect::Collector::start(pair.env, options, second_sink);
    second_sink.collector = second.get();
  }
  bool second_has_all(Log log) {
    const MemorySink::Stored& stored = second_sink.epochs[pair.source.of(log).epoch];
    return stored.bytes == pair.all(log) && stored.committed + 1 == pair.source.of(log).next();
  }

  // The agent was at the second collector meanwhile, which then died.
  void back_after(const std::function<void()>& meanwhile) {
    pair.agent.to.push_back(kSecond);
    pair.start();
    start_second();
    pair.add(Log::kEvidence, "first");
    owners = {{"train", kSecond, 7}};
    pair.pass(12);
    meanwhile();
    owners.clear();
    second_sink.collector = nullptr;
    second.reset();
    pair.env.read();
    pair.pass(10);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(of_a_list_the_next_collector_gets_what_the_first_does_not_take) {
  Three three;
  three.pair.agent.to = {"127.0.0.1:1", kSecond};
  three.start_second();
  three.pair.start_agent();
  three.pair.add(Log::kEvidence, "abc");
  three.pair.pass(3);
  BOOST_TEST(three.second_has_all(Log::kEvidence));
  BOOST_TEST(three.pair.forwarder->stats().to == kSecond);
}

BOOST_AUTO_TEST_CASE(an_agent_moves_to_the_owner_once_all_that_it_sent_is_acknowledged) {
  Three three;
  Pair& pair = three.pair;
  pair.sink.commits = false;
  pair.start();
  three.start_second();
  for (int i = 0; i < 10; ++i)
    for (const Log log : peer::kLogs) pair.add(log, "line " + std::to_string(i));
  three.owners = {{"train", kSecond, 7}};
  pair.pass(11);
  pair.add(Log::kEvidence, "after it is named");
  BOOST_TEST(pair.forwarder->stats().moves == 0u);
  BOOST_TEST(pair.stored(Log::kEvidence).last == 10u);  // no more is sent here
  pair.sink.commit();
  pair.env.read();
  BOOST_TEST(pair.source.of(Log::kEvidence).acknowledged == 10u);
  pair.pass(1);
  BOOST_TEST(pair.forwarder->stats().moves == 1u);
  BOOST_TEST(pair.forwarder->stats().to == kSecond);
  BOOST_TEST(pair.forwarder->stats().sentence() == "connected");
  BOOST_TEST(three.second_has_all(Log::kCondensed));
  const MemorySink::Stored& evidence = three.second_sink.epochs[pair.source.of(Log::kEvidence).epoch];
  BOOST_TEST(evidence.order ==
                 (std::vector<std::string>{"gap 1-10: another collector has it", "checkpoint 10", "11"}),
             boost::test_tools::per_element());
  BOOST_TEST(evidence.committed == 11u);
  BOOST_TEST(pair.source.of(Log::kEvidence).acknowledged == 11u);
  BOOST_TEST(pair.sink.events.back() == "node-3 disconnected: moves to 127.0.0.1:7422, which owns its jobs");
  pair.sink.collector = nullptr;
}

BOOST_AUTO_TEST_CASE(a_collector_that_archives_gets_again_what_another_received_and_did_not_archive) {
  Three three;
  Pair& pair = three.pair;
  pair.agent.to.push_back(kSecond);
  pair.sink.archived = three.second_sink.archived = 0;
  pair.start();
  three.start_second();
  for (int i = 1; i <= 5; ++i) pair.add(Log::kEvidence, "line " + std::to_string(i));
  const MemorySource::MemoryLog& log = pair.source.of(Log::kEvidence);
  BOOST_TEST((log.acknowledged == 5u && log.archived == std::optional<uint64_t>(0)));
  pair.collector->archived(log.epoch, 3);
  pair.env.read();
  BOOST_TEST((log.archived == std::optional<uint64_t>(3)));
  pair.stop_collector();  // with its disk
  pair.pass(30);
  const MemorySink::Stored& stored = three.second_sink.epochs[log.epoch];
  const std::vector<std::string> expected = {"gap 1-3: another collector has it", "checkpoint 3", "4", "5"};
  BOOST_TEST(stored.order == expected, boost::test_tools::per_element());
  three.second->archived(log.epoch, 5);
  pair.env.read();
  BOOST_TEST((log.archived == std::optional<uint64_t>(5)));
}

BOOST_AUTO_TEST_CASE(a_collector_whose_disk_was_wiped_gets_what_is_in_no_object) {
  Three three;
  Pair& pair = three.pair;
  pair.sink.archived = 0;
  pair.start();
  for (int i = 1; i <= 4; ++i) pair.add(Log::kEvidence, "line " + std::to_string(i));
  const uint64_t epoch = pair.source.of(Log::kEvidence).epoch;
  pair.collector->archived(epoch, 2);
  pair.env.read();
  pair.stop_collector();
  pair.sink.epochs.clear();
  pair.start_collector();
  pair.pass(30);
  const std::vector<std::string> expected = {"gap 1-2: another collector has it", "checkpoint 2", "3", "4"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(frames_around_a_finding_are_selected_again_until_they_are_archived) {
  Three three;
  Pair& pair = three.pair;
  pair.agent.to.push_back(kSecond);
  pair.agent.evidence = {EvidenceMode::kFindings, 0, 10 * kNsPerSecond};
  pair.sink.archived = three.second_sink.archived = 0;
  pair.start();
  three.start_second();
  pair.add(Log::kEvidence, "the fault");
  pair.forwarder->finding(pair.env.wall_ns);
  pair.env.read();
  BOOST_TEST(pair.source.of(Log::kEvidence).acknowledged == 1u);
  pair.stop_collector();  // with its disk
  pair.pass(30);
  BOOST_TEST(three.second_sink.epochs[pair.source.of(Log::kEvidence).epoch].bytes == "the fault");
}

BOOST_AUTO_TEST_CASE(of_a_collector_that_archives_nothing_acknowledged_is_all) {
  Three three;
  Pair& pair = three.pair;
  pair.start();
  pair.add(Log::kEvidence, "first");
  const MemorySource::MemoryLog& log = pair.source.of(Log::kEvidence);
  BOOST_TEST((log.acknowledged == 1u && !log.archived));
}

BOOST_AUTO_TEST_CASE(back_at_a_collector_the_evidence_of_meanwhile_is_a_gap_and_its_streams_are_declared) {
  Three three;
  Pair& pair = three.pair;
  three.back_after([&] { pair.add(Log::kEvidence, "meanwhile"); });
  pair.add(Log::kEvidence, "then");
  const std::vector<std::string> expected = {"checkpoint 0", "1", "checkpoint 1",
                                             "gap 2-2: another collector has it", "3"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(frames_that_declare_streams_are_sent_although_another_collector_has_them) {
  Three three;
  Pair& pair = three.pair;
  three.back_after([&] {
    pair.add(Log::kEvidence, "declares", true);
    pair.add(Log::kEvidence, "meanwhile");
  });
  pair.add(Log::kEvidence, "then");
  const std::vector<std::string> expected = {
      "checkpoint 0", "1", "checkpoint 1", "2", "gap 3-3: another collector has it", "4"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_connection_that_ends_after_the_gap_costs_no_declaration) {
  Three three;
  Pair& pair = three.pair;
  three.back_after([&] { pair.add(Log::kEvidence, "meanwhile"); });
  BOOST_REQUIRE(pair.stored(Log::kEvidence).order.back() == "gap 2-2: another collector has it");
  pair.stop_collector();
  pair.start_collector();
  pair.pass(30);
  pair.add(Log::kEvidence, "then");
  const std::vector<std::string> expected = {
      "checkpoint 0", "1", "checkpoint 1", "gap 2-2: another collector has it", "checkpoint 2", "3"};
  BOOST_TEST(pair.stored(Log::kEvidence).order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_collector_that_acknowledges_nothing_holds_no_agent_for_longer_than_half_a_minute) {
  Three three;
  Pair& pair = three.pair;
  pair.sink.commits = false;
  pair.start();
  three.start_second();
  pair.add(Log::kEvidence, "abc");
  three.owners = {{"train", kSecond, 7}};
  pair.pass(60);
  BOOST_TEST(three.second_has_all(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(an_owner_that_is_away_costs_one_attempt_a_minute_and_its_successor_is_followed) {
  Three three;
  Pair& pair = three.pair;
  three.owners = {{"train", "127.0.0.1:9", 7}};
  pair.start();
  pair.pass(50);
  pair.add(Log::kCondensed, "abc");
  BOOST_TEST(pair.complete(Log::kCondensed));  // where it comes from
  BOOST_TEST(pair.forwarder->stats().moves == 1u);
  pair.pass(60);
  BOOST_TEST(pair.forwarder->stats().moves == 2u);
  three.start_second();
  three.owners = {{"train", kSecond, 8}};
  pair.pass(30);
  BOOST_TEST(three.second_has_all(Log::kCondensed));
}

BOOST_AUTO_TEST_SUITE_END()
