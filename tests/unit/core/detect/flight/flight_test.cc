#include "core/detect/flight/flight.h"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace culprit;
using namespace culprit::flight;

BOOST_AUTO_TEST_SUITE(flight)

namespace {

constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;

uint32_t word(FlightDump& dump, const std::string& text) {
  dump.words.push_back(text);
  return static_cast<uint32_t>(dump.words.size() - 1);
}

struct Op {
  uint32_t group = 0;
  int64_t seq = 0;
  bool done = false;
  std::string name = "all_reduce";
  std::string sizes = "[[4]]";
};

void add(FlightDump& dump, const Op& op) {
  FlightOp out;
  out.group = op.group;
  out.seq = op.seq;
  out.done = op.done;
  out.name = word(dump, op.name);
  out.in_sizes = word(dump, op.sizes);
  out.p2p = op.name.starts_with("send") || op.name.starts_with("recv");
  out.created_ns = kStart + op.seq;
  dump.ops.push_back(out);
}

// `ranks` ranks of a world (group 0), in pairs (group 1); all have completed ten operations.
std::vector<FlightDump> job(uint32_t ranks) {
  std::vector<FlightDump> out(ranks);
  std::vector<uint32_t> all;
  for (uint32_t r = 0; r < ranks; ++r) all.push_back(r);
  for (uint32_t r = 0; r < ranks; ++r) {
    FlightDump& d = out[r];
    d.rank = r;
    d.file = "runs/_dump_" + std::to_string(r);
    d.words = {""};
    d.stacks = {{}};
    const uint32_t first = r / 2 * 2;
    d.groups.push_back({"0", "default_pg", all, 10, 10});
    d.groups.push_back({"p" + std::to_string(first), "TENSOR", {first, first + 1}, 10, 10});
    d.groups.push_back({"pp", "PIPELINE_MODEL_PARALLEL_GROUP", all, 10, 10});
    for (const uint32_t group : {0u, 1u}) add(d, {group, 10, true});
  }
  return out;
}

// Ranks that the rules accuse.
std::set<uint32_t> accused(const FlightAnswer& answer) {
  std::set<uint32_t> out;
  for (const hang::HangClaim& output : answer.claims) out.insert(output.ranks.begin(), output.ranks.end());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(completed_operations_are_no_hang) {
  const FlightAnswer answer = analyse_flight(job(8), {});
  BOOST_TEST((!answer.waits && answer.claims.empty() && answer.observations.empty()));
  BOOST_TEST((answer.missing.empty() && answer.problems.empty()));
  BOOST_TEST(!analyse_flight({}, {}).waits);
}

BOOST_AUTO_TEST_CASE(who_has_not_enqueued_what_peers_wait_in_is_stuck_on_the_host) {
  auto dumps = job(8);
  for (FlightDump& d : dumps)
    if (d.rank != 3) add(d, {0, 11, false});
  // Its partner waits in their pair too.
  add(dumps[2], {1, 11, false});
  const auto place = [](uint32_t rank) { return RankPlace{"node-" + std::to_string(rank / 4), rank % 4}; };
  const FlightAnswer answer = analyse_flight(dumps, place);
  BOOST_TEST((accused(answer) == std::set<uint32_t>{3}));
  BOOST_TEST(answer.since_ns == kStart + 11);
  const hang::HangClaim& output = answer.claims[0];
  BOOST_TEST(
      (output.answer == HangAnswer::kMissing && output.call.op == "all_reduce" && output.call.seq == 11));
  BOOST_TEST(output.group.description == "default_pg");
  const Finding& f = *output.as;
  BOOST_TEST((f.subjects[0].host == "node-0" && f.subjects[0].device == 3u));
  BOOST_TEST(f.why[0] ==
             "rank 3 has not enqueued all_reduce 11 of default_pg, in which 7 ranks wait, and waits for no "
             "other rank");
  BOOST_TEST(
      (f.symptom == Symptom::kHang && f.detector == DetectorKind::kComm && f.action == ActionKind::kCheck));
  BOOST_REQUIRE(f.evidence.size() == 1u);
  BOOST_TEST((f.evidence[0].file == "runs/_dump_3" && !f.evidence[0].line && !f.evidence[0].offset));
  // Ranks that wait for others are healthy.
  BOOST_REQUIRE(answer.clusters.size() == 2u);
  BOOST_TEST((answer.clusters[0].healthy && answer.clusters[0].ranks.size() == 7));
  BOOST_TEST((!answer.clusters[1].healthy && answer.clusters[1].ranks == std::vector<uint32_t>{3}));
}

BOOST_AUTO_TEST_CASE(who_is_late_because_it_waits_itself_is_excused) {
  auto dumps = job(8);
  for (FlightDump& d : dumps)
    if (d.rank > 1) add(d, {0, 11, false});
  add(dumps[0], {1, 11, false});  // waits for rank 1 in their pair, not in the world
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{1}));
  // So does a rank that waits to receive.
  add(dumps[1], {2, 5, false, "recv 1<-7"});
  BOOST_TEST(accused(analyse_flight(dumps, {})).empty());
}

BOOST_AUTO_TEST_CASE(who_has_not_completed_what_peers_have_is_stuck_on_the_device) {
  auto dumps = job(8);
  for (FlightDump& d : dumps) add(d, {0, 11, d.rank != 5});
  for (FlightDump& d : dumps) add(d, {0, 12, false});
  const FlightAnswer answer = analyse_flight(dumps, {});
  BOOST_TEST((accused(answer) == std::set<uint32_t>{5}));
  BOOST_TEST(answer.claims[0].title.ends_with("completed: its device or link stands still"));
  BOOST_TEST((answer.claims[0].as->component == Component::kGpu));
  BOOST_TEST(!answer.claims[0].as->subjects[0].host);
  dumps[6].ops[dumps[6].ops.size() - 2].done = false;
  BOOST_TEST(analyse_flight(dumps, {}).claims[0].title.ends_with(
      "Ranks 5, 6 did not complete what the peers completed: their devices or links stand still"));
}

BOOST_AUTO_TEST_CASE(a_root_that_has_sent_its_broadcast_accuses_no_rank) {
  auto dumps = job(4);
  for (FlightDump& d : dumps) add(d, {0, 11, d.rank == 0, "broadcast"});
  BOOST_TEST(accused(analyse_flight(dumps, {})).empty());
}

BOOST_AUTO_TEST_CASE(several_hangs_in_several_groups_are_all_named) {
  auto dumps = job(16);
  add(dumps[2], {1, 11, false});  // of the pair 2, 3
  add(dumps[8], {1, 11, false});  // of the pair 8, 9
  add(dumps[12], {1, 11, true});  // of the pair 12, 13: the device
  add(dumps[13], {1, 11, false});
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{3, 9, 13}));
}

BOOST_AUTO_TEST_CASE(pipelines_are_left_out_unless_nothing_else_is_under_way) {
  auto dumps = job(8);
  add(dumps[4], {2, 11, false, "recv 4<-3"});
  add(dumps[5], {2, 11, false, "recv 5<-4"});
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{3}));
  for (FlightDump& d : dumps)
    if (d.rank != 6) add(d, {0, 11, false});
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{6}));
}

BOOST_AUTO_TEST_CASE(calls_that_do_not_match_are_a_fault_of_the_program) {
  const std::vector<std::pair<Op, std::string>> cases = {
      {{0, 11, false, "all_gather"}, "rank 6 called all_gather as operation 11"},
      {{0, 11, false, "all_reduce", "[[8]]"}, "rank 6 called all_reduce of [[8]] as operation 11"}};
  for (const auto& [op, why] : cases) {
    auto dumps = job(8);
    for (FlightDump& d : dumps) add(d, d.rank == 6 ? op : Op{0, 11, false});
    const FlightAnswer answer = analyse_flight(dumps, {});
    BOOST_TEST((accused(answer) == std::set<uint32_t>{6}));
    const Finding& f = *answer.claims[0].as;
    BOOST_TEST((f.by_no_device && f.category == Category::kUser));
    BOOST_TEST(f.why[0].starts_with(why), f.why[0]);
  }
  // Different sizes in an all_to_all are no mismatch.
  auto dumps = job(8);
  for (FlightDump& d : dumps) add(d, {0, 11, false, "all_to_all", "[[" + std::to_string(d.rank) + "]]"});
  BOOST_TEST(accused(analyse_flight(dumps, {})).empty());
}

BOOST_AUTO_TEST_CASE(ranks_without_a_dump_are_told_as_missing) {
  auto dumps = job(8);
  for (FlightDump& d : dumps) add(d, {0, 11, false});
  dumps.erase(dumps.begin() + 4);
  const FlightAnswer answer = analyse_flight(dumps, {});
  BOOST_TEST((accused(answer).empty() && answer.waits && answer.observations.size() > 7));
  BOOST_TEST((answer.missing == std::vector<std::string>{"the Flight Recorder dumps of rank 4"}));
}

BOOST_AUTO_TEST_CASE(a_dump_of_another_time_says_nothing) {
  auto dumps = job(8);
  for (FlightDump& d : dumps) {
    if (d.rank == 2) continue;  // still at ten, while the others have completed twenty
    add(d, {0, 20, true});
    if (d.rank != 5) add(d, {0, 21, false});
  }
  const FlightAnswer answer = analyse_flight(dumps, {});
  BOOST_TEST((accused(answer) == std::set<uint32_t>{5}));
  BOOST_REQUIRE(answer.problems.size() == 1u);
  BOOST_TEST(answer.problems[0].file == "runs/_dump_2");
}

BOOST_AUTO_TEST_CASE(dumps_of_a_job_at_work_name_no_rank) {
  // Every other rank is one operation behind: the dumps were written one after the other.
  auto dumps = job(8);
  for (FlightDump& d : dumps) {
    add(d, {0, 11, d.rank >= 3});
    add(d, {0, 12, false});
  }
  for (FlightDump& d : dumps) d.written_ns = kStart + 500'000'000;
  BOOST_TEST(!analyse_flight(dumps, {}).waits);
  // The same state minutes later is a hang.
  for (FlightDump& d : dumps) d.written_ns = kStart + 600 * kNsPerSecond;
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{0, 1, 2}));
}

BOOST_AUTO_TEST_CASE(where_all_wait_alike_no_rank_is_named) {
  auto dumps = job(8);
  for (FlightDump& d : dumps) add(d, {0, 11, false});
  const FlightAnswer answer = analyse_flight(dumps, {});
  BOOST_TEST(accused(answer).empty());
  BOOST_REQUIRE(answer.no_rank);
  BOOST_TEST((answer.no_rank->role == FindingRole::kCascade && answer.no_rank->confidence < 0.5));
}

BOOST_AUTO_TEST_CASE(counters_tell_of_ranks_without_entries) {
  auto dumps = job(8);
  for (FlightDump& d : dumps) {
    d.ops.clear();  // as in a dump of active operations only
    if (d.rank == 7) continue;
    add(d, {0, 11, false});
    d.groups[0].enqueued = 11;
  }
  BOOST_TEST((accused(analyse_flight(dumps, {})) == std::set<uint32_t>{7}));
}

BOOST_AUTO_TEST_SUITE_END()
