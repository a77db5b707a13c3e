// Display of a report: the answer first, no hostile text, one self-contained page.
#include "cli/render.h"

#include <boost/test/unit_test.hpp>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/narrative.h"
#include "report_samples.h"

namespace culprit::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }
bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(render)

BOOST_AUTO_TEST_CASE(the_first_line_carries_the_verdict) {
  const std::string line = first_line(render_text(failed(), {}));
  for (const char* part : {"GPU has fallen off the bus", "node-17", "rank 139", "iteration 1120", "95 %"})
    BOOST_TEST(has(line, part), part);
}

BOOST_AUTO_TEST_CASE(a_title_that_names_its_host_does_not_name_it_twice) {
  Report r = failed();
  r.diagnoses[0].title = "node-17 fell silent before its peers";
  BOOST_TEST(count(first_line(render_text(r, {})), "node-17") == 1u);
}

BOOST_AUTO_TEST_CASE(a_verdict_that_accuses_no_host_says_where_its_lines_were_logged) {
  Report r = failed();
  Diagnosis& d = r.diagnoses[0];
  d.hosts.clear();
  r.suspects.clear();
  const auto says = [&](std::string_view words) { return headline(r, {}).find(words) != std::string::npos; };
  BOOST_TEST(says("GPU has fallen off the bus, logged by rank 139 on node-17, at iteration 1120"));
  d.evidence.push_back(d.evidence[0]);
  d.evidence[1].rank = 140;
  BOOST_TEST(says("bus, logged on node-17, at"));
  d.evidence[1].host = "node-16";
  BOOST_TEST(says("bus, at iteration"));
  d.evidence.pop_back();
  r.job.hosts = r.job.ranks = 1;
  BOOST_TEST(says("bus, logged by rank 139, at iteration"));
  d.evidence[0].rank = 0;  // the only one that is known
  BOOST_TEST(says("bus, at iteration"));
}

BOOST_AUTO_TEST_CASE(an_endless_title_leaves_the_rest_of_the_first_line) {
  Report r = failed();
  r.diagnoses[0].title = "KeyError: " + std::string(50'000, 'k') + "\nnext line.";
  RenderOptions options;
  options.width = 160;
  const std::string text = render_text(r, options);
  BOOST_TEST(text.size() < 5000u);
  BOOST_TEST(text.find("node-17 (rank 139)") < 400u);
  BOOST_TEST(!has(text, "\\x0a"));
}

BOOST_AUTO_TEST_CASE(the_text_says_why_where_and_what_to_do) {
  const std::string text = render_text(failed(), {});
  for (const char* part :
       {"no successful job has such a line", "runs/node-17.log:4711", "Isolate node-17", "Replace the GPU.",
        "NVRM: Xid (PCI:<*>): 79", "120,000 lines", "512 ranks", "UTC"})
    BOOST_TEST(has(text, part), part);
}

BOOST_AUTO_TEST_CASE(times_are_shown_in_the_asked_zone_with_its_name) {
  RenderOptions options;
  options.zone = 3600;
  options.zone_name = "Europe/Berlin";
  const std::string text = render_text(failed(), options);
  BOOST_TEST(has(text, format_time(kStart + 500 * kNsPerSecond, 3600) + " Europe/Berlin"));
  BOOST_TEST(!has(text, "UTC"));
}

BOOST_AUTO_TEST_CASE(an_inconclusive_report_says_so_first_and_what_is_missing) {
  Report r = failed();
  r.verdict.reset();
  r.diagnoses.clear();
  r.missing = {"logs of successful jobs"};
  const std::string text = render_text(r, {});
  BOOST_TEST(first_line(text).starts_with("No conclusive cause found"));
  BOOST_TEST(!has(first_line(text), "node-17"), "no diagnosis, no accusation");
  BOOST_TEST(text.find("logs of successful jobs") < text.find("Suspects"));
}

BOOST_AUTO_TEST_CASE(a_healthy_report_is_one_quiet_line) {
  Report r;
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  RenderOptions options;
  options.color = true;
  const std::string text = render_text(r, options);
  BOOST_TEST(text == "Nothing wrong found in 12 lines (400 B) of 1 host\n");
}

BOOST_AUTO_TEST_CASE(what_could_not_be_read_is_said_in_the_first_line) {
  Report r;
  BOOST_TEST(first_line(render_text(r, {})) == "Nothing was read: there was no log, trace, metric or dump");
  r.problems = {{"rank_0.comm", std::nullopt, "it is cut"}};
  BOOST_TEST(first_line(render_text(r, {})) ==
             "Nothing was read: 1 file could not be understood (it is cut)");
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  RenderOptions wide;
  wide.width = 140;
  BOOST_TEST(first_line(render_text(r, wide)) ==
             "No fault found, but not all could be read: whether the job is well is unknown");
}

BOOST_AUTO_TEST_CASE(a_report_without_proof_of_health_does_not_say_that_nothing_is_wrong) {
  Report r;
  r.job.lines = 12, r.job.bytes = 400, r.job.hosts = 1;
  r.missing = {"lines that tell progress"};
  const std::string text = render_text(r, {});
  BOOST_TEST(first_line(text) == "No fault found, but whether the job is well is unknown");
  BOOST_TEST(has(text, "Read\n  12 lines (400 B) of 1 host"));
  BOOST_TEST(has(text, "lines that tell progress"));
}

BOOST_AUTO_TEST_CASE(what_would_tell_more_is_not_reported_again_as_not_read) {
  Report r = failed();
  r.missing = {"records of 3 ranks"};
  r.problems = {{"", std::nullopt, "not there: records of 3 ranks"}};
  BOOST_TEST(has(render_text(r, {}), "records of 3 ranks"));
  BOOST_TEST(!has(render_text(r, {}), "Not read in full"));
}

BOOST_AUTO_TEST_CASE(an_interrupted_reading_is_reported_next_to_what_was_known) {
  for (Report r : {failed(), Report{}}) {
    r.job.lines = 10, r.job.bytes = 100;
    BOOST_TEST(!has(render_text(r, {}), "stopped"));
    r.interrupted = true;
    BOOST_TEST(has(render_text(r, {}), "Reading was stopped after 10 lines"));
  }
}

BOOST_AUTO_TEST_CASE(slow_steps_wrong_numbers_and_a_hang_are_reported_without_a_verdict) {
  Report r;
  r.job.lines = 5;
  Irregularity spell;
  spell.first_step = 300, spell.last_step = 340, spell.slowdown = 1.8, spell.kind = SlowPart::kGpu;
  r.irregularities = {spell};
  r.numerics = {{810, 812, NumericClass::kSdc, {131}, {"grad_norm"}, 0.9, "Roll back."}};
  r.hang = Hang{kStart, {{{"train.py:forward:120"}, {3}, false}}, {suspect("node-3", 0.5)}};
  for (const std::string& page : {render_text(r, {}), render_html(r, {})})
    for (const char* part :
         {"steps 300-340", "step 810: sdc", "Roll back.", "train.py:forward:120", "node-3"})
      BOOST_TEST(has(page, part), part);
}

BOOST_AUTO_TEST_CASE(no_control_character_of_a_log_reaches_the_terminal) {
  for (const bool verdict : {true, false}) {
    Report r = hostile();
    if (!verdict) r.verdict.reset();
    const std::string text = render_text(r, {});
    for (const char c : text) BOOST_TEST((c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)));
    BOOST_TEST(to_utf8(text) == text);
    for (const char* control : {"\xc2\x9b", "\xe2\x80\xae"}) BOOST_TEST(!has(text, control));
    BOOST_TEST(has(text, "evil"));
  }
}

BOOST_AUTO_TEST_CASE(colour_only_when_asked_and_always_reset) {
  RenderOptions options;
  BOOST_TEST(!has(render_text(failed(), options), "\x1b"));
  options.color = true;
  const std::string text = render_text(failed(), options);
  BOOST_TEST(count(text, "\x1b[0m") > 0u);
  BOOST_TEST(count(text, "\x1b[") == 2 * count(text, "\x1b[0m"));
}

BOOST_AUTO_TEST_CASE(lines_keep_within_the_width) {
  for (const size_t width : {40u, 80u, 120u}) {
    RenderOptions options;
    options.width = width;
    Report r = failed(std::string(3000, 'x') + " Xid " + std::string(500, 'y') + " ü日本");
    r.diagnoses[0].evidence[0].file = r.indicating[0].where[0].file = "a.log";
    const std::string text = render_text(r, options);
    for (const std::string_view line : split(text, '\n')) BOOST_TEST(columns_of(line) <= width, line);
  }
}

BOOST_AUTO_TEST_CASE(a_path_is_never_broken) {
  RenderOptions options;
  options.width = 40;
  Report r = failed();
  const std::string path = "runs/" + std::string(80, 'd') + "/stderr.log";
  r.diagnoses[0].evidence[0].file = path;
  BOOST_TEST(has(render_text(r, options), path + ":4711"));
}

BOOST_AUTO_TEST_CASE(a_long_line_is_cut_around_what_tells) {
  const std::string text = std::string(900, '.') + " NVRM: Xid (PCI:0000:9b:00): 79 " + std::string(900, '.');
  BOOST_TEST(has(render_text(failed(text), {}), "NVRM: Xid (PCI:0000:9b:00): 79"));
  BOOST_TEST(shorten_around("abcdefghij", 0, 10) == "abcdefghij");
  BOOST_TEST(shorten_around("abcdefghij", 0, 5) == "abcd…");
  BOOST_TEST(shorten_around("abcdefghij", 9, 5) == "…ghij");
  BOOST_TEST(columns_of(shorten_around("日本日本日本日本", 12, 7)) <= 7u);
}

BOOST_AUTO_TEST_CASE(a_traceback_keeps_its_last_line) {
  std::string text = "Traceback (most recent call last):";
  for (int i = 0; i < 40; ++i) text += "\n  File \"train.py\", line " + std::to_string(i);
  text += "\nRuntimeError: out of memory\n";
  const std::string page = render_text(failed(text), {});
  BOOST_TEST(has(page, "Traceback (most recent call last):\n"));
  BOOST_TEST(has(page, "    RuntimeError: out of memory\n"));
  BOOST_TEST(!has(page, "line 20"));
}

BOOST_AUTO_TEST_CASE(evidence_that_repeats_is_reported_once) {
  Report r = failed();
  for (uint64_t i = 0; i < 9; ++i) {
    r.diagnoses[0].evidence.push_back(r.diagnoses[0].evidence[0]);
    r.diagnoses[0].evidence.back().line = 9000 + i;
  }
  const std::string text = render_text(r, {});
  BOOST_TEST(count(text, "GPU has fallen off the bus.") == 1u);
  BOOST_TEST(has(text, "the same at runs/node-17.log:9000 and 8 more places"));
}

BOOST_AUTO_TEST_CASE(what_is_not_shown_is_counted) {
  Report r = failed();
  r.indicating.assign(30, r.indicating[0]);
  r.suspects.assign(20, r.suspects[0]);
  const std::string text = render_text(r, {});
  BOOST_TEST(has(text, "and 22 more templates"));
  BOOST_TEST(has(text, "and 12 more suspects"));
}

BOOST_AUTO_TEST_CASE(of_many_irregular_iterations_the_worst_are_shown_in_their_order) {
  Report r = failed();
  for (int i = 0; i < 90; ++i) r.iterations.push_back({1000 + i, i % 9 == 0 ? 0.9 : 0.3, {}});
  const std::string text = render_text(r, {});
  BOOST_TEST(has(text, "1081 (0.90)"));
  BOOST_TEST(has(text, "and 74 more iterations"));
}

BOOST_AUTO_TEST_CASE(an_action_without_targets_stands_before_its_remedy) {
  Report r = failed();
  r.diagnoses[0].action = {ActionKind::kFix, {}};
  BOOST_TEST(has(render_text(r, {}), "\n  Fix: Replace the GPU.\n"));
  r.diagnoses[0].remedy.clear();
  BOOST_TEST(has(render_text(r, {}), "\n  Fix\n"));
  r.diagnoses[0].action = {};
  BOOST_TEST(!has(render_text(r, {}), "What to do"));
}

BOOST_AUTO_TEST_CASE(whether_the_job_runs_again_is_one_line) {
  Report r = failed();
  r.diagnoses[0].restart = {Restart::kElsewhere, true, "it fails again", {"node-3"}, {}};
  BOOST_TEST(has(render_text(r, {}), "\n  Run again: elsewhere, without node-3\n"));
  r.diagnoses[0].restart = {};
  BOOST_TEST(!has(render_text(r, {}), "Run again"));
}

BOOST_AUTO_TEST_CASE(numbers_are_reported_as_ranges) {
  const std::vector<std::pair<std::vector<uint32_t>, std::string>> cases{
      {{}, ""},
      {{7}, "7"},
      {{3, 1, 2, 2, 8}, "1-3, 8"},
      {{0, 2, 4, 6, 8, 10, 12, 14}, "0, 2, 4, 6, 8, 10 and 2 more"}};
  for (const auto& [given, reported] : cases) BOOST_TEST(numbers(given) == reported);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
