#include "fixtures.h"

using namespace culprit;
using namespace culprit::forward;
using namespace culprit::forward::testing;

BOOST_AUTO_TEST_SUITE(evidence_policy)

namespace {

constexpr TimeNs kS = kNsPerSecond;

// A frame each ten seconds from 0 to 590 s; the one of 200 s declares a stream.
struct Minutes : Pair {
  TimeNs begin;
  explicit Minutes(EvidenceOptions options) {
    agent.evidence = options;
    start();
    begin = env.wall_ns;
  }
  void run(int64_t from_s, int64_t to_s) {
    for (int64_t s = from_s; s < to_s; s += 10) {
      env.advance(begin + s * kS - env.wall_ns);
      add(Log::kEvidence, std::to_string(s) + ";", s == 200);
    }
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(findings_send_what_lies_around_them_and_the_rest_is_reported_as_a_gap) {
  Minutes run({EvidenceMode::kFindings, 0, 60 * kS});
  run.run(0, 100);
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "");
  run.run(100, 300);
  run.forwarder->finding(run.begin + 290 * kS);
  run.env.read();
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "200;230;240;250;260;270;280;290;");  // at once
  run.run(300, 600);
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "200;230;240;250;260;270;280;290;300;310;320;330;340;350;");
  BOOST_TEST(run.stored(Log::kEvidence).order.at(1) == "gap 1-1: not forwarded by policy");
  BOOST_TEST(run.source.of(Log::kEvidence).acknowledged == 48u);  // all except two minutes
}

BOOST_AUTO_TEST_CASE(records_of_steps_are_asked_of_who_has_them_whatever_the_policy) {
  Minutes run({EvidenceMode::kNone, 0, 60 * kS});
  run.run(0, 10);
  run.collector->want("node-3", peer::StepsWanted{"llama", {118, 119}});
  run.env.read();
  BOOST_TEST(run.source.asked_steps.first == "llama");
  BOOST_TEST((run.source.asked_steps.second == std::vector<int64_t>{118, 119}));
}

BOOST_AUTO_TEST_CASE(stacks_are_asked_of_the_host_that_runs_the_job) {
  Minutes run({EvidenceMode::kNone, 0, 60 * kS});
  run.run(0, 10);
  run.collector->want("node-3", peer::StacksWanted{"llama", 2});
  run.env.read();
  BOOST_TEST(run.source.asked_stacks.first == "llama");
  BOOST_TEST(run.source.asked_stacks.second == 2u);
}

BOOST_AUTO_TEST_CASE(what_the_collector_wants_is_sent_like_a_finding) {
  Minutes run({EvidenceMode::kFindings, 0, 60 * kS});
  run.run(0, 100);
  run.collector->want("node-3", peer::Wanted{run.begin + 82 * kS, run.begin + 85 * kS, "a rank hangs"});
  run.env.read();
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "30;40;50;60;70;80;90;");
  run.run(100, 300);
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "30;40;50;60;70;80;90;100;110;120;130;140;");
}

BOOST_AUTO_TEST_CASE(what_was_wanted_and_lost_with_a_connection_is_wanted_again) {
  Minutes run({EvidenceMode::kFindings, 0, 60 * kS});
  run.run(0, 100);
  run.sink.commits = false;
  run.forwarder->finding(run.begin + 30 * kS);
  run.run(100, 300);  // after the wanted span; none of its frames is committed
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "0;10;20;30;40;50;60;70;80;90;");
  run.env.links.at(0)->cut();
  run.sink.epochs.clear();  // the collector loses its memory
  run.sink.commits = true;
  run.pass(2);
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "0;10;20;30;40;50;60;70;80;90;");
}

BOOST_AUTO_TEST_CASE(times_of_a_stranger_are_only_times) {
  constexpr TimeNs kEver = std::numeric_limits<TimeNs>::max();
  EvidencePolicy policy({EvidenceMode::kFindings, 0, 60 * kS});
  policy.around(std::numeric_limits<TimeNs>::min(), kEver);
  BOOST_TEST(policy.selection(0).selects(kEver, false));
  BOOST_TEST(policy.selection(0).selects(0, false));
}

BOOST_AUTO_TEST_CASE(none_sends_what_declares_streams_and_nothing_else) {
  Minutes run({EvidenceMode::kNone, 0, 60 * kS});
  run.run(0, 300);
  run.forwarder->finding(run.begin + 290 * kS);
  run.run(300, 600);
  BOOST_TEST(run.stored(Log::kEvidence).bytes == "200;");
  BOOST_TEST(run.source.of(Log::kEvidence).acknowledged == 60u);
}

BOOST_AUTO_TEST_CASE(the_budget_holds_evidence_and_not_the_condensed_log) {
  Pair pair;
  pair.agent.evidence.bytes_per_second = 10'000;
  for (int i = 0; i < 100; ++i) {
    pair.source.add(Log::kEvidence, std::string(5000, 'x'));
    pair.source.add(Log::kCondensed, std::string(5000, 'x'));
  }
  pair.start();
  BOOST_TEST(pair.complete(Log::kCondensed));
  BOOST_TEST(pair.stored(Log::kEvidence).bytes.size() == 10'000u);
  for (const int64_t seconds : {10, 20, 30}) {
    pair.env.advance(pair.env.monotonic_ns < 0 ? 0 : 10 * kS);
    const auto size = static_cast<int64_t>(pair.stored(Log::kEvidence).bytes.size());
    BOOST_TEST(size <= 10'000 * (seconds + 1) + 5000);
    BOOST_TEST(size >= 10'000 * (seconds - 1));
  }
  pair.pass(30);
  BOOST_TEST(pair.complete(Log::kEvidence));
}

BOOST_AUTO_TEST_CASE(spans_join_and_stay_within_their_bound) {
  EvidencePolicy policy({EvidenceMode::kFindings, 0, 10});
  policy.want(100, 120);
  policy.want(140, 160);
  policy.want(115, 145);
  policy.want(10, 20);
  Selection selection = policy.selection(1000);
  BOOST_TEST(selection.spans.size() == 2u);
  BOOST_TEST(selection.until_ns == 980);
  for (const auto& [time, selected] : {std::pair(5, false), std::pair(15, true), std::pair(50, false),
                                       std::pair(100, true), std::pair(160, true), std::pair(161, false)})
    BOOST_TEST(selection.selects(time, false) == selected);
  policy.decided(161);
  BOOST_TEST(policy.selection(1000).spans.empty());
  for (int64_t i = 0; i < 5000; ++i) policy.want(i * 10, i * 10 + 1);
  selection = policy.selection(1000);
  BOOST_TEST(selection.spans.size() <= 1024u);
  for (int64_t i = 0; i < 5000; ++i) BOOST_TEST(selection.selects(i * 10, false));  // more, never less
}

BOOST_AUTO_TEST_SUITE_END()
