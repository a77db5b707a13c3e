// Rows of culprit.align: who computes other bits than its peers.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "core/detect/numerics/align.h"
#include "core/detect/numerics/detector.h"

using namespace culprit;
using namespace culprit::numerics;

namespace {

struct AlignedRow {
  const char* host;
  const char* digest;
  const char* kind = "k";
  bool stable = true;
};
struct AlignedCase {
  const char* name;
  std::vector<AlignedRow> rows;
  std::vector<std::string> wrong;  // hosts
};
std::ostream& operator<<(std::ostream& out, const AlignedCase& one) { return out << one.name; }

const AlignedCase kAlignedCases[] = {
    {"one of three", {{"n1", "a"}, {"n2", "a"}, {"n3", "b"}}, {"n3"}},
    {"one of two", {{"n1", "a"}, {"n2", "b"}}, {}},
    {"all differ", {{"n1", "a"}, {"n2", "b"}, {"n3", "c"}}, {}},
    {"two and two", {{"n1", "a"}, {"n2", "a"}, {"n3", "b"}, {"n4", "b"}}, {}},
    {"classes apart", {{"n1", "a"}, {"n2", "a"}, {"n3", "b", "x"}, {"n4", "c", "x"}}, {}},
    {"no answer has no vote", {{"n1", "a"}, {"n2", "a"}, {"n3", ""}, {"n4", "b"}}, {"n4"}},
    {"one that disagrees with itself", {{"n1", "a", "k", false}, {"n2", "a"}, {"n3", "a"}}, {"n1"}},
    {"no peers", {{"n1", "a", "k", false}}, {}},
    {"steps that are equal nowhere", {{"n1", "a", "k", false}, {"n2", "b", "k", false}, {"n3", "c"}}, {}},
    {"another library on two hosts", {{"n1", "a"}, {"n2", "a"}, {"n3", "a"}, {"n4", "b"}, {"n5", "b"}}, {}},
    {"the last row of a device counts", {{"n1", "b"}, {"n1", "a"}, {"n2", "a"}, {"n3", "a"}}, {}},
};

LoopEvent align_event(const char* host, const std::vector<EventField>& fields) {
  LoopEvent event;
  event.host = host;
  event.name = "align";
  event.fields = fields;
  return event;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alignment)

BOOST_DATA_TEST_CASE(names_devices_that_differ_from_a_majority, boost::unit_test::data::make(kAlignedCases)) {
  Detector detector;
  for (const AlignedRow& row : sample.rows) {
    const std::string digest = *row.digest ? fmt::format("\"{}\"", row.digest) : "null";
    const std::string kind = fmt::format("\"{}\"", row.kind);
    const std::vector<EventField> fields = {
        {"at", "\"cuda:3\""}, {"class", kind}, {"digest", digest}, {"stable", row.stable ? "true" : "false"}};
    detector.add(align_event(row.host, fields));
  }
  std::vector<std::string> wrong;
  for (const Finding& f : detector.findings().findings) {
    wrong.push_back(*f.subjects.at(0).host);
    BOOST_TEST(*f.subjects[0].device == 3u);
  }
  BOOST_TEST(wrong == sample.wrong, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(devices_that_differ_without_a_majority_are_an_open_question) {
  const auto open_of = [](const std::vector<const char*>& digests) {
    Detector detector;
    int host = 0;
    for (const char* digest : digests)
      detector.add(
          align_event(fmt::format("n{}", ++host).c_str(),
                      {{"at", "\"cuda:3\""}, {"class", "\"k\""}, {"digest", digest}, {"stable", "true"}}));
    return detector.findings().open.size();
  };
  BOOST_TEST(open_of({"\"a\"", "\"b\""}) == 1u);
  BOOST_TEST(open_of({"\"a\"", "\"b\"", "\"c\""}) == 1u);
  BOOST_TEST(open_of({"\"a\"", "\"a\""}) == 0u);
  BOOST_TEST(open_of({"\"a\"", "\"a\"", "\"b\""}) == 0u);
  BOOST_TEST(open_of({"\"a\"", "\"a\"", "\"a\"", "\"b\"", "\"b\""}) == 1u);
}

// A host with many devices, or one that makes them up, does not outvote the other hosts.
BOOST_AUTO_TEST_CASE(a_majority_is_one_of_hosts_too) {
  Alignment alignment;
  for (int device = 0; device < 64; ++device)
    alignment.add({"liar", fmt::format("cuda:{}", device), "k", "x", true, kNoTime});
  for (int host = 1; host < 8; ++host)
    for (int device = 0; device < 8; ++device)
      alignment.add({fmt::format("n{}", host), fmt::format("cuda:{}", device), "k", "a", true, kNoTime});
  BOOST_TEST(alignment.findings().empty());
  BOOST_TEST(alignment.open().size() == 1u);
  for (int device = 0; device < 64; ++device)
    alignment.add({"liar", fmt::format("cuda:{}", device), "k", device < 8 ? "x" : "", true, kNoTime});
  BOOST_TEST(alignment.findings().size() == 8u);
}

BOOST_AUTO_TEST_CASE(rows_that_lack_a_part_are_counted) {
  Detector detector;
  detector.add(align_event("n1", {{"at", "7"}, {"class", "\"k\""}}));
  detector.add(align_event("", {{"at", "\"cpu\""}, {"class", "\"k\""}}));
  detector.add(align_event("n1", {{"at", "\"a\\\"b\""}, {"class", "\"k\""}}));
  BOOST_TEST(detector.findings().findings.empty());
  BOOST_TEST(detector.findings().problems.at(0).starts_with("3 rows"));
}

BOOST_AUTO_TEST_SUITE_END()
