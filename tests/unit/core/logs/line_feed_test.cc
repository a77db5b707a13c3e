#include "core/logs/line_feed.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "core/logs/line_parser.h"

using namespace culprit;
using namespace culprit::logs;
using namespace std::string_literals;

namespace {

constexpr std::string_view kError = "RuntimeError: CUDA error: uncorrectable ECC error";

// The messages that are parsed of the bytes, fed in parts of this size.
std::vector<std::string> messages(std::string_view bytes, size_t part) {
  std::vector<std::string> out;
  LineFeed feed;
  LineParser parser({});
  LogBatch batch;
  uint64_t covered = 0;
  const auto take = [&](const TextChunk& chunk) {
    covered += chunk.range_bytes;
    parser.parse(chunk, {}, batch);
    for (const LineRecord& line : batch.lines) out.emplace_back(batch.message(line));
  };
  for (size_t at = 0; at < bytes.size(); at += part) feed.feed(bytes.substr(at, part), take);
  feed.end(take);
  if (!bytes.starts_with("\xff\xfe")) BOOST_TEST(covered == bytes.size());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_line_is_read_behind_a_hole_of_nuls) {
  const std::string error(kError);
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {std::string(60'000, '\0') + error + "\nnext\n", {error, "next"}},
      {std::string(1 << 20, '\0') + error + "\nnext\n", {error, "next"}},
      {"begin\n" + std::string(70'000, '\0') + error + "\n", {"begin", error}},
      {error + std::string(4096, '\0') + "boots again\nnext\n", {error + " boots again", "next"}},
      {error + std::string(4096, '\0'), {error}},
      {std::string(99'000, '\0'), {}},
      {"x" + std::string(200'000, '\0') + error + "\n", {"x " + error}},
      {"a NUL \0 within\n"s, {"a NUL \0 within"s}}};
  for (const auto& [bytes, expected] : cases)
    for (const size_t part : {size_t{1} << 22, size_t{4096}, size_t{777}, size_t{15}})
      BOOST_TEST(messages(bytes, part) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_end_of_a_line_that_is_too_long_is_read) {
  const std::string dots(limits::kLineBytes, '.'), more(3 * limits::kLineBytes, '#');
  const std::string last = "last " + std::string(kError);
  for (const size_t part : {size_t{1} << 22, size_t{65536}, size_t{4096}, size_t{333}}) {
    const auto lines =
        messages("first\n" + dots + std::string(kError) + "\n" + more + last + "\nnext\n", part);
    BOOST_REQUIRE_EQUAL(lines.size(), 4u);
    for (const std::string& line : {lines[1], lines[2]}) {
      BOOST_TEST(line.ends_with(kError));
      BOOST_TEST(line.size() <= limits::kLineBytes + 16);
    }
    BOOST_TEST(lines[1].starts_with("..."));
    BOOST_TEST(lines[3] == "next");
  }
}

BOOST_AUTO_TEST_CASE(an_error_behind_hours_of_a_progress_bar_is_a_line_of_its_own) {
  std::string bytes;
  for (int step = 0; bytes.size() < 300'000; ++step)
    bytes += "\r 16%|#4   | " + std::to_string(step) + "/250000";
  for (const size_t part : {size_t{1} << 22, size_t{4096}, size_t{50}})
    BOOST_TEST(messages(bytes + "\r" + std::string(kError) + "\n", part).at(0) == kError);
}

BOOST_AUTO_TEST_CASE(lines_in_utf_16_are_read_as_text) {
  std::string bytes = "\xff\xfe";
  for (const char c : "step=1 loss=2.5\r\n" + std::string(kError) + "\r\n") bytes += c, bytes += '\0';
  for (const size_t part : {size_t{1} << 22, size_t{64}, size_t{2}, size_t{7}}) {
    const auto lines = messages(bytes, part);
    BOOST_REQUIRE_EQUAL(lines.size(), 2u);
    BOOST_TEST(lines[0].starts_with("step=1 loss=2.5"));
    BOOST_TEST(lines[1].starts_with(kError));
  }
}

// What a container runtime writes of a program's lines: parts of 16 KiB, of two streams.
namespace {

const std::string kOut = "2026-11-21T02:12:09.123456789Z stdout ", kErr = "2026-11-21T02:12:09.2Z stderr ";

struct Runtime {
  std::string bytes;
  std::vector<std::string> messages;
};

}  // namespace

BOOST_AUTO_TEST_CASE(parts_of_a_runtimes_line_are_one_line) {
  const Runtime cases[] = {
      {kOut + "F whole\n" + kOut + "P Runtime\n" + kOut + "P Error: \n" + kOut + "F CUDA error\n" + kOut +
           "F next\n",
       {"whole", "RuntimeError: CUDA error", "next"}},
      {kOut + "P RuntimeError: \n" + kErr + "F between\n" + kErr + "P other \n" + kOut + "F CUDA error\n" +
           kErr + "F stream\n",
       {"RuntimeError: CUDA error", "between", "other stream"}},
      {kOut + "P no last part", {"no last part"}},
      {kOut + "P begins\n" + kOut + "P ends\n", {"beginsends"}},
      {kOut + "P a\n" + kOut + "F \n" + kOut + "P b\n" + kOut + "F\n" + kOut + "F c\n", {"a", "b", "c"}},
      {"2026-11-21 stdout P no runtime's\n" + kOut + "F line\n",
       {"2026-11-21 stdout P no runtime's", "line"}},
  };
  for (const auto& [bytes, expected] : cases)
    for (const size_t part : {size_t{1} << 22, size_t{64}, size_t{7}, size_t{1}}) {
      std::vector<std::string> found = messages(bytes, part);
      std::erase(found, "");  // the other parts' lines keep their numbers
      BOOST_TEST(found == expected, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_progress_bar_in_parts_is_read_at_once) {
  LineFeed feed;
  std::string seen;
  const auto take = [&](const TextChunk& chunk) { seen += chunk.bytes; };
  for (const std::string& line : {kOut + "P \r 1/250 \r 2/250 \n", kOut + "P \r 3/250\n"}) {
    feed.feed(line, take);
    BOOST_TEST(seen.ends_with(line));
  }
  feed.feed(kOut + "P text\n", take);
  BOOST_TEST(feed.waiting() == (kOut + "P text\n").size());
}

BOOST_AUTO_TEST_CASE(a_runtimes_line_of_any_length_has_a_bound) {
  std::string bytes = kOut + "F first\n";
  for (int i = 0; i < 64; ++i) bytes += kOut + "P " + std::string(16 << 10, '.') + "\n";
  bytes += kOut + "F last " + std::string(kError) + "\n" + kOut + "F next\n";
  LineFeed feed;
  size_t most = 0;
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    feed.feed(std::string_view(bytes).substr(at, 4096), [](const TextChunk&) {});
    most = std::max(most, feed.waiting());
  }
  BOOST_TEST(most <= 2 * limits::kLineBytes + (16 << 10));
  for (const size_t part : {size_t{1} << 22, size_t{4096}}) {
    const auto lines = messages(bytes, part);
    BOOST_TEST(lines.front() == "first");
    BOOST_TEST(lines.back() == "next");
    BOOST_TEST(std::ranges::any_of(lines, [](const std::string& line) { return line.ends_with(kError); }));
    for (const std::string& line : lines) BOOST_TEST(line.size() <= limits::kLineBytes + 16);
  }
}
