// Each wording of a watchdog is read, and a value that is cut off is no value.
#include "core/detect/hang/watchdog_lines.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "core/rules/matcher.h"
#include "core/rules/ruleset.h"

using namespace culprit;
using namespace culprit::hang;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(watchdog_lines)

namespace {

struct Case {
  const char* text;
  WatchdogKind kind;
  int64_t seq, enqueued, completed;  // -2: none
  const char* op;
  const char* group;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.text; }

const Case kCases[] = {
    {"Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for "
     "1801750 milliseconds before timing out.",
     WatchdogKind::kTimeout, -1, -2, -2, "BROADCAST", ""},
    {"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3742816, OpType=REDUCE, "
     "Timeout(ms)=1800000) ran for 1801377 milliseconds before timing out.",
     WatchdogKind::kTimeout, 3742816, -2, -2, "REDUCE", ""},
    {"[PG 1 Rank 3] Process group watchdog thread terminated with exception: [Rank 3] Watchdog caught "
     "collective operation timeout: WorkNCCL(SeqNum=15734, OpType=ALLREDUCE, NumelIn=2, NumelOut=2, "
     "Timeout(ms)=600000) ran for 600036 milliseconds before timing out.",
     WatchdogKind::kTimeout, 15734, -2, -2, "ALLREDUCE", ""},
    {"[PG 0 Rank 1] Timeout at NCCL work: 6075, last enqueued NCCL work: 6139, last completed NCCL work: "
     "6074.",
     WatchdogKind::kStatus, 6075, 6139, 6074, "", "0"},
    {"[PG 0 (default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 7930, "
     "last enqueued NCCL work: 7931, last completed NCCL work: 7929.",
     WatchdogKind::kStatus, 7930, 7931, 7929, "", "0"},
    {"[PG ID 2 PG GUID 5(mesh_dp) Rank 3]  failure detected by watchdog at work sequence id: 716 PG status: "
     "last enqueued work: 747, last completed work: 715",
     WatchdogKind::kStatus, 716, 747, 715, "", "5"},
    {"[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 1 "
     "and we will try our best to dump the debug info. Last enqueued NCCL work: 9, last completed NCCL work: "
     "9.This is most likely caused by incorrect usages of collectives",
     WatchdogKind::kDump, -1, 9, 9, "", "0"},
    {"Collective WorkNCCL(SeqNum=335, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) raised "
     "the "
     "following async exception: NCCL error: remote process exited or there was a network error",
     WatchdogKind::kAsync, 335, -2, -2, "ALLREDUCE", ""},
    {"ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
     WatchdogKind::kHeartbeat, -1, -2, -2, "", ""},
    {"#0 all_reduce from /opt/train/model.py:120", WatchdogKind::kFrame, -1, -2, -2, "", ""},
    {"RuntimeError: [Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 300000 ms", WatchdogKind::kBehind,
     -1, -2, -2, "monitoredBarrier", ""},
    {"[E compiler_depend.ts:421] [Rank 2] Watchdog caught collective operation timeout: "
     "WorkHCCL(SeqNum=78, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing "
     "out.",
     WatchdogKind::kTimeout, 78, -2, -2, "BROADCAST", ""},
    {"Timed out waiting 1800000ms for recv operation to complete", WatchdogKind::kGloo, -1, -2, -2, "recv",
     ""},
    {"socketProgress: Connection closed by remote peer ip-10-0-0-9<32926>", WatchdogKind::kClosed, -1, -2, -2,
     "", ""},
    // Cut off within a word or a number.
    {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpTy", WatchdogKind::kTimeout, 4, -2,
     -2, "", ""},
};

}  // namespace

BOOST_DATA_TEST_CASE(each_wording_is_read, data::make(kCases), c) {
  const auto line = read_watchdog_line(c.text);
  BOOST_REQUIRE(line);
  BOOST_TEST(int(line->kind) == int(c.kind));
  BOOST_TEST(line->call.seq == c.seq);
  BOOST_TEST(line->enqueued.value_or(-2) == c.enqueued);
  BOOST_TEST(line->completed.value_or(-2) == c.completed);
  BOOST_TEST(line->call.op == c.op);
  BOOST_TEST(line->group.key == c.group);
}

BOOST_AUTO_TEST_CASE(a_number_that_is_cut_off_is_unknown) {
  const auto line = read_watchdog_line("WorkNCCL(SeqNum=7219, OpType=BROADCAST, NumelIn=64, NumelOut=240");
  BOOST_REQUIRE(line);
  BOOST_TEST((line->call.in == 64u && !line->call.out));
  BOOST_TEST(!read_watchdog_line("WorkNCCL(SeqNum=72"));
}

BOOST_AUTO_TEST_CASE(sizes_that_the_operation_cannot_have_are_unknown) {
  const auto odd = read_watchdog_line("WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=64, NumelOut=32)");
  BOOST_REQUIRE(odd);
  BOOST_TEST((!odd->call.in && !odd->call.out));
  const auto gather = read_watchdog_line("WorkNCCL(SeqNum=7, OpType=ALLGATHER, NumelIn=64, NumelOut=512)");
  BOOST_REQUIRE(gather);
  BOOST_TEST((gather->call.in == 64u && gather->call.out == 512u));
}

BOOST_AUTO_TEST_CASE(the_global_rank_and_the_rank_in_the_group_are_kept_apart) {
  const auto line = read_watchdog_line(
      "[rank11]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:1587] [PG ID 2 PG GUID 5(mesh_dp) Rank 3]  "
      "failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed "
      "work: 6");
  BOOST_REQUIRE(line);
  BOOST_TEST((line->rank == 11u && line->group_rank == 3u));
  BOOST_TEST(line->group.description == "mesh_dp");
}

BOOST_AUTO_TEST_CASE(an_uninitialised_number_is_no_completed_operation) {
  const auto line = read_watchdog_line(
      "[PG 0 Rank 1] Timeout at NCCL work: 2, last enqueued NCCL work: 3, last completed NCCL work: "
      "94250130243584.");
  BOOST_REQUIRE(line);
  BOOST_TEST(line->completed.value_or(-2) == -1);
}

BOOST_AUTO_TEST_CASE(a_fingerprint_gives_both_calls) {
  const auto line = read_watchdog_line(
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[20, 10], TensorDtypes=Float, "
      "TensorDeviceTypes=TensorOptions(dtype=float)), but Rank 1 is running collective: "
      "CollectiveFingerPrint(SequenceNumber=4, OpType=BROADCAST, TensorShape=[20], "
      "TensorDtypes=Float).Collectives "
      "differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST");
  BOOST_REQUIRE(line);
  BOOST_TEST(int(line->kind) == int(WatchdogKind::kMismatch));
  BOOST_TEST(line->ranks == (std::vector<uint32_t>{0, 1}), boost::test_tools::per_element());
  BOOST_REQUIRE(line->calls.size() == 2u);
  BOOST_TEST((line->calls[0].op == "ALLREDUCE" && line->calls[1].op == "BROADCAST"));
  BOOST_TEST((line->calls[0].sizes == "20, 10 Float" && line->calls[1].sizes == "20 Float"));
}

// The library's rule has the wording, and its holes the values.
BOOST_AUTO_TEST_CASE(the_ranks_of_a_desync_report_are_those_that_its_rule_names) {
  const auto set = rules::Ruleset::shipped();
  BOOST_REQUIRE(set);
  const uint32_t index = set->find("pytorch.watchdog.desync").value();
  const rules::Rule& rule = set->rules()[index];
  rules::Scanner scanner(set->matcher());
  using Ranks = std::vector<uint32_t>;
  const struct {
    const char* text;
    WatchdogKind kind;
    Ranks ranks;
    int64_t seq;
    const char* op;
  } cases[] = {
      {"\t - [0, 2] joined but didn't finish collective #7 (count from 1)",
       WatchdogKind::kJoined,
       {0, 2},
       7,
       ""},
      {"\t - [1] finished collective #7, but didn't join collective #8 (count from 1)",
       WatchdogKind::kBehind,
       {1},
       8,
       ""},
      {"\t - To our best knowledge, ranks [5, 6] are the lagging ranks that caused this timeout. They never "
       "joined any collectives",
       WatchdogKind::kBehind,
       {5, 6},
       -1,
       ""},
      {"[3] Timeout at collective: ALLREDUCE, #120", WatchdogKind::kJoined, {3}, 120, "ALLREDUCE"},
  };
  for (const auto& c : cases) {
    const std::string_view text = c.text;
    scanner.begin(text);
    NamedRanks named;
    for (const rules::RuleMatch& m : scanner.match(0, text.size(), text, rules::TextSource::kLog))
      for (size_t i = 0; m.rule == index && i < m.holes.size(); ++i)
        for (const auto& [name, to] : {std::pair("joined", &named.joined),
                                       {"absent", &named.absent},
                                       {"seq", &named.seq},
                                       {"op", &named.op}})
          if (rule.holes[i] == name) *to = m.holes[i];
    const auto line = read_named_ranks(text, named);
    BOOST_REQUIRE_MESSAGE(line, text);
    BOOST_TEST(int(line->kind) == int(c.kind), text);
    BOOST_TEST(line->ranks == c.ranks, boost::test_tools::per_element());
    BOOST_TEST(line->call.seq == c.seq);
    BOOST_TEST(line->call.op == c.op);
    BOOST_TEST(!read_watchdog_line(text), text);
  }
}

BOOST_AUTO_TEST_CASE(a_list_that_is_cut_gives_no_part_of_a_number) {
  const auto line = read_named_ranks("", {"", "11, 12, 1…", "", ""});
  BOOST_REQUIRE(line);
  BOOST_TEST(line->ranks == (std::vector<uint32_t>{11, 12}), boost::test_tools::per_element());
  BOOST_TEST(!read_named_ranks("", {"", "1…", "", ""}));
  BOOST_TEST(!read_named_ranks("[0] ok", {}));
}

BOOST_AUTO_TEST_CASE(other_lines_are_none) {
  for (const char* text :
       {"", "iteration 12 loss 2.1", "#0  0x00007f in poll () from /lib/libc.so.6",
        "ProcessGroupNCCL::WorkNCCL::isCompleted() + 0x50", "[rank", "[PG ", "[Rank 3] ok"})
    BOOST_TEST(!read_watchdog_line(text), text);
}

BOOST_AUTO_TEST_CASE(an_operation_has_one_name) {
  for (const char* name : {"ALLREDUCE", "all_reduce", "nccl:all_reduce", "xccl:ALL_REDUCE"})
    BOOST_TEST(plain_op(name) == "allreduce");
}

BOOST_AUTO_TEST_SUITE_END()
