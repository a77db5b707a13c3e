#include "app/checkpoint/comm_groups.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "../../io/fixtures.h"
#include "model/comm.h"

using namespace culprit;
using namespace culprit::app;
using culprit::io::testing::Folder;

namespace {

struct Entry {
  uint32_t rank;
  uint64_t comm;
  CommGroup group;
};

void write(const Folder& folder, const std::string& host, const std::vector<Entry>& entries) {
  std::ofstream out(folder / (host + ".comm"), std::ios::binary);
  CommHeader header;
  header.host = host;
  out << comm_header_bytes(header);
  for (const Entry& entry : entries) {
    CommRecord record;
    record.start_ns = 1;
    record.end_ns = 2;
    record.comm = entry.comm;
    record.rank = entry.rank;
    record.comm_size = 2;
    record.op = CommOp::kAllReduce;
    record.group = entry.group;
    out.write(reinterpret_cast<const char*>(&record), sizeof(record));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(comm_groups)

BOOST_AUTO_TEST_CASE(hosts_of_one_communicator_are_a_group_and_the_world_is_none) {
  Folder folder;
  // By name z comes last, by rank first.
  write(folder, "z", {{0, 1, CommGroup::kWorld}, {0, 2, CommGroup::kPp}, {0, 9, CommGroup::kTp}});
  write(folder, "a", {{1, 1, CommGroup::kWorld}, {1, 2, CommGroup::kPp}});
  write(folder, "b", {{2, 1, CommGroup::kWorld}, {2, 3, CommGroup::kUnknown}, {2, 4, CommGroup::kUnknown}});
  write(folder, "c", {{3, 3, CommGroup::kUnknown}, {3, 4, CommGroup::kUnknown}});
  const auto found = read_comm_groups(folder.path);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->hosts == (std::vector<std::string>{"z", "a", "b", "c"}),
             boost::test_tools::per_element());
  BOOST_TEST(found->problems.empty());
  BOOST_REQUIRE(found->groups.size() == 2u);
  BOOST_TEST(found->groups[0].kind == "communicator");
  BOOST_TEST(found->groups[0].hosts == (std::vector<uint32_t>{2, 3}), boost::test_tools::per_element());
  BOOST_TEST(found->groups[1].kind == "pp");
  BOOST_TEST(found->groups[1].hosts == (std::vector<uint32_t>{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_communicator_of_all_hosts_without_a_kind_is_the_world) {
  Folder folder;
  write(folder, "a", {{0, 1, CommGroup::kUnknown}});
  write(folder, "b", {{1, 1, CommGroup::kUnknown}});
  const auto found = read_comm_groups(folder.path);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->groups.empty());
}

BOOST_AUTO_TEST_CASE(a_cut_trace_is_said_and_the_rest_counts) {
  Folder folder;
  write(folder, "a", {{0, 1, CommGroup::kPp}});
  write(folder, "b", {{1, 1, CommGroup::kPp}});
  std::ofstream(folder / "b.comm", std::ios::app) << "half a record";
  const auto found = read_comm_groups(folder.path);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->groups.size() == 1u);
  BOOST_TEST(found->problems.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_trace_without_a_whole_record_is_named) {
  Folder folder;
  write(folder, "a", {});
  std::ofstream(folder / "a.comm", std::ios::app) << "half a record";
  const auto found = read_comm_groups(folder.path);
  BOOST_REQUIRE(!found);
  BOOST_TEST(found.error().text.find("a.comm") != std::string::npos, found.error().text);
}

BOOST_AUTO_TEST_CASE(a_folder_without_traces_is_an_error) {
  Folder folder;
  std::ofstream(folder / "log.txt") << "loss 1\n";
  BOOST_TEST(!read_comm_groups(folder.path));
  BOOST_TEST(!read_comm_groups(folder / "none"));
}

BOOST_AUTO_TEST_SUITE_END()
