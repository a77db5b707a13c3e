// Each wording of a watchdog is read by the library's rules, and a value that is cut off is no value.
#include "core/detect/hang/watchdog_lines.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "library_lines.h"

using namespace culprit;
using namespace culprit::hang;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(watchdog_lines)

namespace {

std::optional<WatchdogLine> read(std::string_view text) { return library_lines().watchdog(text); }

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
     WatchdogKind::kStatus, -1, 9, 9, "", "0"},
    {"Collective WorkNCCL(SeqNum=335, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) raised "
     "the "
     "following async exception: NCCL error: remote process exited or there was a network error",
     WatchdogKind::kWait, 335, -2, -2, "ALLREDUCE", ""},
    {"ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
     WatchdogKind::kHeartbeat, -1, -2, -2, "", ""},
    {"#0 all_reduce from /opt/train/model.py:120", WatchdogKind::kFrame, -1, -2, -2, "", ""},
    {"RuntimeError: [Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 300000 ms", WatchdogKind::kBehind,
     -1, -2, -2, "monitoredBarrier", ""},
    {"[E compiler_depend.ts:421] [Rank 2] Watchdog caught collective operation timeout: "
     "WorkHCCL(SeqNum=78, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing "
     "out.",
     WatchdogKind::kTimeout, 78, -2, -2, "BROADCAST", ""},
    {"Timed out waiting 1800000ms for recv operation to complete", WatchdogKind::kWait, -1, -2, -2, "recv",
     ""},
    {"socketProgress: Connection closed by remote peer ip-10-0-0-9<32926>", WatchdogKind::kClosed, -1, -2, -2,
     "", ""},
    // Cut off within a word or a number.
    {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpTy", WatchdogKind::kTimeout, 4, -2,
     -2, "", ""},
};

}  // namespace

BOOST_DATA_TEST_CASE(each_wording_is_read, data::make(kCases), c) {
  const auto line = read(c.text);
  BOOST_REQUIRE(line);
  BOOST_TEST(int(line->kind) == int(c.kind));
  BOOST_TEST(line->call.seq == c.seq);
  BOOST_TEST(line->enqueued.value_or(-2) == c.enqueued);
  BOOST_TEST(line->completed.value_or(-2) == c.completed);
  BOOST_TEST(line->call.op == c.op);
  BOOST_TEST(line->group.key == c.group);
}

BOOST_AUTO_TEST_CASE(a_number_that_is_cut_off_is_unknown) {
  const auto line = read("WorkNCCL(SeqNum=7219, OpType=BROADCAST, NumelIn=64, NumelOut=240");
  BOOST_REQUIRE(line);
  BOOST_TEST((line->call.in == 64u && !line->call.out));
  BOOST_TEST(!read("WorkNCCL(SeqNum=72"));
}

BOOST_AUTO_TEST_CASE(sizes_that_the_operation_cannot_have_are_unknown) {
  const auto odd = read("WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=64, NumelOut=32)");
  BOOST_REQUIRE(odd);
  BOOST_TEST((!odd->call.in && !odd->call.out));
  const auto gather = read("WorkNCCL(SeqNum=7, OpType=ALLGATHER, NumelIn=64, NumelOut=512)");
  BOOST_REQUIRE(gather);
  BOOST_TEST((gather->call.in == 64u && gather->call.out == 512u));
}

BOOST_AUTO_TEST_CASE(the_global_rank_and_the_rank_in_the_group_are_kept_apart) {
  const auto line = read(
      "[rank11]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:1587] [PG ID 2 PG GUID 5(mesh_dp) Rank 3]  "
      "failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed "
      "work: 6");
  BOOST_REQUIRE(line);
  BOOST_TEST((line->rank == 11u && line->group_rank == 3u));
  BOOST_TEST(line->group.description == "mesh_dp");
}

BOOST_AUTO_TEST_CASE(an_uninitialised_number_is_no_completed_operation) {
  const auto line = read(
      "[PG 0 Rank 1] Timeout at NCCL work: 2, last enqueued NCCL work: 3, last completed NCCL work: "
      "94250130243584.");
  BOOST_REQUIRE(line);
  BOOST_TEST(line->completed.value_or(-2) == -1);
}

BOOST_AUTO_TEST_CASE(a_fingerprint_gives_both_calls) {
  const auto line = read(
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

BOOST_AUTO_TEST_CASE(the_ranks_of_a_desync_report_are_read) {
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
      {"RuntimeError: [Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 300000 ms",
       WatchdogKind::kBehind,
       {3, 5},
       -1,
       "monitoredBarrier"},
  };
  for (const auto& c : cases) {
    const auto line = read(c.text);
    BOOST_REQUIRE_MESSAGE(line, c.text);
    BOOST_TEST(int(line->kind) == int(c.kind), c.text);
    BOOST_TEST(line->ranks == c.ranks, boost::test_tools::per_element());
    BOOST_TEST(line->call.seq == c.seq);
    BOOST_TEST(line->call.op == c.op);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_refers_to_another_waits_for_it) {
  const auto line = read(
      "Rank 3 successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
      "rank 0. Please check rank 0 logs for faulty rank.");
  BOOST_REQUIRE(line);
  BOOST_TEST((line->refers && line->rank == 3u && line->ranks == std::vector<uint32_t>{0}));
}

BOOST_AUTO_TEST_CASE(a_peer_that_closed_its_connection_is_named_without_its_port) {
  const struct {
    const char *text, *peer;
    bool at_exit;
  } cases[] = {
      {"NCCL WARN socketProgress: Connection closed by remote peer ip-10-0-0-9<32926>", "ip-10-0-0-9", false},
      {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
       "[10.0.0.3]:27711",
       "10.0.0.3", true},
  };
  for (const auto& c : cases) {
    const auto line = read(c.text);
    BOOST_REQUIRE_MESSAGE(line, c.text);
    BOOST_TEST(int(line->kind) == int(WatchdogKind::kClosed));
    BOOST_TEST(line->peer == c.peer);
    BOOST_TEST(line->at_exit == c.at_exit);
  }
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_store_has_its_time) {
  for (const char* text :
       {"[c10d] waitForInput: socket SocketImpl(fd=79, addr=[localhost]:41170, remote=[localhost]:29500) "
        "timed "
        "out after 1800000ms",
        "torch.distributed.DistBackendError: [5] is setting up NCCL communicator and retrieving ncclUniqueId "
        "from [0] via c10d key-value store by key '0', but store->get('0') got error: timed out after "
        "1800000ms"}) {
    const auto line = read(text);
    BOOST_REQUIRE_MESSAGE(line, text);
    BOOST_TEST((line->kind == WatchdogKind::kWait && line->call.op == "store"), text);
    BOOST_TEST(line->waited_ns == 1800 * kNsPerSecond, text);
  }
}

BOOST_AUTO_TEST_CASE(a_frame_of_a_library_gives_way_to_one_of_the_program) {
  const auto own = read("#0 all_reduce from /opt/train/model.py:120");
  const auto library =
      read("#1 all_reduce from /opt/lib/python3/site-packages/torch/distributed/c10d.py:2501");
  BOOST_REQUIRE((own && library));
  BOOST_TEST((!own->in_library && own->call.site == "/opt/train/model.py:120 in all_reduce"));
  BOOST_TEST(library->in_library);
}

BOOST_AUTO_TEST_CASE(a_list_that_is_cut_gives_no_part_of_a_number) {
  LineValues values;
  values.add(ObservedHole::kAbsent, "11, 12, 1…");
  const auto line = read_watchdog_line(values);
  BOOST_REQUIRE(line);
  BOOST_TEST(line->ranks == (std::vector<uint32_t>{11, 12}), boost::test_tools::per_element());
  LineValues one;
  one.add(ObservedHole::kAbsent, "1…");
  BOOST_TEST(!read_watchdog_line(one));
  BOOST_TEST(!read_watchdog_line({}));
}

BOOST_AUTO_TEST_CASE(the_first_regex_in_which_the_group_takes_part_gives_a_hole_even_empty) {
  rules::Rule rule;
  rule.reads.resize(2);
  rule.reads[0].regex = "(?P<op>)failed";
  rule.reads[1].regex = "in (?P<op>\\w+)";
  LineReader reader;
  BOOST_TEST(reader.read(rule, "in barrier").text(ObservedHole::kOp) == "barrier");
  BOOST_TEST(!reader.read(rule, "in barrier: failed").has(ObservedHole::kOp));
  rule.holes = {"op"};
  logs::RuleLine line;
  line.text = "in barrier: failed";
  line.holes = {"send"};  // of the wording
  BOOST_TEST(reader.read(rule, line).text(ObservedHole::kOp) == "send");
}

BOOST_AUTO_TEST_CASE(other_lines_are_none) {
  for (const char* text :
       {"", "iteration 12 loss 2.1", "#0  0x00007f in poll () from /lib/libc.so.6",
        "ProcessGroupNCCL::WorkNCCL::isCompleted() + 0x50", "[rank", "[PG ", "[Rank 3] ok"})
    BOOST_TEST(!read(text), text);
}

BOOST_AUTO_TEST_CASE(an_operation_has_one_name) {
  for (const char* name : {"ALLREDUCE", "all_reduce", "nccl:all_reduce", "xccl:ALL_REDUCE"})
    BOOST_TEST(plain_op(name) == "allreduce");
}

BOOST_AUTO_TEST_SUITE_END()
