#include "ingest/comm_file.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

const testing::TempFolder folder;

std::string trace(size_t records) {
  std::string out = comm_header_bytes({"node-3", "job"});
  for (size_t i = 0; i < records; ++i) {
    CommRecord r;
    r.seq = i;
    r.start_ns = 100 + i;
    out.append(reinterpret_cast<const char*>(&r), sizeof r);
  }
  return out;
}

std::string with(std::string bytes, size_t at, char value) {
  bytes[at] = value;
  return bytes;
}

struct Case {
  std::string name, bytes;
  size_t records = 0;                 // records read
  std::string refused, problem = {};  // parts of the error and of the problem; empty: none
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> cases() {
  const std::string whole = trace(5);
  return {
      {"whole", whole, 5, ""},
      {"no records", trace(0), 0, ""},
      {"the last record is cut", whole.substr(0, whole.size() - 9), 4, "", "cut off after 55 bytes"},
      {"the header is cut", whole.substr(0, 100), 0, "cut off"},
      {"empty", "", 0, "CULPCOMM"},
      {"all zeros", std::string(4096, '\0'), 0, "CULPCOMM"},
      {"another version", with(whole, 8, 2), 0, "version 2"},
      {"another size of records", with(whole, 12, 32), 0, "records of 32 bytes"},
      {"records of zeros", trace(0) + std::string(640, '\0'), 10, ""},
  };
}

}  // namespace

BOOST_DATA_TEST_CASE(what_can_be_read_is_read_and_the_rest_is_reported, boost::unit_test::data::make(cases()),
                     c) {
  for (const Compression how : testing::kAllCompressions) {
    SourceFile file;
    file.path = folder.write("t.comm", testing::compress(c.bytes, how));
    file.compression = how;
    auto reader = CommFile::open(file);
    BOOST_REQUIRE(reader.has_value() == c.refused.empty());
    if (!reader) {
      BOOST_TEST(reader.error().text.starts_with(file.path + ": "));
      BOOST_TEST(reader.error().text.find(c.refused) != std::string::npos);
      continue;
    }
    BOOST_TEST(reader->header().host == "node-3");
    std::vector<CommRecord> block;
    size_t read = 0;
    for (reader->next(block, 2); !block.empty(); reader->next(block, 2)) read += block.size();
    BOOST_TEST(read == c.records);
    BOOST_TEST(reader->problem().has_value() == !c.problem.empty());
    if (reader->problem()) {
      BOOST_TEST(reader->problem()->what.find(c.problem) != std::string::npos);
      BOOST_TEST(reader->problem()->offset.value() == kCommHeaderBytes + c.records * kCommRecordBytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(records_before_damage_in_a_compressed_file_are_read) {
  std::string bytes = testing::gzip(trace(20'000));
  bytes.resize(bytes.size() / 2);
  SourceFile file;
  file.path = folder.write("d.comm.gz", bytes);
  file.compression = Compression::kGzip;
  auto reader = CommFile::open(file);
  BOOST_REQUIRE(reader.has_value());
  std::vector<CommRecord> block;
  uint64_t next = 0;
  for (reader->next(block, 1000); !block.empty(); reader->next(block, 1000))
    for (const CommRecord& r : block) BOOST_REQUIRE(r.seq == next++);
  BOOST_TEST(next > 1000u);
  BOOST_TEST(next < 20'000u);
  BOOST_TEST(reader->problem().has_value());
}
