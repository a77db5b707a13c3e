// Display of slow steps: the costliest first, the waiting ranks, the curve, the ranks.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/render.h"
#include "cli/step_view.h"
#include "cli/text_steps.h"

namespace culprit::cli {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// 200 steps of 100 ms; rank 3 of node-0 takes 80 ms more in steps 120 to 139.
Report slow(size_t steps = 200, size_t ranks = 8) {
  Report r;
  r.job.ranks = ranks;
  Irregularity x;
  x.first_step = 120, x.last_step = 139, x.slowdown = 1.8, x.cost_ms = 80, x.kind = SlowPart::kGpu;
  Suspect s;
  s.host = "node-0", s.single = true, s.rank = 3, s.device = 3, s.score = 0.9, s.ranks = {3};
  s.why = {"its own work took 80 ms more than that of its peers"};
  x.suspects = {s};
  x.chain = {{12, "all_reduce", 0x3f, 231, 75}, {7, "recv", 0x40, 12, 70}};
  r.irregularities = {x};
  CommSteps& c = r.comm;
  c.ranks = 64;
  for (size_t i = 0; i < steps; ++i) {
    const bool late = i >= 120 && i < 140;
    c.steps.push_back(static_cast<int64_t>(i));
    c.step_ms.push_back(late ? 180 : 100);
    c.without_ms.push_back(100);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    CommSteps::Row row;
    row.rank = rank, row.host = "node-0", row.device = rank;
    for (size_t i = 0; i < steps; ++i) row.excess_ms.push_back(rank == 3 && i >= 120 && i < 140 ? 80 : 1);
    c.rows.push_back(std::move(row));
  }
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(steps)

BOOST_AUTO_TEST_CASE(the_text_says_when_how_much_and_who) {
  const std::string text = render_text(slow(), {});
  for (const char* part : {"Slow steps", "steps 120-139", "1.80x", "+80 ms", "gpu", "rank 3 (node-0, GPU 3)",
                           "rank 12 waited 75 ms in all_reduce 231 of group 3f for rank 7",
                           "└ rank 7 waited 70 ms in recv 12 of group 40 for rank 3", "100 ms to 180 ms",
                           "* rank 3 node-0", "8 of 64 ranks", "█"})
    BOOST_TEST(has(text, part), part << " in\n" << text);
}

BOOST_AUTO_TEST_CASE(the_text_says_once_whom_to_watch) {
  Report r = slow();
  r.irregularities[0].sentence = "rank 3 (node-0, GPU 3) alone, twice in 200 steps: watch it";
  r.irregularities.push_back(r.irregularities[0]);
  const std::string text = render_text(r, {});
  const size_t at = text.find("  " + r.irregularities[0].sentence + "\n");
  BOOST_TEST(at != std::string::npos, text);
  BOOST_TEST(text.find("twice in 200", at + 20 + r.irregularities[0].sentence.size()) == std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(the_marks_stand_under_the_slow_steps) {
  const Report r = slow();
  const std::vector<TextRow> rows = step_rows(r, 100);
  const auto row_of = [&](std::string_view name) {
    for (const TextRow& row : rows)
      if (row.text.find(name) == 2) return row.text;
    return std::string();
  };
  const std::string curve = row_of("100 ms to 180 ms"), marks = row_of("slow steps");
  // 74 columns of 200 steps: 120 to 139 are the columns 44 to 51.
  const size_t first = marks.find('^'), last = marks.rfind('^');
  BOOST_TEST(first == 26u + 44);
  BOOST_TEST(last == 26u + 51);
  const size_t high = curve.find("█");
  BOOST_TEST(columns_of(curve.substr(0, high)) == first);
}

BOOST_AUTO_TEST_CASE(a_section_is_no_longer_than_a_screen_and_no_wider_than_asked) {
  Report r = slow(5000, 64);
  Irregularity x = r.irregularities[0];
  r.irregularities.clear();
  for (int64_t i = 0; i < 50; ++i) {
    x.first_step = 100 * i, x.last_step = 100 * i + 3, x.cost_ms = static_cast<double>(i);
    r.irregularities.push_back(x);
  }
  for (int i = 0; i < 30; ++i) r.irregularities.back().chain.push_back(x.chain[0]);
  for (const size_t width : {40u, 80u, 100u, 160u}) {
    const std::vector<TextRow> rows = step_rows(r, width);
    BOOST_TEST(rows.size() <= 40u);
    for (const TextRow& row : rows)
      if (row.text.find("░") != 0 && row.text.find("rank") == std::string::npos && width >= 80)
        BOOST_TEST(columns_of(row.text) <= width, row.text);
  }
  // The costliest steps are shown.
  BOOST_TEST(has(render_text(r, {}), "steps 4900-4903"));
  BOOST_TEST(has(render_text(r, {}), "45 spells"));
}

BOOST_AUTO_TEST_CASE(bins_keep_the_slowest_step_of_each) {
  Report r = slow(1000);
  r.comm.step_ms[517] = 900;
  const std::vector<StepBin> bins = bin_steps(r, 50);
  BOOST_REQUIRE(bins.size() == 50u);
  BOOST_TEST(bins[25].step_ms == 900);
  BOOST_TEST(bins[25].without_ms == 100);
  BOOST_TEST(steps_of(r.comm, bins[25]) == "500-519");
  BOOST_TEST(bins.back().end == 1000u);
  BOOST_TEST((bins[6].slow && !bins[5].slow));
}

BOOST_AUTO_TEST_CASE(suspects_have_a_row_whatever_the_others_excess) {
  Report r = slow(20, 60);
  for (CommSteps::Row& row : r.comm.rows)
    if (row.rank != 3) row.excess_ms.assign(20, 500);
  const std::vector<StepBin> bins = bin_steps(r, 20);
  const std::vector<HeatRow> rows = heat_rows(r, bins, 12);
  BOOST_REQUIRE(rows.size() == 12u);
  BOOST_TEST(std::count_if(rows.begin(), rows.end(), [](const HeatRow& x) { return x.suspect; }) == 1);
  BOOST_TEST(std::is_sorted(rows.begin(), rows.end(),
                            [](const HeatRow& a, const HeatRow& b) { return a.row->rank < b.row->rank; }));
}

BOOST_AUTO_TEST_CASE(odd_values_do_no_harm) {
  Report r = slow(30, 3);
  r.comm.step_ms.resize(10);
  r.comm.without_ms.clear();
  r.comm.rows[0].excess_ms.resize(4);
  r.comm.rows[1].excess_ms.assign(30, std::numeric_limits<float>::quiet_NaN());
  r.comm.step_ms[0] = std::numeric_limits<double>::infinity();
  r.comm.rows[2].host = "\x1b[2J<script>";
  r.irregularities[0].slowdown = std::numeric_limits<double>::quiet_NaN();
  const std::string text = render_text(r, {});
  BOOST_TEST(!has(text, "\x1b"));
  BOOST_TEST(to_utf8(text) == text);
  BOOST_TEST(step_rows({}, 100).empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace culprit::cli
