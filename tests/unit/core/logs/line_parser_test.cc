#include "core/logs/line_parser.h"

#include <boost/test/unit_test.hpp>

#include <map>

#include "word_scanner.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

LogBatch parse(std::string_view text, const SourceInfo& source = {}, const ParseOptions& options = {}) {
  LineParser parser(options);
  LogBatch batch;
  parser.parse({0, 0, 0, text, text.size(), true}, source, batch);
  return batch;
}

constexpr std::string_view kTraceback =
    "before\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 12, in <module>\n"
    "    main()\n"
    "ValueError: bad shape\n"
    "after\n";

}  // namespace

BOOST_AUTO_TEST_CASE(every_line_is_counted_even_the_last_without_newline) {
  BOOST_TEST(parse("a b\n\nc d\nlast").lines.size() == 4u);
  BOOST_TEST(parse("").lines.size() == 0u);
  BOOST_TEST(parse("\n").lines.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_line_without_time_takes_that_of_the_line_before) {
  const LogBatch b = parse("no time yet\n2026-11-21 02:12:09,123 first\nsecond\n");
  BOOST_TEST(b.lines[0].time_ns == kNoTime);
  BOOST_TEST(b.lines[1].time_ns == b.lines[2].time_ns);
  BOOST_TEST(b.lines[1].own_time);
  BOOST_TEST(!b.lines[2].own_time);
}

BOOST_AUTO_TEST_CASE(a_host_within_an_object_is_that_of_its_writer_only_where_no_other_is_known) {
  constexpr std::string_view kLine =
      R"({"level": "error", "hostname": "storage-9", "msg": "connection refused"})";
  SourceInfo source;
  BOOST_TEST(parse(kLine, source).writers.at(0).host == "storage-9");
  source.host = "node-2";
  BOOST_TEST(parse(kLine, source).writers.at(0).host == "node-2");
}

BOOST_AUTO_TEST_CASE(the_message_behind_a_progress_bar_has_the_bars_writer_and_the_bar_still_counts) {
  const LogBatch b =
      parse("[rank3]:  16%|#4   | 40/250 [00:20<00:46,  4.49it/s]Traceback (most recent call last):\n");
  BOOST_TEST(b.message(b.lines.at(0)) == "Traceback (most recent call last):");
  BOOST_TEST(b.writers.at(0).rank == 3u);
  BOOST_REQUIRE(b.numbers.size() == 1u);
  BOOST_TEST(b.numbers[0].progress.iteration == 40);
}

BOOST_AUTO_TEST_CASE(since_and_until_leave_lines_out_and_keep_numbers) {
  ParseOptions options;
  options.since_ns = 1'795'226'400LL * kNsPerSecond;  // 2026-11-21 02:00
  const LogBatch b = parse("2026-11-21 01:00:00 early\n2026-11-21 03:00:00 late\n", {}, options);
  BOOST_TEST(b.lines.size() == 2u);
  BOOST_TEST(b.skipped_lines == 1u);
  BOOST_TEST(b.lines[0].form == kNoForm);
  BOOST_TEST(b.lines[1].form != kNoForm);
}

BOOST_AUTO_TEST_CASE(the_lines_own_host_wins_over_the_path_unless_the_user_gave_a_pattern) {
  SourceInfo source;
  source.host = "from-path-1";
  const auto host = [&](bool path_wins) {
    source.host_wins = path_wins;
    return parse("node-17: hello there\n", source).writers.at(0).host;
  };
  BOOST_TEST(host(false) == "node-17");
  BOOST_TEST(host(true) == "from-path-1");
}

BOOST_AUTO_TEST_CASE(of_a_line_with_carriage_returns_what_a_terminal_would_show_counts) {
  const LogBatch b = parse("\r  0%|   | 0/8\r 12%|1  | 1/8 [00:01<00:07, 1.0s/it]\r\n");
  BOOST_TEST(b.message(b.lines[0]).starts_with("12%"));
}

BOOST_AUTO_TEST_CASE(a_parser_gives_the_same_whatever_it_saw_before) {
  LineParser warm{ParseOptions{}};
  LogBatch first, again;
  const std::string other =
      "[2026-11-21 02:12:09,123] [INFO] [x.py:1:f] iteration 5\nI0415 12:34:56.789 1 f.cc:2] hi\n";
  warm.parse({0, 0, 0, other, other.size(), false}, {}, again);
  warm.parse({0, 1, 0, kTraceback, kTraceback.size(), true}, {}, again);
  first = parse(kTraceback);
  BOOST_REQUIRE(first.lines.size() == again.lines.size());
  for (size_t i = 0; i < first.lines.size(); ++i) BOOST_TEST(first.lines[i].form == again.lines[i].form);
}

BOOST_AUTO_TEST_CASE(a_rule_is_found_in_messages_of_every_block_that_is_scanned) {
  std::string text;
  std::vector<uint32_t> expected;
  for (uint32_t line = 0; line < 5'000; ++line) {
    const bool hit = line % 700 == 0 || line == 4'999;
    text +=
        hit ? "2026-11-21 02:12:09,123 the exitcode is 1\n" : "2026-11-21 02:12:09,123 all is well here\n";
    if (line % 3 == 0) text += "\n";  // blank lines are not scanned
    if (hit) expected.push_back(line + (line + 2) / 3);
  }
  LineParser parser(ParseOptions{}, WordScanner::make());
  LogBatch batch;
  parser.parse({0, 0, 0, text, text.size(), true}, {}, batch);
  std::vector<uint32_t> found;
  for (const LineHit& hit : batch.hits)
    if (hit.rule == 1) found.push_back(hit.line);
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}
