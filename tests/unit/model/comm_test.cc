#include "model/comm.h"

#include <boost/test/unit_test.hpp>
#include <functional>

#include "base/bytes.h"
#include "base/limits.h"

using namespace culprit;

BOOST_AUTO_TEST_SUITE(comm)

BOOST_AUTO_TEST_CASE(a_header_reads_back_as_it_was_written) {
  const std::string bytes = comm_header_bytes({"node-17", "llama-70b-0412"});
  BOOST_REQUIRE_EQUAL(bytes.size(), kCommHeaderBytes);
  const auto read = parse_comm_header(bytes);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->host == "node-17");
  BOOST_TEST(read->job == "llama-70b-0412");
}

BOOST_AUTO_TEST_CASE(names_that_fill_their_field_end_within_it) {
  const std::string bytes = comm_header_bytes({std::string(200, 'h'), std::string(200, 'j')});
  BOOST_REQUIRE_EQUAL(bytes.size(), kCommHeaderBytes);
  const auto read = parse_comm_header(bytes);
  BOOST_REQUIRE(read);
  BOOST_TEST(read->host == std::string(63, 'h'));
  BOOST_TEST(read->job == std::string(47, 'j'));
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_refused_with_the_reason) {
  std::string version = comm_header_bytes({"h", "j"}), size = version;
  version[8] = 2;
  size[12] = 48;
  const std::pair<std::string, std::string_view> table[] = {{"", "does not begin"},
                                                            {"CULPCOM", "does not begin"},
                                                            {std::string(kCommMagic), "cut off"},
                                                            {version, "version 2"},
                                                            {size, "48 bytes"},
                                                            {version.substr(0, 127), "cut off"}};
  for (const auto& [bytes, reason] : table) {
    const auto read = parse_comm_header(bytes);
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().text.find(reason) != std::string::npos, read.error().text);
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_cannot_be_is_distinguished) {
  CommRecord sound;
  sound.start_ns = 1'000;
  sound.end_ns = 2'000;
  sound.op = CommOp::kSend;
  sound.peer = 3;
  BOOST_TEST(comm_record_fault(sound) == "");
  const std::function<void(CommRecord&)> faults[] = {
      [](CommRecord& r) { r.op = static_cast<CommOp>(12); },
      [](CommRecord& r) { r.group = static_cast<CommGroup>(8); },
      [](CommRecord& r) { r.rank = limits::kCommRanks; },
      [](CommRecord& r) { r.comm_size = limits::kCommRanks + 1; },
      [](CommRecord& r) { r.peer = kCommUnknown; },
      [](CommRecord& r) { r.end_ns = 999; },
      [](CommRecord& r) { r.start_ns = ~uint64_t{0}; },
      [](CommRecord& r) {
        r.start_ns = uint64_t{limits::kCommTimeMax};
        r.end_ns = r.start_ns + 1;
      },
      [](CommRecord& r) { r.end_ns = r.start_ns + uint64_t{limits::kCommSpanMax} + 1; }};
  for (const auto& spoil : faults) {
    CommRecord record = sound;
    spoil(record);
    BOOST_TEST(comm_record_fault(record) != "");
  }
  sound.end_ns = 0;
  BOOST_TEST(comm_record_fault(sound) == "", "an unfinished operation is sound");
}

BOOST_AUTO_TEST_SUITE_END()
