#include <fmt/format.h>

#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "fixtures.h"
#include "ingest/comm_names.h"
#include "ingest/inspector_file.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

const testing::TempFolder inspector_folder;
const std::atomic<bool> inspector_goes_on{false};
constexpr uint64_t kInspectorUs = 1'763'690'000'000'000;

struct Written {
  std::string comm = "0x7f01";
  uint32_t rank = 0, n_ranks = 2, pid = 10;
  std::string host = "n1", perf = R"("coll":"AllReduce","coll_sn":0)";
  std::string kind = "coll";
  uint64_t at_us = 100, took_us = 40;
  bool verbose = true;
};

std::string inspector_line(const Written& w) {
  const uint64_t end = kInspectorUs + w.at_us + w.took_us;
  std::string trace;
  if (w.verbose)
    trace = fmt::format(
        R"(,"event_trace_ts":{{"{0}_start_ts":1,"kernel_events":[{{"channel_id":0,"kernel_start_ts":{1},)"
        R"("kernel_stop_ts":{2}}},{{"channel_id":1,"kernel_start_ts":{3},"kernel_stop_ts":{4}}}]}})",
        w.kind, end - w.took_us + 3, end - 1, end - w.took_us + 2, end);
  return fmt::format(
      R"({{"header":{{"id":"{}","rank":{},"n_ranks":{},"nnodes":1}},"metadata":{{)"
      R"("inspector_output_format_version":"v4.0","dump_timestamp_us":{},"hostname":"{}","pid":{}}},)"
      R"("{}_perf":{{{},"{}_msg_size_bytes":65536,"{}_exec_time_us":{},"{}_timing_source":"kernel_gpu"{}}}}})"
      "\n",
      w.comm, w.rank, w.n_ranks, end, w.host, w.pid, w.kind, w.perf, w.kind, w.kind, w.took_us, w.kind,
      trace);
}

// The files of a job by name, their records and what is said about them.
struct ReadJob {
  std::vector<CommRecord> joins, records;
  std::vector<std::string> hosts;
  std::string problems;
};

ReadJob read_inspector(const std::vector<std::string>& texts, const JobFile& job = {}) {
  InspectorJob found(job);
  std::vector<SourceFile> files(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    files[i].path = inspector_folder.write(fmt::format("{}.log", i), texts[i]);
    files[i].kind = FileKind::kInspector;
    found.add_file(files[i], inspector_goes_on);
  }
  found.settle();
  ReadJob out;
  for (const Problem& problem : found.problems()) out.problems += problem.what + "\n";
  for (const SourceFile& file : files) {
    auto reader = InspectorFile::open(file, found);
    std::vector<CommRecord> block;
    for ((*reader)->next(block, 3); !block.empty(); (*reader)->next(block, 3))
      for (const CommRecord& one : block) {
        (one.op == CommOp::kJoin ? out.joins : out.records).push_back(one);
        if (one.op != CommOp::kJoin) out.hosts.push_back((*reader)->header().host);
      }
  }
  return out;
}

// Without job.toml the files may be a part of the job's.
const std::string kByWorld2 =
    "NCCL Inspector: ranks are numbered by the largest communicator, of 2 ranks: if the job has more, give "
    "hosts and ranks_per_host in job.toml\n";

Written of_rank(uint32_t rank, Written w = {}) {
  w.rank = rank;
  w.pid = 10 + rank;
  return w;
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_operation_of_the_inspector_becomes_a_record) {
  const ReadJob read = read_inspector({inspector_line(of_rank(0)), inspector_line(of_rank(1))});
  BOOST_REQUIRE_EQUAL(read.records.size(), 2u);
  const CommRecord& one = read.records[1];
  BOOST_TEST(one.rank == 1u);
  BOOST_TEST(one.comm_size == 2u);
  BOOST_TEST((one.op == CommOp::kAllReduce));
  BOOST_TEST(one.bytes == 65536u);
  // The end of the last channel, and the duration by the clock of the GPU.
  BOOST_TEST(one.end_ns == (kInspectorUs + 140) * 1000);
  BOOST_TEST(one.start_ns == (kInspectorUs + 100) * 1000);
  BOOST_TEST(int{one.flags} == int{kCommDeviceTimes});
  BOOST_TEST(one.device == 1u);
  BOOST_TEST(read.hosts[0] == "n1");
  BOOST_TEST(read.joins.size() == 2u);
  BOOST_TEST(read.problems == kByWorld2);
}

BOOST_AUTO_TEST_CASE(functions_of_a_communicator_are_streams_of_their_own) {
  Written other;
  other.perf = R"("coll":"AllGather","coll_sn":0)";
  const ReadJob read = read_inspector({inspector_line({}) + inspector_line(other)});
  BOOST_REQUIRE_EQUAL(read.records.size(), 2u);
  BOOST_TEST(read.records[0].comm != read.records[1].comm);
  BOOST_TEST(read.joins.size() == 2u);
}

BOOST_AUTO_TEST_CASE(the_communicator_of_all_processes_numbers_the_ranks) {
  Written world;
  world.n_ranks = 3;
  Written pair;
  pair.comm = "0x99";
  std::string first = inspector_line(of_rank(2, world)), second = inspector_line(of_rank(0, world));
  pair.pid = 12;
  pair.rank = 0;
  first += inspector_line(pair);
  const ReadJob read = read_inspector({first, second});
  BOOST_REQUIRE_EQUAL(read.records.size(), 3u);
  BOOST_TEST(read.records[0].rank == 2u);
  BOOST_TEST(read.records[1].rank == 2u);
  BOOST_TEST(read.records[2].rank == 0u);
  BOOST_TEST(read.problems.find("largest communicator, of 3 ranks") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_job_of_more_ranks_than_the_largest_communicator_numbers_the_ranks) {
  const std::vector<std::string> texts = {inspector_line(of_rank(0)), inspector_line(of_rank(1))};
  JobFile job;
  job.hosts = {"n0", "n1"};
  job.ranks_per_host = 2;
  const ReadJob part = read_inspector(texts, job);
  BOOST_REQUIRE_EQUAL(part.records.size(), 2u);
  BOOST_TEST(part.records[0].rank == 2u);
  BOOST_TEST(part.records[1].rank == 3u);
  job.hosts = {"n1"};
  const ReadJob whole = read_inspector(texts, job);
  BOOST_TEST(whole.records.at(1).rank == 1u);
  BOOST_TEST(whole.problems == "");
}

BOOST_AUTO_TEST_CASE(among_communicators_of_one_size_the_one_with_most_members_numbers_the_ranks) {
  Written part = of_rank(0), whole = of_rank(0);
  part.comm = "0x1";
  whole.rank = 1;
  Written other = of_rank(1);
  other.rank = 0;
  const ReadJob read = read_inspector({inspector_line(part) + inspector_line(whole), inspector_line(other)});
  BOOST_REQUIRE_EQUAL(read.records.size(), 3u);
  BOOST_TEST(read.records[0].rank == 1u);
  BOOST_TEST(read.records[2].rank == 0u);
  BOOST_TEST(read.problems == kByWorld2);
}

BOOST_AUTO_TEST_CASE(without_such_a_communicator_members_hosts_and_pids_order_the_ranks) {
  const auto line = [](const char* comm, uint32_t rank, const char* host, uint32_t pid) {
    Written w;
    w.comm = comm;
    w.rank = rank;
    w.host = host;
    w.pid = pid;
    return inspector_line(w);
  };
  // Within n10, the order of the communicator is against that of the pids.
  const std::vector<std::string> texts = {line("0x1", 0, "n10", 31), line("0x1", 1, "n10", 30),
                                          line("0x2", 0, "n9", 50), line("0x2", 1, "n9", 51)};
  const ReadJob read = read_inspector(texts);
  BOOST_REQUIRE_EQUAL(read.records.size(), 4u);
  BOOST_TEST(read.records[0].rank == 2u);
  BOOST_TEST(read.records[1].rank == 3u);
  BOOST_TEST(read.records[2].rank == 0u);
  BOOST_TEST(read.records[3].rank == 1u);
  BOOST_TEST(read.problems.find("ranks are numbered by") != std::string::npos);
  JobFile job;
  job.hosts = {"n8", "n9", "n10"};
  job.ranks_per_host = 2;
  BOOST_TEST(read_inspector(texts, job).records[1].rank == 5u);
}

BOOST_AUTO_TEST_CASE(an_earlier_run_on_the_same_hosts_is_left_out_and_reported) {
  Written later;
  later.comm = "0x55";
  later.pid = 900;
  later.at_us = 5'000'000;
  const ReadJob read = read_inspector({inspector_line({}), inspector_line(later)});
  BOOST_REQUIRE_EQUAL(read.records.size(), 1u);
  BOOST_TEST(read.records[0].comm == 0x55u + (uint64_t{1} << 60));
  BOOST_TEST(read.problems.find("1 process of an earlier run") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sends_and_receives_count_within_their_pair) {
  const auto line = [](uint32_t rank, const char* op, uint32_t peer, uint32_t sn) {
    Written w = of_rank(rank);
    w.kind = "p2p";
    w.perf = fmt::format(R"("p2p":"{}","p2p_sn":{},"p2p_peer":{})", op, sn, peer);
    return inspector_line(w);
  };
  const std::string sends = line(0, "Send", 1, 1) + line(0, "Recv", 1, 2) + line(0, "Send", 1, 3);
  const std::string receives = line(1, "Recv", 0, 1) + line(1, "Send", 0, 2) + line(1, "Recv", 0, 3);
  const ReadJob read = read_inspector({sends, receives});
  BOOST_REQUIRE_EQUAL(read.records.size(), 6u);
  BOOST_TEST(read.records[2].seq == 1u);
  BOOST_TEST(read.records[2].peer == 1u);
  BOOST_TEST(read.records[1].seq == 0u);
  BOOST_TEST(read.records[5].seq == 1u);
  BOOST_TEST(read.records[5].comm == read.records[2].comm);
}

BOOST_AUTO_TEST_CASE(a_send_without_a_line_leaves_the_others_matched) {
  const auto file = [](uint32_t rank, std::vector<uint32_t> numbers, bool alternates) {
    std::string out;
    for (const uint32_t sn : numbers) {
      Written w = of_rank(rank);
      w.kind = "p2p";
      const bool sends = (alternates && sn % 2 == 0) != (rank == 0);
      w.perf = fmt::format(R"("p2p":"{}","p2p_sn":{},"p2p_peer":{})", sends ? "Send" : "Recv", sn, 1 - rank);
      out += inspector_line(w);
    }
    return out;
  };
  const std::string whole = file(0, {1, 2, 3, 4, 5, 6, 7, 8}, true);
  // The order of the loop tells which one is missing.
  const ReadJob one = read_inspector({whole, file(1, {1, 2, 3, 4, 6, 7, 8}, true)});
  BOOST_REQUIRE_EQUAL(one.records.size(), 15u);
  BOOST_TEST(one.records[13].seq == 3u);  // the receive of number 7
  BOOST_TEST(one.records[14].seq == 3u);
  BOOST_TEST(one.problems == kByWorld2);
  // What the peer has more was in the only hole.
  const ReadJob first = read_inspector({whole, file(1, {5, 6, 7, 8}, true)});
  BOOST_REQUIRE_EQUAL(first.records.size(), 12u);
  BOOST_TEST(first.records[8].seq == 2u);
  BOOST_TEST(first.problems == kByWorld2);
  // Of several holes it is unknown.
  const ReadJob several = read_inspector({file(0, {1, 2, 3, 4, 5, 6}, false), file(1, {2, 4}, false)});
  BOOST_TEST(several.records.size() == 0u);
  BOOST_TEST(several.problems.find("8 point-to-point operations left out") != std::string::npos,
             several.problems);
  // Lines that came twice count no pair.
  const ReadJob twice = read_inspector({whole, file(1, {1, 1, 2, 3, 4, 5, 6, 7, 8}, true)});
  BOOST_TEST(twice.records.size() == 8u, twice.records.size());
}

BOOST_AUTO_TEST_CASE(processes_that_claim_one_rank_share_no_lost_sends) {
  const auto line = [](uint32_t rank, uint32_t pid, uint32_t sn) {
    Written w;
    w.rank = rank;
    w.pid = pid;
    w.kind = "p2p";
    w.perf =
        fmt::format(R"("p2p":"{}","p2p_sn":{},"p2p_peer":{})", rank == 0 ? "Send" : "Recv", sn, 1 - rank);
    return inspector_line(w);
  };
  std::string text;
  for (uint32_t sn = 1; sn <= 8; ++sn) text += line(0, 10, sn);
  for (uint32_t pid = 11; pid < 14; ++pid) text += line(1, pid, 8);
  const ReadJob read = read_inspector({text});
  BOOST_TEST(read.records.size() == 0u);
  BOOST_TEST(read.problems.find("11 point-to-point operations left out") != std::string::npos, read.problems);
}

BOOST_AUTO_TEST_CASE(pairs_beyond_the_limit_are_left_out_and_reported) {
  const JobFile job;
  InspectorJob found(job);
  InspectorLine line;
  line.n_ranks = limits::kCommRanks;
  line.host = "n1";
  line.op = CommOp::kSend;
  line.start_ns = line.end_ns = kInspectorUs * 1000;
  line.has_times = true;
  for (line.peer = 0; line.peer < limits::kInspectorMembers + 1; ++line.peer) {
    line.sn = line.peer + 1;
    found.add_line(line);
  }
  found.settle();
  std::string problems;
  for (const Problem& problem : found.problems()) problems += problem.what + "\n";
  // The process itself counts too.
  BOOST_TEST(problems.find("2 operations beyond the limits left out") != std::string::npos, problems);
  BOOST_TEST(found.processes()[0].comms.at(0).pairs.size() == limits::kInspectorMembers - 1);
}

BOOST_AUTO_TEST_CASE(operations_without_times_count_only_if_they_were_written_at_once) {
  Written plain;
  plain.verbose = false;
  std::string at_once, late;
  for (uint32_t i = 0; i < 20; ++i) {
    plain.perf = fmt::format(R"("coll":"AllReduce","coll_sn":{})", i);
    plain.at_us = 1000 * i;
    at_once += inspector_line(plain);
    plain.at_us = 100'000 + i;
    late += inspector_line(plain);
  }
  const ReadJob read = read_inspector({at_once});
  BOOST_TEST(read.records.size() == 20u);
  BOOST_TEST(read.problems.find("the time of their writing counts") != std::string::npos);
  const ReadJob none = read_inspector({late});
  BOOST_TEST(none.records.size() == 0u);
  BOOST_TEST(none.problems.find("NCCL_INSPECTOR_DUMP_VERBOSE=1") != std::string::npos);
}

namespace {

struct BadLine {
  std::string name, text, problem;
  size_t records = 1;
};
std::ostream& operator<<(std::ostream& out, const BadLine& c) { return out << c.name; }

std::vector<BadLine> bad_lines() {
  const std::string good = inspector_line({});
  const auto with = [&](std::string from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  return {
      {"cut off", good + good.substr(0, 200), "last line is cut off"},
      {"a hole of zeros", good + std::string(300, '\0') + "\n" + good.substr(90) + good,
       "2 lines could not be read", 2},
      {"too long", good + std::string(200'000, ' ') + "x\n", "1 line longer than"},
      {"rank beyond its communicator", good + with("\"rank\":0", "\"rank\":2"), "1 line could not"},
      {"a communicator of a billion", good + with("\"n_ranks\":2", "\"n_ranks\":1000000000"),
       "1 line could not"},
      {"an unknown function", good + with("AllReduce", "Sing"), "1 line could not"},
      {"times beyond all clocks", good + with("\"dump_timestamp_us\":17", "\"dump_timestamp_us\":99999917"),
       "1 line could not"},
      {"another object", good + "{\"kind\":\"other\"}\n", ""},
      {"a list", good + "[1,2]\n", "1 line could not"},
      {"nothing", good + "\n  \n", ""},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(a_damaged_file_of_the_inspector_gives_its_sound_lines,
                     boost::unit_test::data::make(bad_lines()), c) {
  const ReadJob read = read_inspector({c.text});
  BOOST_TEST(read.records.size() == c.records);
  if (c.problem.empty())
    BOOST_TEST(read.problems == kByWorld2);
  else
    BOOST_TEST(read.problems.find(c.problem) != std::string::npos, read.problems);
}

BOOST_AUTO_TEST_CASE(names_of_operations_are_understood_in_each_spelling) {
  const std::pair<const char*, CommOp> names[] = {{"AllReduce", CommOp::kAllReduce},
                                                  {"allreduce_coalesced", CommOp::kAllReduce},
                                                  {"_allgather_base", CommOp::kAllGather},
                                                  {"reduce_scatter_tensor_coalesced", CommOp::kReduceScatter},
                                                  {"_reduce_scatter_base", CommOp::kReduceScatter},
                                                  {"AlltoAll", CommOp::kAllToAll},
                                                  {"all_to_allv", CommOp::kAllToAll},
                                                  {"Broadcast", CommOp::kBroadcast},
                                                  {"reduce", CommOp::kReduce},
                                                  {"gather", CommOp::kGather},
                                                  {"scatter", CommOp::kScatter},
                                                  {"send", CommOp::kSend},
                                                  {"Recv", CommOp::kRecv},
                                                  {"barrier", CommOp::kBarrier}};
  for (const auto& [name, op] : names) BOOST_TEST((comm_op_named(name) == op), name);
  BOOST_TEST(!comm_op_named("wait"));
  BOOST_TEST((comm_group_named("TENSOR_MODEL_PARALLEL_GROUP") == CommGroup::kTp));
  BOOST_TEST((comm_group_named("EXPERT_DATA_PARALLEL_GROUP") == CommGroup::kEdp));
  BOOST_TEST((comm_group_named("mesh_dp") == CommGroup::kDp));
  BOOST_TEST((comm_group_named("DATA_PARALLEL_GROUP_WITH_CP") == CommGroup::kUnknown));
  BOOST_TEST((comm_group_named("undefined") == CommGroup::kUnknown));
}
