// Display of wrong numbers: curves with the step marked, ranks, and the action.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "cli/render.h"
#include "model/report_json.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// 100 steps; rank 3 of node-1 deviates from step 60 on, which is detected at step 64.
Report corrupted() {
  Report r;
  r.job.ranks = 100, r.job.lines = 10'000;
  NumericFault fault;
  fault.step = 60, fault.detected_at = 64, fault.kind = NumericClass::kSdc, fault.ranks = {3};
  fault.metrics = {"param"}, fault.confidence = 0.9, fault.mitigation = "Roll back to step 59.";
  r.numerics = {fault};
  NumericCurves& c = r.curves;
  c.ranks = 100;
  c.curves = {{"loss", {}, {}}, {"grad_norm", {}, {}}, {"lr", {}, {}}};
  for (int64_t step = 0; step < 100; ++step) {
    c.steps.push_back(step);
    c.curves[0].median.push_back(2.5 - 0.01 * static_cast<double>(step));
    c.curves[0].worst.push_back(step == 70 ? std::numeric_limits<double>::infinity() : 2.6);
    if (step == 70 || step >= 90) c.curves[0].not_finite.push_back(static_cast<uint32_t>(step));
    c.curves[1].median.push_back(1);
    c.curves[1].worst.push_back(step < 60 ? 1.1 : 1e6);
    c.curves[2].median.push_back(std::nan(""));
    c.curves[2].worst.push_back(std::nan(""));
  }
  for (const uint32_t rank : {0u, 3u}) {
    NumericCurves::Row row{rank, "node-1", {}};
    for (int step = 0; step < 100; ++step)
      row.odd.push_back(rank == 3 && step >= 60 ? 1 : step < 5 ? std::nanf("") : 0);
    c.rows.push_back(std::move(row));
  }
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(numerics)

BOOST_AUTO_TEST_CASE(the_page_has_the_curves_of_the_report) {
  const Report r = corrupted();
  const std::string html = render_html(r, {});
  BOOST_TEST(has(html, "\"metric\":\"loss\""));
  BOOST_TEST(has(html, "\"not_finite\":["));
  const auto reported = report_from_json(to_json(r, Charts::kIncluded));
  BOOST_TEST_REQUIRE(reported.has_value());
  BOOST_TEST(render_html(*reported, {}) == html);
  const auto without = report_from_json(to_json(r));
  BOOST_TEST_REQUIRE(without.has_value());
  BOOST_TEST(!has(render_html(*without, {}), "\"metric\":\"loss\""));
}

BOOST_AUTO_TEST_CASE(the_text_says_class_step_rank_and_what_to_do) {
  const std::string text = render_text(corrupted(), {});
  for (const char* part :
       {"step 60: sdc, rank 3, seen in param, noticed at step 64", "Roll back to step 59."})
    BOOST_TEST(has(text, part), part << " in\n" << text);
}

BOOST_AUTO_TEST_CASE(traces_without_lines_are_reported_by_their_size) {
  Report r;
  r.job.bytes = 3'000'000, r.job.ranks = 8, r.job.hosts = 1;
  BOOST_TEST(has(render_text(r, {}), "Nothing wrong found in 3.0 MB of traces of 1 host, 8 ranks"),
             render_text(r, {}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
