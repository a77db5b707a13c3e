#include "core/logs/job_log.h"

#include <fmt/format.h>

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
  for (int i = 0; i < 1005; ++i) text += "ValueError: bad shape\n";
  f.add(text, true);
  f.log.settle();
  BOOST_TEST(f.log.rule_lines().size() == 1000u);
  BOOST_TEST(f.log.drops()[Drop::kRules] == 5u);
  BOOST_TEST(f.log.events() == 1005u);
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
