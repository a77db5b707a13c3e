// Which of two members' knowledge of a job is answered, and what is known of published reports.
#include "app/daemon/recover/published.h"

#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

using store::postgres::ReportRow;

constexpr TimeNs kSecond = kNsPerSecond;

PublishedReport report(const std::string& job, TimeNs as_of, std::optional<uint32_t> uid = {},
                       size_t bytes = 10) {
  ReportRow row;
  row.job = job;
  row.member = "collector-2";
  row.as_of_ns = as_of;
  row.uid = uid;
  row.listed = R"({"id":")" + job + R"(","state":"running","first_ns":1,"last_ns":5,"hosts":2,"lines":7})";
  row.packed = std::string(bytes, 'x');
  auto out = published_report(std::move(row));
  BOOST_REQUIRE(out);
  return std::move(*out);
}

BOOST_AUTO_TEST_SUITE(published)

BOOST_AUTO_TEST_CASE(facts_are_read_of_an_item_of_the_list) {
  const RunFacts facts = report("j", 1).facts;
  BOOST_TEST(facts.first_ns == 1);
  BOOST_TEST(facts.last_ns == 5);
  BOOST_TEST(facts.hosts == 2u);
  BOOST_TEST(facts.lines == 7u);
  BOOST_TEST(facts.running);
  BOOST_TEST(!facts.has_verdict);
  const RunFacts ended = facts_of({{"state", "failed"}, {"verdict", "GPU lost"}, {"first_ns", nullptr}});
  BOOST_TEST(!ended.running);
  BOOST_TEST(ended.has_verdict);
  BOOST_TEST(ended.first_ns == kNoTime);
  for (const char* text : {"", "[]", "{}", "{\"id\":7}"}) {
    ReportRow row;
    row.listed = text;
    BOOST_TEST(!published_report(row).has_value(), text);
  }
}

// Hosts, lines, whether it runs and has a verdict; seconds of its first and last bytes.
RunFacts run(TimeNs first_s, TimeNs last_s, uint64_t hosts, uint64_t lines, const char* words) {
  const std::string_view text = words;
  return {first_s * kSecond,
          last_s * kSecond,
          hosts,
          lines,
          text.find("runs") != text.npos,
          text.find("verdict") != text.npos};
}

const struct {
  const char* what;
  RunFacts own, published;
  Asking asking;
  Coverage expected;
} kCases[] = {
    {"another's job",
     run(10, 95, 4, 2000, "runs, verdict"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {},
     Coverage::kBehind},
    {"an earlier run",
     run(1, 9, 4, 9, "verdict"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kOlder},
    {"an earlier run of a former owner",
     run(1, 9, 4, 9, "verdict"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {},
     Coverage::kOlder},
    {"the first lines",
     run(80, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kBehind},
    {"all hosts, few lines",
     run(80, 95, 4, 5, "runs"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kBehind},
    {"all lines",
     run(10, 95, 4, 1000, "runs"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kAsGood},
    {"its own verdict",
     run(80, 95, 1, 5, "runs, verdict"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kAsGood},
    {"a new run",
     run(91, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "verdict"),
     {true, false},
     Coverage::kAsGood},
    {"a new run that has no owner yet",
     run(91, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "verdict"),
     {},
     Coverage::kAsGood},
    {"what went on",
     run(91, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, false},
     Coverage::kBehind},
    {"ten minutes later",
     run(80, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "runs, verdict"),
     {true, true},
     Coverage::kAsGood},
    {"a verdict of an ended job stays",
     run(80, 95, 1, 5, "runs"),
     run(10, 90, 4, 1000, "verdict"),
     {true, true},
     Coverage::kBehind},
    {"no verdict, all hosts",
     run(80, 95, 4, 5, "runs"),
     run(10, 90, 4, 1000, "runs"),
     {true, false},
     Coverage::kAsGood},
    {"no verdict, some hosts",
     run(80, 95, 3, 5, "runs"),
     run(10, 90, 4, 1000, "runs"),
     {true, false},
     Coverage::kBehind},
};

BOOST_AUTO_TEST_CASE(the_owner_answers_once_it_knows_as_much_as_was_published) {
  for (const auto& c : kCases) BOOST_TEST((coverage(c.own, c.published, c.asking) == c.expected), c.what);
}

BOOST_AUTO_TEST_CASE(a_reader_finds_the_reports_of_the_own_user) {
  PublishedReports reports;
  reports.put(report("a", 1, 7));
  reports.put(report("b", 1));
  BOOST_TEST(reports.find("a") != nullptr);
  BOOST_TEST(reports.find("a", 7) != nullptr);
  BOOST_TEST(reports.find("a", 8) == nullptr);
  BOOST_TEST(reports.find("b", 7) == nullptr);
  BOOST_TEST(reports.find("c") == nullptr);
}

BOOST_AUTO_TEST_CASE(reports_are_replaced_and_removed_and_their_bytes_counted) {
  PublishedReports reports;
  reports.put(report("a", 1));
  const size_t one = reports.bytes();
  reports.put(report("a", 2));
  BOOST_TEST(reports.bytes() == one);
  BOOST_TEST(reports.find("a")->row.as_of_ns == 2);
  reports.put(report("b", 3));
  reports.keep_only({{"b", 3}});
  BOOST_TEST(reports.find("a") == nullptr);
  reports.keep_only({});
  BOOST_TEST(reports.bytes() == 0u);
  BOOST_TEST(reports.dropped() == 0u);
}

BOOST_AUTO_TEST_CASE(the_oldest_go_where_there_are_too_many_bytes) {
  PublishedReports reports;
  const size_t bytes = PublishedReports::kBytesMost / 4;
  for (int i = 0; i < 6; ++i) reports.put(report("j" + std::to_string(i), i == 0 ? 100 : i, {}, bytes));
  BOOST_TEST(reports.bytes() <= PublishedReports::kBytesMost);
  BOOST_TEST(reports.find("j0") != nullptr);
  BOOST_TEST(reports.find("j1") == nullptr);
  BOOST_TEST(reports.find("j5") != nullptr);
  BOOST_TEST(reports.dropped() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
