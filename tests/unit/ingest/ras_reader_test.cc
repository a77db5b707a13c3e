#include "ingest/ras_reader.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/limits.h"
#include "ingest/recognise.h"

using namespace culprit;
using namespace culprit::ingest;

BOOST_AUTO_TEST_SUITE(ras_reader)

namespace {

const std::string kTextHead =
    "NCCL version 2.28.3+cuda13.0 compiled with CUDA 13.0\n"
    "CUDA runtime version 13000, driver version 13000\n"
    "\n"
    "Job summary\n"
    "===========\n"
    "\n"
    "  Nodes  Processes         GPUs  Processes     GPUs\n"
    "(total)   per node  per process    (total)  (total)\n"
    "      4          8            1         32       32\n"
    "\n"
    "Communicators... (0.01s)\n"
    "=============\n"
    "\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n";
const std::string kErrors = "\nErrors\n======\n\n", kWarnings = "Warnings\n========\n\n";

RasAnswer read(const std::string& text) {
  auto answer = parse_ras(text);
  BOOST_REQUIRE_MESSAGE(answer, (answer ? "" : answer.error().text));
  return std::move(*answer);
}

std::string json_rank(unsigned rank, const std::string& counts, const std::string& status = "") {
  return fmt::format(
      R"({{"rank":{},"host":"172.16.64.24{}","pid":{},"cuda_dev":{},"nvml_dev":{},"status":{{{}}},"collective_counts":{{{}}}}})",
      rank, rank / 8, 1000 + rank, rank % 8, rank % 8,
      status.empty()
          ? R"("init_state":0,"async_error":0,"finalize_called":false,"destroy_flag":false,"abort_flag":false)"
          : status,
      counts);
}

std::string json_answer(const std::string& ranks, const std::string& missing = "") {
  return R"({"nccl_version":"2.28.9","cuda_runtime_version":13000,"cuda_driver_version":13000,)"
         R"("timestamp":"2026-11-21 02:12:09","communicators_count":1,"communicators":[{"hash":"0x27a079b828ff1a75",)"
         R"("secondary_hash":"0x1:0x2","size":4,"ranks_count":3,"missing_ranks_count":1,"ranks":[)" +
         ranks + R"(],"missing_ranks":[)" + missing +
         R"(]}],"ras":{"collection_time_sec":0.012,"timeouts_count":1}})";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_text_without_faults_gives_its_communicators_and_version) {
  const RasAnswer a = read(kTextHead +
                           "    0         1         4         8        32        32   RUNNING      OK\n"
                           "    1         8         4       7-8         4        32   RUNNING      OK\n" +
                           kErrors + kWarnings);
  BOOST_TEST(!a.json);
  BOOST_TEST(a.version == "2.28.3+cuda13.0");
  BOOST_TEST(a.comms_seen == 9u);
  BOOST_TEST(a.largest == 32u);
  BOOST_TEST(a.largest_comms == 1u);
  BOOST_TEST(a.comms.empty());
  BOOST_TEST(!a.cut);
  BOOST_TEST(a.dropped == 0u);
}

BOOST_AUTO_TEST_CASE(a_text_tells_the_counts_of_groups_and_of_single_ranks) {
  const RasAnswer a =
      read(kTextHead + "    0         1         4         8        32        32   RUNNING  MISMATCH\n" +
           kErrors + kWarnings +
           "#0-0 (27a079b828ff1a75) MISMATCH\n"
           "  Communicator ranks have different AllReduce operation counts\n"
           "  29 ranks have launched up to operation 6650\n"
           "  2 ranks have not launched any operations\n"
           "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
           "  Rank 1 -- GPU 1 (NVML 5) managed by process 483072 on node 172.16.64.210\n"
           "  Rank 9 has launched up to operation 6649 -- GPU 1 managed by process 7 on node fd00::1\n\n");
  BOOST_REQUIRE(a.comms.size() == 1u);
  const RasComm& comm = a.comms[0];
  BOOST_TEST(comm.hash == 0x27a079b828ff1a75u);
  BOOST_TEST(comm.size == 32u);
  BOOST_REQUIRE(comm.spreads.size() == 1u);
  BOOST_TEST(comm.spreads[0].function == "AllReduce");
  const auto& groups = comm.spreads[0].groups;
  BOOST_REQUIRE(groups.size() == 3u);
  BOOST_TEST(groups[0].value == 6650u);
  BOOST_TEST(groups[0].ranks == 29u);
  BOOST_TEST(groups[0].listed.empty());
  BOOST_TEST(groups[1].value == 0u);
  BOOST_REQUIRE(groups[1].listed.size() == 2u);
  BOOST_TEST(groups[1].listed[1].device == 5u);
  BOOST_TEST(groups[2].value == 6649u);
  BOOST_REQUIRE(groups[2].listed.size() == 1u);
  BOOST_TEST(groups[2].listed[0].rank == 9u);
  BOOST_TEST(a.processes[groups[2].listed[0].process].host == "fd00::1");
  BOOST_TEST(a.processes[groups[1].listed[0].process].pid == 483072u);
  BOOST_TEST(groups[1].listed[0].process == groups[1].listed[1].process);
}

BOOST_AUTO_TEST_CASE(a_text_tells_missing_and_dead_processes_and_missing_ranks) {
  const RasAnswer a = read(
      kTextHead + "    0         1         4       7-8        32        31   RUNNING  INCOMPLETE\n" +
      kErrors +
      "INCOMPLETE\n"
      "  Missing communicator data from 1 job process\n"
      "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
      "DEAD\n"
      "  2 job processes are considered dead (unreachable via the RAS network)\n"
      "  Process 11 on node 172.16.64.214 managing GPUs 0,1 (NVML 4,5)\n"
      "  [could not find information on 1 process]\n\n"
      "#0-0 (cf264af53edbe986) INCOMPLETE\n"
      "  Missing communicator data from 1 rank\n"
      "  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213\n\n" +
      kWarnings + "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n");
  BOOST_TEST(a.exited_processes == 1u);
  BOOST_TEST(a.dead_processes == 2u);
  BOOST_TEST(a.timeouts == 2u);
  BOOST_REQUIRE(a.exited.size() == 2u);
  BOOST_TEST(!a.exited[0].dead);
  BOOST_TEST(a.exited[0].device == 5u);
  BOOST_TEST(a.exited[1].dead);
  BOOST_TEST(a.exited[1].device == 4u);
  BOOST_REQUIRE(a.comms.size() == 1u);
  BOOST_TEST(a.comms[0].missing_ranks == 1u);
  BOOST_TEST(a.comms[0].reporting == 31u);
  BOOST_REQUIRE(a.comms[0].missing.size() == 1u);
  BOOST_TEST(a.comms[0].missing[0].member.rank == 21u);
  BOOST_TEST(a.comms[0].missing[0].unresponsive);
  BOOST_TEST(a.dropped == 0u);
}

BOOST_AUTO_TEST_CASE(wordings_of_older_releases_are_read) {
  const RasAnswer a = read(
      kTextHead + "    0         1         4         8        32        32   RUNNING  INCOMPLETE,MISMATCH\n" +
      kErrors +
      "#0-0 (cf264af53edbe986) INCOMPLETE\n"
      "  Missing communicator data from 2 ranks\n"
      "  The missing ranks: 3, 21\n\n" +
      kWarnings +
      "#0-0 (cf264af53edbe986) MISMATCH\n"
      "  Communicator ranks have different collective operation counts\n"
      "  29 ranks have launched up to operation 10\n"
      "  Rank 4 has launched up to operation 9 -- GPU 4 managed by process 5 on node 10.0.0.1\n\n");
  BOOST_REQUIRE(a.comms.size() == 1u);  // both blocks are of one communicator
  BOOST_REQUIRE(a.comms[0].missing.size() == 2u);
  BOOST_TEST(a.comms[0].missing[1].member.rank == 21u);
  BOOST_REQUIRE(a.comms[0].spreads.size() == 1u);
  BOOST_TEST(a.comms[0].spreads[0].function.empty());
  BOOST_TEST(a.comms[0].spreads[0].groups.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_text_tells_phases_that_differ_and_errors) {
  const RasAnswer a =
      read(kTextHead + "    0         1         1         4         4         4      INIT  ERROR,MISMATCH\n" +
           kErrors +
           "#0-0 (cf264af53edbe986) ERROR\n"
           "  Asynchronous errors on 2 ranks\n"
           "  2 ranks reported Remote process error\n"
           "  Rank 0 -- GPU 0 managed by process 5 on node 10.0.0.1\n\n" +
           kWarnings +
           "#0-0 (cf264af53edbe986) MISMATCH\n"
           "  Communicator ranks have different status\n"
           "  3 ranks have status INIT\n"
           "  Rank 2 has status NOCOMM -- GPU 2 managed by process 6 on node 10.0.0.1\n\n");
  BOOST_REQUIRE(a.comms.size() == 1u);
  BOOST_TEST(a.comms[0].errors == 2u);
  const auto& phases = a.comms[0].phases;
  BOOST_REQUIRE(phases.size() == 2u);
  BOOST_TEST(phases[0].value == static_cast<uint64_t>(RasPhase::kInit));
  BOOST_TEST(phases[1].value == static_cast<uint64_t>(RasPhase::kNoComm));
  BOOST_REQUIRE(phases[1].listed.size() == 1u);
  BOOST_TEST(phases[1].listed[0].rank == 2u);
}

BOOST_AUTO_TEST_CASE(json_gives_each_rank_with_its_counts_and_phase) {
  const std::string counts = R"("Broadcast":1,"Reduce":0,"AllReduce":42)";
  const RasAnswer a = read(json_answer(
      json_rank(0, counts) + "," +
          json_rank(1, R"("Broadcast":1,"Reduce":0,"AllReduce":41)", R"("init_state":7,"async_error":0)") +
          "," + json_rank(9, counts, R"("init_state":0,"async_error":6,"abort_flag":true)"),
      R"({"rank":3,"host":"172.16.64.240","pid":1003,"cuda_dev":3,"nvml_dev":3,)"
      R"("status":{"unresponsive":true,"considered_dead":false}})"));
  BOOST_TEST(a.json);
  BOOST_TEST(a.version == "2.28.9");
  BOOST_TEST(a.timeouts == 1u);
  BOOST_TEST(a.local_ns == (days_from_civil(2026, 11, 21) * 86400 + 2 * 3600 + 12 * 60 + 9) * kNsPerSecond);
  BOOST_REQUIRE(a.comms.size() == 1u);
  const RasComm& comm = a.comms[0];
  BOOST_TEST(comm.hash == 0x27a079b828ff1a75u);
  BOOST_TEST(comm.secondary == "0x1:0x2");
  BOOST_REQUIRE(comm.ranks.size() == 3u);
  BOOST_TEST((a.functions == std::vector<std::string>{"Broadcast", "Reduce", "AllReduce"}));
  BOOST_TEST(comm.ranks[1].counts[2] == 41u);
  BOOST_TEST((comm.ranks[1].phase == RasPhase::kInit));
  BOOST_TEST((comm.ranks[2].phase == RasPhase::kAbort));
  BOOST_TEST(comm.ranks[2].error == 6);
  BOOST_TEST(comm.errors == 1u);
  BOOST_TEST(a.processes[comm.ranks[2].member.process].host == "172.16.64.241");
  BOOST_REQUIRE(comm.missing.size() == 1u);
  BOOST_TEST(comm.missing[0].unresponsive);
  BOOST_TEST(!comm.missing[0].dead);
  BOOST_TEST(a.exited_processes == 1u);
}

BOOST_AUTO_TEST_CASE(numbers_that_are_none_are_dropped_and_counted) {
  const RasAnswer a = read(
      json_answer(json_rank(0, R"("AllReduce":-4)") + R"(,{"rank":-1,"pid":5},"text",{"rank":99999999999})"));
  BOOST_REQUIRE(a.comms.size() == 1u);
  BOOST_TEST(a.comms[0].ranks.size() == 1u);
  BOOST_TEST(a.comms[0].ranks[0].counts[0] == 0u);
  BOOST_TEST(a.dropped == 4u);
}

BOOST_AUTO_TEST_CASE(functions_beyond_the_limit_are_dropped_and_counted) {
  std::string counts;
  for (int i = 0; i < 12; ++i) counts += fmt::format("{}\"F{}\":{}", i > 0 ? "," : "", i, i);
  const RasAnswer a = read(json_answer(json_rank(0, counts)));
  BOOST_TEST(a.functions.size() == kRasFunctions);
  BOOST_TEST(a.dropped == 4u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_cut_or_foreign_gives_a_clear_error) {
  const std::string json = json_answer(json_rank(0, R"("AllReduce":4)"));
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},
      {" \n", "is empty"},
      {json.substr(0, json.size() / 2), "is cut off or damaged"},
      {R"({"communicators": 7})", "has no communicators"},
      {R"({"step": 7})", "has no communicators"},
      {"iteration 5 loss 2.3\n", "is no answer of NCCL's RAS"},
      {kTextHead.substr(0, kTextHead.find("Communicators")), "ends before its table"},
      {std::string(200, '{'), "is cut off or damaged"},
      {R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}", "is nested too deeply"},
  };
  for (const auto& [text, what] : cases) {
    const auto answer = parse_ras(text);
    BOOST_REQUIRE_MESSAGE(!answer, text);
    BOOST_TEST_CONTEXT(text << " gives " << answer.error().text)
    BOOST_TEST((answer.error().text.find(what) != std::string::npos));
  }
}

BOOST_AUTO_TEST_CASE(a_text_that_ends_before_its_warnings_says_so) {
  const std::string row = "    0         1         4         8        32        32   RUNNING  MISMATCH\n";
  BOOST_TEST(read(kTextHead + row + kErrors).cut);
  BOOST_TEST(!read(kTextHead + row + kErrors + kWarnings).cut);
}

BOOST_AUTO_TEST_CASE(lines_that_are_not_understood_are_counted) {
  const std::string row = "    0         1         4         8        32        32   RUNNING  MISMATCH\n";
  const RasAnswer a =
      read(kTextHead + row + kErrors + kWarnings +
           "#0-0 (27a079b828ff1a75) MISMATCH\n"
           "  Rank 3 danced\n"
           "#0-x (zz) MISMATCH\n"
           "  Rank 4 has launched up to operation 9 -- GPU 4 managed by process 5 on node a\n");
  BOOST_TEST(a.comms.size() == 1u);
  BOOST_TEST(a.dropped == 3u);
}

BOOST_AUTO_TEST_CASE(an_answer_holds_no_more_than_its_job_can_have) {
  const auto comm = [](uint32_t size, uint32_t ranks) {
    std::string out = fmt::format(R"({{"hash":"{:#x}","size":{},"ranks":[)", size, size);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      out += fmt::format(R"({}{{"rank":{},"host":"10.0.0.1","pid":{}}})", rank ? "," : "", rank, 100 + rank);
    return out + R"(],"missing_ranks":[]})";
  };
  const auto answer = [](const std::string& comms) { return R"({"communicators":[)" + comms + "]}"; };
  const auto parsed = [](std::string_view text, uint32_t world) {
    return parse_ras([&] { return std::exchange(text, {}); }, ras_bounds(world));
  };
  const uint32_t most = ras_bounds(8).size;
  const std::string honest = comm(8, 8), wide = comm(8, 5000), large = comm(most + 1, most + 1);
  const auto read = parsed(answer(honest + "," + wide + "," + large), 8);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->comms.size() == 2u);  // one larger than the job is none of it
  BOOST_TEST(read->comms[0].ranks.size() == 8u);
  BOOST_TEST(read->comms[1].ranks.size() == 8u);  // no more than its own size
  BOOST_TEST(read->largest == 8u);
  BOOST_TEST(read->processes.size() == 8u);
  BOOST_TEST(read->dropped == 5000u - 8u + most + 1 + 1);
  // Where the job does not say its size, the answer may be that of a large one.
  const auto unknown = parsed(answer(honest + "," + large), 0);
  BOOST_REQUIRE(unknown);
  BOOST_TEST(unknown->largest == most + 1);
  BOOST_TEST(unknown->dropped == 0u);
  // Neither communicators nor bytes without end; and each whole part of a known job fits.
  std::string many;
  while (many.size() < ras_bounds(8).bytes) many += comm(2, 0) + ",";
  const auto refused = parsed(answer(many + honest), 8);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().text == "is larger than what is read");
  BOOST_TEST(ras_bounds(16'384).ranks == limits::kRasRanks);
  BOOST_TEST(ras_bounds(UINT32_MAX).bytes == limits::kRasBytes);
}

BOOST_AUTO_TEST_CASE(a_text_holds_no_more_than_its_job_can_have) {
  const std::string large = "    0         1      4096         8     32768     32768   RUNNING        OK\n";
  const std::string row = "    1         1         1         8         8         8   RUNNING        OK\n";
  const auto answer = parse_ras_text(kTextHead + large + row + kErrors + kWarnings, ras_bounds(8));
  BOOST_REQUIRE(answer);
  BOOST_TEST(answer->largest == 8u);
  BOOST_TEST(answer->comms_seen == 1u);
  BOOST_TEST(answer->dropped == 1u);
}

BOOST_AUTO_TEST_CASE(answers_are_recognised_by_their_content) {
  const auto kind = [](std::string_view head, std::string_view name) {
    return kind_of({head, true, name, "folder"});
  };
  const std::string json = json_answer(json_rank(0, R"("AllReduce":4)"));
  BOOST_TEST((kind(json, "ras.json") == FileKind::kRas));
  BOOST_TEST((kind(json, "x") == FileKind::kRas));
  BOOST_TEST((kind(json.substr(0, 200), "x") == FileKind::kRas));
  BOOST_TEST((kind(kTextHead, "ras.txt") == FileKind::kRas));
  BOOST_TEST((kind("2026-11-21 02:12:09 NCCL version 2.28.3\n" + kTextHead, "a.log") == FileKind::kLog));
  BOOST_TEST((kind("NCCL version 2.28.3+cuda13.0\niteration 4\n", "a.log") == FileKind::kLog));
}

// What NCCL 2.28.9 answered one process: verbose, plain, and as JSON with the reply to SET FORMAT.
BOOST_AUTO_TEST_CASE(real_answers_are_recognised_and_read_whole) {
  for (const char* name : {"real_verbose", "real_status", "real_json"}) {
    BOOST_TEST_CONTEXT(name) {
      std::ifstream file(std::string(CULPRIT_SOURCE_DIR "/tests/fuzz/corpus/ras/") + name);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      BOOST_TEST((kind_of({text, true, "answer", "folder"}) == FileKind::kRas));
      const RasAnswer a = read(text);
      BOOST_TEST(a.version == "2.28.9");
      BOOST_TEST(a.comms_seen == 1u);
      BOOST_TEST(a.largest == 1u);
      BOOST_TEST(a.dropped == 0u);
      BOOST_TEST(!a.cut);
      BOOST_TEST(a.exited.empty());
      if (!a.json) continue;
      BOOST_REQUIRE(a.comms.size() == 1u);
      const RasComm& comm = a.comms[0];
      BOOST_TEST(comm.hash == 0x512f33e22127ffd6u);
      BOOST_REQUIRE(comm.ranks.size() == 1u);
      BOOST_TEST((comm.ranks[0].phase == RasPhase::kRunning));
      BOOST_TEST(comm.errors == 0u);
      BOOST_TEST(a.processes[comm.ranks[0].member.process].host == "192.0.2.2");
      BOOST_TEST(a.processes[comm.ranks[0].member.process].pid == 789u);
      BOOST_TEST(a.functions.size() == 5u);
      BOOST_TEST(a.local_ns != kNoTime);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
