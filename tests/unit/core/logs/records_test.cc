#include "core/logs/records.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "core/logs/job_log.h"
#include "core/logs/line_parser.h"
#include "word_scanner.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

// A job of one source, and the batch that was added last.
struct Fed {
  JobLog log{JobFile{}};
  LogBatch batch;
  LineParser parser{ParseOptions{}, WordScanner::make()};
  uint64_t index = 0;

  Fed() { log.open_source({}); }
  Fed(std::string_view text) : Fed() {
    add(text, true);
    log.settle();
  }
  void add(std::string_view text, bool last) {
    parser.parse({0, index++, 0, text, text.size(), last}, {}, batch);
    log.add(batch);
  }
  uint32_t form(size_t line) const { return log.last_forms().at(batch.lines.at(line).form); }
  uint64_t count(std::string_view form) const {
    for (const JobLog::FormStats& f : log.forms())
      if (f.text == form) return f.count;
    return 0;
  }
};

constexpr std::string_view kTraceback =
    "before\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 12, in <module>\n"
    "    main()\n"
    "ValueError: bad shape\n"
    "after\n";

}  // namespace

BOOST_AUTO_TEST_CASE(a_traceback_is_one_event_at_its_first_line_with_its_exceptions_form) {
  const Fed f(kTraceback);
  BOOST_TEST(f.log.events() == 3u);
  BOOST_TEST(f.form(1) == f.form(4));
  BOOST_TEST(f.count("ValueError: bad shape") == 1u);
  BOOST_TEST(!f.batch.lines[1].continued);
  for (int i : {2, 3, 4}) BOOST_TEST(f.batch.lines[i].continued);
  BOOST_TEST(!f.batch.lines[5].continued);
  BOOST_REQUIRE(f.log.rule_lines().size() == 1u);
  BOOST_TEST(f.log.rule_lines()[0].place.line == 2u);
  BOOST_TEST(f.log.rule_lines()[0].text == "ValueError: bad shape");
  BOOST_TEST(f.log.rule_lines()[0].holes == std::vector<std::string>{"Val"});
  BOOST_TEST(f.log.rule_lines()[0].exception);
}

BOOST_AUTO_TEST_CASE(interleaved_ranks_keep_their_own_records) {
  const Fed f(
      "[rank0]: Traceback (most recent call last):\n"
      "[rank1]: Traceback (most recent call last):\n"
      "[rank0]:   File \"a.py\", line 1, in f\n"
      "[rank1]:   File \"b.py\", line 2, in g\n"
      "[rank1]: KeyError: 'x'\n"
      "[rank0]: ValueError: y\n");
  BOOST_TEST(f.log.writers().size() == 2u);
  BOOST_TEST(f.log.events() == 2u);
  BOOST_TEST(f.form(0) == f.form(5));
  BOOST_TEST(f.form(1) == f.form(4));
}

BOOST_AUTO_TEST_CASE(a_chained_traceback_belongs_to_the_record_before) {
  const Fed f(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "KeyError: 'x'\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 3, in f\n"
      "RuntimeError: y\n"
      "next\n");
  for (int i : {4, 6, 7, 8}) BOOST_TEST(f.batch.lines[i].continued);
  BOOST_TEST(!f.batch.lines[9].continued);
  // Rules may know both exceptions; both are placed at the record's first line.
  BOOST_REQUIRE(f.log.rule_lines().size() == 2u);
  for (const RuleLine& line : f.log.rule_lines()) BOOST_TEST(line.place.line == 1u);
}

BOOST_AUTO_TEST_CASE(a_launchers_list_of_failures_is_one_event_with_all_its_text) {
  const Fed f(
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2026-11-21_02:12:09\n"
      "  host      : node-3\n"
      "  exitcode  : -9 (pid: 77)\n"
      "------------------------------------------------------------\n"
      "done\n");
  BOOST_TEST(f.log.events() == 2u);
  BOOST_REQUIRE(f.log.rule_lines().size() == 1u);
  BOOST_TEST(f.log.rule_lines()[0].place.line == 1u);
  BOOST_TEST(f.log.rule_lines()[0].text == "exitcode  : -9 (pid: 77)");
}

BOOST_AUTO_TEST_CASE(a_line_of_a_launchers_list_belongs_to_the_rank_of_its_entry) {
  const std::string list =
      "Failures: [1]: rank      : 3 (local_rank: 1) exitcode  : 17 (pid: 77) "
      "[2]: rank      : 12 (local_rank: 4) exitcode  : 1 (pid: 80)";
  BOOST_TEST((listed_rank(list, "exitcode  : 17 (pid: 77)") == std::optional<uint32_t>(3)));
  BOOST_TEST((listed_rank(list, "exitcode  : 1 (pid: 80)") == std::optional<uint32_t>(12)));
  BOOST_TEST(!listed_rank(list, "exitcode  : 2 (pid: 81)"));
  BOOST_TEST(!listed_rank("Failures: exitcode  : 17 (pid: 77)", "exitcode  : 17 (pid: 77)"));
}

BOOST_AUTO_TEST_CASE(program_text_within_a_traceback_is_no_hit_of_a_rule) {
  const Fed f(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "    raise Exit(\"KeyError: no\")\n"
      "Exit: done\n"
      "ValueError: a line of its own\n");
  BOOST_REQUIRE(f.log.rule_lines().size() == 1u);
  BOOST_TEST(f.log.rule_lines()[0].place.line == 5u);
}

BOOST_AUTO_TEST_CASE(a_general_rule_gives_way_to_others_on_the_same_event_and_to_none_elsewhere) {
  const Fed f("ValueError: x\nValueError: y\n");
  BOOST_REQUIRE(f.log.rule_lines().size() == 2u);
  for (const RuleLine& line : f.log.rule_lines()) BOOST_TEST(line.rule == 0u);
}

BOOST_AUTO_TEST_CASE(a_record_that_its_source_leaves_open_is_an_event_of_its_own_form) {
  Fed f;
  f.add("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n", false);
  BOOST_TEST(f.log.events() == 0u);
  f.add("", true);
  BOOST_TEST(f.log.events() == 1u);
  BOOST_TEST(f.count("Traceback (most recent call last):") == 1u);
}

BOOST_AUTO_TEST_CASE(events_do_not_depend_on_where_the_text_is_cut) {
  std::string text(kTraceback);
  text +=
      "Exception ignored in: <function f at 0x7f>\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "TypeError: none\n"
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  host      : node-3\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 1, in f\n"
      "[rank1]: another one between\n"
      "KeyError: 'x'\n"
      "The above exception was the direct cause of the following exception:\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 3, in f\n"
      "RuntimeError: y\n"
      "Traceback (most recent call last):\n"
      "cut off by this\n";
  const auto all = [](const JobLog& log) {
    std::string out = fmt::format("{} events\n", log.events());
    for (const JobLog::FormStats& f : log.forms()) out += fmt::format("{} {}\n", f.count, f.text);
    for (const RuleLine& l : log.rule_lines())
      out += fmt::format("{} {} {}\n", l.place.line, l.writer_event, l.text);
    for (const TemplateStats& t : log.templates())
      for (const LogSample& s : t.samples) out += fmt::format("{} {}\n", s.place.line, s.text);
    return out;
  };
  const std::string whole = all(Fed(text).log);
  for (size_t cut = text.find('\n'); cut != std::string::npos; cut = text.find('\n', cut + 1)) {
    Fed f;
    f.add(std::string_view(text).substr(0, cut + 1), false);
    f.add(std::string_view(text).substr(cut + 1), true);
    f.log.settle();
    BOOST_TEST(all(f.log) == whole);
  }
}
