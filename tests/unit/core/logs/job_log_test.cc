#include "core/logs/job_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "core/logs/line_parser.h"
#include "word_scanner.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

struct Feeder {
  JobLog log{JobFile{}};
  LogBatch batch;
  LineParser parser;

  explicit Feeder(const ParseOptions& options = {}) : parser(options, WordScanner::make()) {
    log.open_source({});
  }
  void add(std::string_view text, bool last = false) {
    parser.parse({0, 0, 0, text, text.size(), last}, {}, batch);
    log.add(batch);
  }
};

// A word for a number, of letters only: no mask changes it.
std::string word(uint64_t n) {
  std::string out = "w";
  for (; n > 0; n /= 26) out += static_cast<char>('a' + n % 26);
  return out + "q";
}

}  // namespace

BOOST_AUTO_TEST_CASE(forms_beyond_the_bound_count_as_one_and_are_reported) {
  Feeder f;
  constexpr size_t kMore = 1000;
  std::string text;
  for (size_t i = 0; i < limits::kForms + kMore; ++i) {
    text += fmt::format("{} {} {}\n", word(i), word(i * 7), word(i * 31));
    if (text.size() > limits::kChunkBytes) f.add(text), text.clear();
  }
  f.add(text, true);
  f.log.settle();
  BOOST_TEST(f.log.forms().size() == limits::kForms + 1);
  BOOST_TEST(f.log.drops()[Drop::kForms] == kMore);
  BOOST_TEST(f.log.events() == limits::kForms + kMore);
  BOOST_TEST(f.log.drops().sentences().size() >= 1u);
}

BOOST_AUTO_TEST_CASE(writers_beyond_the_bound_share_a_bucket_that_belongs_to_no_host) {
  Feeder f;
  std::string text;
  for (size_t i = 0; i < limits::kWriters + 10; ++i) {
    text += fmt::format("[rank{}]: hello\n", i);
    if (text.size() > limits::kChunkBytes) f.add(text), text.clear();
  }
  f.add(text, true);
  f.log.settle();
  BOOST_TEST(f.log.writers().size() == limits::kWriters + 1);
  BOOST_TEST(f.log.writers()[limits::kWriters - 1].lines == 1u);
  BOOST_TEST(f.log.writers().back().lines == 10u);
  BOOST_TEST(!f.log.writers().back().host.has_value());
  BOOST_TEST(!f.log.writers().back().rank.has_value());
  BOOST_TEST(f.log.drops()[Drop::kWriters] == 10u);
}

BOOST_AUTO_TEST_CASE(hits_of_rules_beyond_the_bound_are_counted_and_reported) {
  Feeder f;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "ValueError: bad shape\n";
  f.add(text, true);
  f.log.settle();
  BOOST_TEST(f.log.rule_lines().size() > 10'000u);
  BOOST_TEST(f.log.rule_lines().size() + f.log.drops()[Drop::kRules] == 100'000u);
  BOOST_TEST(f.log.events() == 100'000u);
  BOOST_TEST(f.log.rule_lines_added() == 100'000u);
  BOOST_TEST(f.log.dropped_of_rule(0) == f.log.drops()[Drop::kRules]);
}

BOOST_AUTO_TEST_CASE(the_kept_lines_do_not_depend_on_the_batches) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += i % 12'345 == 99 ? "exitcode 3\n" : "ValueError: bad shape\n";
  const auto retained = [&](size_t size) {
    Feeder f;
    for (size_t at = 0; at < text.size();) {
      const size_t end = at + size < text.size() ? text.find('\n', at + size) + 1 : text.size();
      f.add(std::string_view(text).substr(at, end - at), end == text.size());
      at = end;
      if (size == 10'000) f.log.settle();
    }
    f.log.settle();
    std::vector<uint64_t> lines;
    for (const RuleLine& line : f.log.rule_lines()) lines.push_back(line.place.line);
    return lines;
  };
  const std::vector<uint64_t> whole = retained(text.size());
  BOOST_TEST(whole.size() < 60'000u);
  for (const size_t size : {10'000, 65'536, 1 << 20}) BOOST_TEST((retained(size) == whole));
}

// The last exceptions decide whether a process ended with one.
BOOST_AUTO_TEST_CASE(the_last_of_many_uncaught_exceptions_stays) {
  Feeder f;
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += fmt::format(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n"
        "{}\n",
        i == 10'000 ? "MyRareException" : "MyException");
  f.add(text, true);
  f.log.settle();
  const auto& lines = f.log.uncaught();
  BOOST_REQUIRE(!lines.empty());
  BOOST_TEST(lines.size() < 20'000u);
  BOOST_TEST(lines.front().text_line == 4u);
  BOOST_TEST(lines.back().text_line == 80'000u);
  BOOST_TEST(std::ranges::count(lines, "MyRareException", &RuleLine::text) == 1);
  BOOST_TEST(f.log.dropped_of_rule(JobLog::kNoRule) + lines.size() == 20'000u);
}

BOOST_AUTO_TEST_CASE(a_small_job_drops_nothing) {
  Feeder f;
  f.add("step=1 ok\nstep=2 ok\nValueError: x\n", true);
  f.log.settle();
  BOOST_TEST(f.log.drops().sentences().empty());
}

BOOST_AUTO_TEST_CASE(lines_outside_of_the_wanted_times_have_no_effect) {
  ParseOptions options;
  options.since_ns = 1'795'226'400LL * kNsPerSecond;  // 2026-11-21 02:00
  for (const bool cut : {false, true}) {  // whether the last line's time comes from the batch before
    Feeder f(options);
    const std::string early = "2026-11-21 01:00:00 node-1: early\n", behind = "node-1: behind it\n";
    const std::string late = "2026-11-21 03:00:00 node-2: late\n";
    f.add(cut ? early : early + behind + late);
    f.add(cut ? behind + late : "", true);
    f.log.settle();
    BOOST_TEST(f.log.lines() == 1u);
    BOOST_TEST(f.log.writers().size() == 1u);
    BOOST_TEST(f.log.forms().size() == 1u);
    BOOST_TEST(f.log.first_ns() == f.log.last_ns());
    BOOST_TEST(f.log.first_ns() > options.since_ns);
  }
}

BOOST_AUTO_TEST_CASE(lines_that_are_too_long_are_counted_by_source) {
  Feeder f;
  f.add("short\n" + std::string(limits::kLineBytes + 1, 'x') + "\n", true);
  BOOST_TEST(f.log.cut_lines_of(0) == 1u);
}
