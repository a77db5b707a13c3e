#include "core/logs/retained_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

using namespace culprit;
using namespace culprit::logs;

namespace {

constexpr size_t kBytes = 256 << 10;  // some 700 lines of the usual length
constexpr uint64_t kForm = 7;

struct Seen {
  uint32_t source = 0, writer = 0, rule = 0;
  uint64_t line = 0;
  uint64_t form = kForm;
  size_t text = 60;  // bytes
  TimeNs time_ns = kNoTime;
};

RuleLine line_of(const Seen& seen) {
  RuleLine line;
  line.place = {seen.source, seen.writer, seen.line,
                seen.time_ns == kNoTime ? static_cast<TimeNs>(seen.line) * kNsPerSecond : seen.time_ns};
  line.rule = seen.rule;
  line.text = std::string(seen.text, 'x');
  return line;
}

void add(RetainedLines& retained, const Seen& seen) { retained.add(line_of(seen), seen.form); }

RetainedLines fed(const std::vector<Seen>& lines, size_t trim_every = 0) {
  RetainedLines retained(kBytes);
  size_t n = 0;
  for (const Seen& seen : lines) {
    add(retained, seen);
    if (trim_every > 0 && ++n % trim_every == 0) retained.trim();
  }
  retained.trim();
  return retained;
}

// The kept lines in the order of their places, with their texts.
std::vector<std::string> content(const RetainedLines& retained) {
  std::vector<std::string> out;
  for (const RuleLine& line : retained.lines())
    out.push_back(fmt::format("{}:{:06}:{}:{}:{}", line.place.source, line.place.line, line.place.writer,
                              line.rule, line.text.size()));
  std::ranges::sort(out);
  return out;
}

size_t count(const RetainedLines& retained, const auto& is) {
  return static_cast<size_t>(std::ranges::count_if(retained.lines(), is));
}

bool keeps(const RetainedLines& retained, uint64_t line) {
  return count(retained, [&](const RuleLine& l) { return l.place.line == line; }) > 0;
}

// Lines 1 to n of one rule by one writer.
std::vector<Seen> storm(uint64_t n) {
  std::vector<Seen> out;
  for (uint64_t i = 1; i <= n; ++i) out.push_back({.line = i});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_lines_stay_if_they_fit) {
  const RetainedLines retained = fed(storm(500));
  BOOST_TEST(retained.lines().size() == 500u);
  BOOST_TEST(retained.dropped() == 0u);
}

BOOST_AUTO_TEST_CASE(of_a_storm_the_first_and_the_last_lines_stay_in_order) {
  constexpr uint64_t kLines = 50'000;
  const RetainedLines retained = fed(storm(kLines));
  for (uint64_t i = 0; i < 100; ++i) {
    BOOST_TEST(retained.lines()[i].place.line == i + 1);
    BOOST_TEST(retained.lines()[retained.lines().size() - 1 - i].place.line == kLines - i);
  }
  BOOST_TEST(std::ranges::is_sorted(retained.lines(), {}, [](const RuleLine& l) { return l.place.line; }));
  BOOST_TEST(retained.dropped() + retained.lines().size() == kLines);
  BOOST_TEST(retained.added() == kLines);
}

BOOST_AUTO_TEST_CASE(a_rare_rule_keeps_all_its_lines_in_a_storm_of_others) {
  std::vector<Seen> lines = storm(50'000);
  for (uint32_t i = 0; i < 40; ++i) {
    lines[10'000 + 777 * i].rule = 3;
    lines[20'000 + 7 * i].rule = 4;
  }
  const RetainedLines retained = fed(lines);
  for (const uint32_t rule : {3u, 4u}) {
    BOOST_TEST(count(retained, [&](const RuleLine& l) { return l.rule == rule; }) == 40u);
    BOOST_TEST(retained.dropped_of(rule) == 0u);
  }
  BOOST_TEST(retained.dropped_of(0) == retained.dropped());
}

BOOST_AUTO_TEST_CASE(each_writer_and_each_form_keep_their_first_and_last_line) {
  std::vector<Seen> lines = storm(50'000);
  for (const uint64_t i : {20'000, 21'000, 22'000}) lines[i].writer = 5, lines[i + 100].form = 8;
  const RetainedLines retained = fed(lines);
  for (const uint64_t i : {20'001, 22'001, 20'101, 22'101}) BOOST_TEST(keeps(retained, i));
}

BOOST_AUTO_TEST_CASE(a_quiet_writer_keeps_all_its_lines_in_a_storm_of_another) {
  std::vector<Seen> lines = storm(50'000);
  for (uint64_t i = 0; i < 20; ++i) lines[20'000 + 500 * i].writer = 5;
  const RetainedLines retained = fed(lines);
  BOOST_TEST(count(retained, [](const RuleLine& l) { return l.place.writer == 5; }) == 20u);
}

BOOST_AUTO_TEST_CASE(the_memory_is_bounded_for_long_lines_and_many_writers) {
  std::vector<Seen> lines = storm(20'000);
  for (Seen& seen : lines) seen.text = 1500, seen.writer = static_cast<uint32_t>(seen.line % 300);
  const RetainedLines retained = fed(lines);
  size_t bytes = 0;
  for (const RuleLine& line : retained.lines()) bytes += sizeof(line) + line.text.size();
  BOOST_TEST(bytes < 2 * kBytes);
  // Every writer is there, with a short text.
  std::vector<bool> writers(300);
  for (const RuleLine& line : retained.lines()) writers[line.place.writer] = true;
  BOOST_TEST(std::ranges::count(writers, true) == 300);
}

BOOST_AUTO_TEST_CASE(forms_without_end_do_not_displace_other_rules) {
  std::vector<Seen> lines = storm(50'000);
  for (Seen& seen : lines) seen.form = 100 + seen.line;
  for (uint64_t i = 0; i < 40; ++i) lines[20'000 + 500 * i].rule = 3;
  const RetainedLines retained = fed(lines);
  BOOST_TEST(count(retained, [](const RuleLine& l) { return l.rule == 3; }) == 40u);
  BOOST_TEST(retained.lines().size() < 4000u);
}

BOOST_AUTO_TEST_CASE(what_stays_depends_neither_on_trims_nor_on_the_order_of_sources) {
  std::mt19937 random(5);
  std::vector<std::vector<Seen>> sources(3);
  for (uint32_t s = 0; s < 3; ++s)
    for (uint64_t i = 1; i <= 4000; ++i) {
      const uint32_t r = random();
      sources[s].push_back({.source = s,
                            .writer = s * 4 + r % 4,
                            .rule = r % 97 == 0  ? 2u
                                    : r % 5 == 0 ? 1u
                                                 : 0u,
                            .line = i,
                            .form = r % 9,
                            .text = 20 + r % 900,
                            // Clocks that step back, and equal times.
                            .time_ns = static_cast<TimeNs>(i / 3 + r % 50) * kNsPerSecond});
    }
  std::vector<Seen> in_turn, mixed;
  for (const auto& lines : sources) in_turn.insert(in_turn.end(), lines.begin(), lines.end());
  std::vector<size_t> next(3);
  while (mixed.size() < in_turn.size())
    if (const size_t s = random() % 3; next[s] < sources[s].size()) mixed.push_back(sources[s][next[s]++]);
  const RetainedLines want = fed(in_turn);
  BOOST_TEST(want.dropped() > 0u);
  for (const size_t trim_every : {0, 1, 100}) {
    for (const auto* lines : {&in_turn, &mixed}) {
      if (trim_every == 1 && lines == &mixed) continue;
      const RetainedLines got = fed(*lines, trim_every);
      BOOST_TEST(content(got) == content(want), boost::test_tools::per_element());
      for (const uint32_t rule : {0u, 1u, 2u}) BOOST_TEST(got.dropped_of(rule) == want.dropped_of(rule));
    }
  }
}

BOOST_AUTO_TEST_CASE(lines_that_say_that_they_were_handled_are_no_dropped_faults) {
  RetainedLines retained(kBytes);
  for (uint64_t i = 1; i <= 5000; ++i) {
    RuleLine line = line_of({.line = i});
    line.handled = true;
    retained.add(std::move(line), kForm);
  }
  retained.trim();
  BOOST_TEST(retained.dropped() > 0u);
  BOOST_TEST(retained.dropped_of(0) == 0u);
}

BOOST_AUTO_TEST_CASE(new_lines_are_found_after_older_ones_were_dropped_or_discarded) {
  RetainedLines retained(kBytes);
  for (const Seen& seen : storm(5000)) add(retained, seen);
  retained.discard([](const RuleLine& line) { return line.place.line > 4990; });
  retained.trim();
  const uint64_t before = retained.added();
  BOOST_TEST(retained.since(before).empty());
  add(retained, {.line = 5001});
  BOOST_REQUIRE(retained.since(before).size() == 1u);
  BOOST_TEST(retained.since(before)[0].place.line == 5001u);
  BOOST_TEST(retained.dropped() < 5000u);
}

BOOST_AUTO_TEST_CASE(changed_rules_keep_their_shares_and_counts_under_new_numbers) {
  std::vector<Seen> lines = storm(20'000);
  for (uint64_t i = 0; i < 30; ++i) lines[100 * i].rule = 1, lines[100 * i + 1].rule = 2;
  RetainedLines retained = fed(lines);
  const uint64_t dropped = retained.dropped_of(0);
  retained.renumber({5, JobLog::kNoRule, 0});
  for (uint64_t i = 0; i < 20'000; ++i) add(retained, {.rule = 5, .line = 20'001 + i});
  retained.trim();
  BOOST_TEST(count(retained, [](const RuleLine& l) { return l.rule == 0; }) == 30u);
  BOOST_TEST(count(retained, [](const RuleLine& l) { return l.rule != 0 && l.rule != 5; }) == 0u);
  BOOST_TEST(retained.dropped_of(5) > dropped);
  BOOST_TEST(keeps(retained, 3));
  BOOST_TEST(keeps(retained, 40'000));
}
