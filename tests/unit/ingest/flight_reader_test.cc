#include "ingest/flight_reader.h"

#include <boost/test/unit_test.hpp>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(flight_reader)

namespace {

const std::string kEntry =
    R"({"record_id":3,"pg_id":5,"process_group":["35","TENSOR"],"collective_seq_id":8,"p2p_seq_id":0,)"
    R"("profiling_name":"nccl:all_reduce","time_created_ns":1758610505592849034,"input_sizes":[[4,5]],)"
    R"("input_dtypes":["Float"],"output_sizes":[[4,5]],"output_dtypes":["Float"],"state":"scheduled",)"
    R"("time_discovered_started_ns":0,"retired":false,"is_p2p":false,)"
    R"("frames":[{"name":"all_reduce","filename":"/a/c10d.py","line":26},{"name":"main","filename":"t.py","line":3}]})";
const std::string kDump =
    R"({"version":"2.9","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2]"},)"
    R"("35":{"name":"35","desc":"TENSOR","ranks":"[0, 1]"}},)"
    R"("pg_status":{"0":{"last_enqueued_collective":"4","last_started_collective":"-1",)"
    R"("last_completed_collective":"4"},"5":{"last_enqueued_collective":"8","last_completed_collective":"7"}},)"
    R"("entries":[)" +
    kEntry + "]}";

}  // namespace

BOOST_AUTO_TEST_CASE(the_number_in_the_name_is_the_rank) {
  const std::vector<std::pair<std::string, std::optional<uint32_t>>> cases = {
      {"runs/2/_dump_7", 7},           {"nccl_trace_rank_131", 131},
      {"nccl_trace_rank_12.json", 12}, {"x/rank3_dump.pickle.zst", 3},
      {"node-4/flight_5", 5},          {"rank_9_20260101.pkl", 9},
      {"comm_lib_trace_rank_4", 4},    {"tmp/hccl_trace_rank_5.json", 5},
      {"nccl_trace_rank_gpu-7_3", 3},  {"nccl_trace_rank_10-0-0-5_13.pickle", 13},
      {"dump", std::nullopt},          {"_dump_99999999999", std::nullopt}};
  for (const auto& [name, rank] : cases) BOOST_TEST((rank_in_name(name) == rank), name);
}

BOOST_AUTO_TEST_CASE(a_name_may_have_the_host_before_the_rank) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"runs/nccl_trace_rank_gpu-7_3", "gpu-7"},
      {"nccl_trace_rank_10-0-0-5_13.json", "10-0-0-5"},
      {"comm_lib_trace_rank_a_b_0", "a_b"},
      {"nccl_trace_rank_3", ""},
      {"nccl_trace_rank_gpu_", ""},
      {"node-4/_dump_3", ""}};
  for (const auto& [name, host] : cases) BOOST_TEST(host_in_name(name) == host, name);
  const auto read = parse_flight(kDump, "nccl_trace_rank_gpu-7_3");
  BOOST_REQUIRE(read);
  BOOST_TEST((read->dump.rank == 3u && read->dump.host == "gpu-7"));
}

BOOST_AUTO_TEST_CASE(a_dump_without_entries_is_a_dump) {
  const auto read =
      parse_flight(R"({"version":"2.10","pg_config":{"0":{"name":"0","ranks":"[0, 1]"}}})", "_dump_1");
  BOOST_REQUIRE(read);
  BOOST_TEST((!read->problem && read->dump.ops.empty() && read->dump.groups.size() == 1u));
}

BOOST_AUTO_TEST_CASE(a_dump_becomes_a_plain_value) {
  const auto read = parse_flight(kDump, "runs/nccl_trace_rank_1.json");
  BOOST_REQUIRE(read);
  BOOST_TEST(!read->problem);
  const FlightDump& dump = read->dump;
  BOOST_TEST(dump.rank == 1u);
  BOOST_TEST(dump.version == "2.9");
  BOOST_REQUIRE(dump.groups.size() == 2u);
  BOOST_TEST(dump.groups[0].description == "default_pg");
  BOOST_TEST((dump.groups[0].ranks == std::vector<uint32_t>{0, 1, 2}));
  // Its number "5" comes from the entry, "0" from the order.
  BOOST_TEST((dump.groups[1].enqueued == 8 && dump.groups[1].completed == 7));
  BOOST_TEST((dump.groups[0].enqueued == 4 && dump.groups[0].completed == 4));
  BOOST_REQUIRE(dump.ops.size() == 1u);
  const FlightOp& op = dump.ops[0];
  BOOST_TEST(dump.words[op.name] == "all_reduce");
  BOOST_TEST(dump.words[op.in_sizes] == "[[4, 5]]");
  BOOST_TEST((op.seq == 8 && !op.done && !op.p2p && op.group == 1));
  BOOST_REQUIRE(dump.stacks[op.stack].size() == 2u);
  BOOST_TEST(dump.words[dump.stacks[op.stack][0]] == "c10d.py:all_reduce:26");
}

BOOST_AUTO_TEST_CASE(a_cut_dump_gives_its_whole_entries) {
  std::string text = kDump.substr(0, kDump.size() - 2) + "," + kEntry;
  const auto read = parse_flight(text.substr(0, text.size() - kEntry.size() / 2), "_dump_3");
  BOOST_REQUIRE(read);
  BOOST_TEST(read->dump.ops.size() == 1u);
  BOOST_REQUIRE(read->problem);
  BOOST_TEST(read->problem->what == "is cut off or damaged");
}

BOOST_AUTO_TEST_CASE(what_is_no_dump_is_refused_with_its_name) {
  for (const auto& [path, text] : std::vector<std::pair<std::string, std::string>>{{"_dump_3", "{\"a\": 1}"},
                                                                                   {"_dump_3", "[1, 2]"},
                                                                                   {"_dump_3", ""},
                                                                                   {"_dump_3",
                                                                                    "\x80\x02"
                                                                                    "cos\nsystem\n."},
                                                                                   {"dump", kDump}}) {
    const auto read = parse_flight(text, path);
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().text.starts_with(path + ": "), read.error().text);
  }
}

BOOST_AUTO_TEST_CASE(compressed_dumps_are_read) {
  TempFolder folder;
  SourceFile file;
  file.path = folder.write("nccl_trace_rank_4.zst", zstd(kDump));
  file.compression = Compression::kZstd;
  const auto read = read_flight(file);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->dump.rank == 4u);
  BOOST_TEST(read->dump.ops.size() == 1u);
  file.path = folder.write("nccl_trace_rank_5.zst", zstd(kDump).substr(0, 60));
  BOOST_TEST(!read_flight(file));
}

BOOST_AUTO_TEST_SUITE_END()
