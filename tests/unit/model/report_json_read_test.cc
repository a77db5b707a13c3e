// The output of to_json is read back completely, and other input is refused with a sentence.
#include "model/report_json_read.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "model/report_json.h"

namespace culprit {
namespace {

Suspect suspect(const std::string& host, double score) {
  Suspect s;
  s.host = host, s.score = score;
  s.ranks = {131}, s.devices = {3}, s.why = {"differs from its peers"};
  return s;
}

Report full() {
  Report r;
  r.job = {"j1", 2, 16, 1000, 20, 1, 7, 5, -7};
  Diagnosis d;
  d.id = "d2";
  d.rule = "nvidia.xid.79";
  d.detector = "spatial";
  d.title = "GPU has fallen off the bus";
  d.category = Category::kHardware, d.component = Component::kGpu, d.symptom = Symptom::kHang;
  d.stage = Stage::kCheckpoint, d.iteration = 1120, d.time_ns = 0, d.confidence = 0.875, d.step_share = 0.125;
  d.hosts = {suspect("node-3", 0.5)};
  d.links = {{"a", "b", 0.5}};
  d.why = {"one reason"};
  d.evidence.push_back({"node-3", "a.log", 120, std::nullopt, "line\n\x01 two", kNoTime, 7, 12'002});
  d.evidence.push_back({std::nullopt, "a.comm", std::nullopt, 4096, "", kNoTime, {}, {}});
  d.confirmed = Confirmation{"alice", 3, 2, "bob", 9, true};
  d.state = VerdictState::kConfirmed;
  d.remedy = "Reset it.";
  d.action = {ActionKind::kIsolate, {"node-3"}};
  d.said_by = SaidBy{{12'002, 12'003}, {"node-4"}};
  Diagnosis other;
  other.id = "d1";
  r.diagnoses = {other, d};
  r.verdict = 1;
  r.job.run = 3;
  r.settled = false;
  r.missing = {"the kernel's log"};
  r.suspects = d.hosts;
  r.indicating.push_back({"a <*> b", 0.75, 2, {"spatial"}, {{"node-3", "a.log", 1}, {}}, "", kNoTime});
  r.iterations = {{7, 0.5, {"node-3"}}};
  Irregularity spell;
  spell.first_step = 3, spell.last_step = 5, spell.kind = SlowPart::kGpu, spell.comm = ~uint64_t{0};
  Suspect one = suspect("node-3", 0.5);
  one.single = true, one.rank = 131, one.device = 3;
  spell.suspects = {one};
  spell.links = d.links;
  spell.chain = {{131, "all_reduce", 7, 8, 412.5}};
  spell.sentence = "rank 131 alone, twice in 24 steps: watch it";
  r.irregularities = {spell};
  r.numerics = {{810, 812, NumericClass::kSdc, {131}, {"grad_norm"}, 0.5, "Roll back."}};
  r.hang = Hang{11, {{{"train.py:forward:120"}, {131}, true}}, {one}};
  r.hang->answer = HangAnswer::kMissing;
  r.hang->sentence = "Rank 3 never joined all_reduce #13";
  r.hang->op = "all_reduce", r.hang->group = "dp2", r.hang->seq = 13;
  r.hang->waiting = {0, 1, 2}, r.hang->waited_for = {3};
  r.hang->hang_state = {{"dp2", "all_reduce", 13, CallPlace::kWaits, "", {0, 1, 2}},
                        {"dp2", "", -1, CallPlace::kLeft, "signal 9", {3}}};
  r.problems = {{"b.zst", 17, "ends early"}, {"", std::nullopt, "clocks differ"}};
  r.cut = {{"suspects", 4}};
  return r;
}

BOOST_AUTO_TEST_CASE(every_field_comes_back) {
  const std::string text = to_json(full());
  const auto back = report_from_json(text);
  BOOST_REQUIRE(back);
  BOOST_CHECK_EQUAL(to_json(*back), text);
  BOOST_CHECK(back->verdict == size_t{1});
}

// `steps` steps of 10 ms and one of 100 ms, of two ranks.
Report with_steps(size_t steps, size_t slow) {
  Report r;
  CommSteps& c = r.comm;
  c.ranks = 16;
  c.rows = {{3, "node-3", 1, {}}, {9, {}, {}, {}}};
  for (size_t step = 0; step < steps; ++step) {
    c.steps.push_back(static_cast<int64_t>(1000 + step));
    c.step_ms.push_back(step == slow ? 100 : 10);
    c.without_ms.push_back(10);
    c.rows[0].excess_ms.push_back(step == slow ? 90 : 0.5f);
    c.rows[1].excess_ms.push_back(std::numeric_limits<float>::quiet_NaN());
  }
  return r;
}

BOOST_AUTO_TEST_CASE(activity_is_a_character_for_each_bin) {
  Report r;
  r.activity = {
      1000, 10, {{"a", {0, 1, 2, 4, 1024, UINT32_MAX}, {0, 0, 0, 0, 1, 0}}, {"b", {1}, {0}}}, {{1005, 7}}};
  r.indicating.resize(2);
  r.indicating[1].first_ns = 1042;
  const std::string text = to_json(r, Charts::kIncluded);
  for (
      const char* part :
      {R"("activity":{"first_ns":1000,"bin_ns":10,"hosts":[{"host":"a","lines":"0135L_","indicating":"000010"},)",
       R"({"host":"b","lines":"1"}],"hosts_all":2,"progress":[[1005,7]],"indicating_ns":[null,1042]})"})
    BOOST_CHECK_NE(text.find(part), std::string::npos);
  BOOST_CHECK_NE(to_json(Report(), Charts::kIncluded).find(R"("activity":null)"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(activity_comes_back_to_the_precision_of_its_characters) {
  Report r;
  std::vector<uint32_t> counts, none;
  for (uint32_t n = 0; n < 3000; ++n) counts.push_back(n);
  for (uint32_t n = 1; n != 0; n *= 2) counts.push_back(n);
  none.resize(counts.size());
  r.activity = {1000, 10, {{"a", counts, counts}, {"b", counts, none}}, {{-5, 7}, {1005, 8}}};
  r.indicating.resize(3);
  r.indicating[1].first_ns = 1042;
  const std::string text = to_json(r, Charts::kIncluded);
  const auto back = report_from_json(text);
  BOOST_REQUIRE(back);
  BOOST_CHECK_EQUAL(to_json(*back, Charts::kIncluded), text);
  const Activity& a = back->activity;
  BOOST_CHECK(a.progress == r.activity.progress && a.first_ns == 1000 && a.bin_ns == 10);
  BOOST_CHECK(a.hosts.at(1).host == "b" && a.hosts[1].indicating == none);
  for (size_t i = 0; i < counts.size(); ++i)
    BOOST_CHECK_SMALL(std::log2((a.hosts[0].lines.at(i) + 1e-9) / (counts[i] + 1e-9)), 0.51);
  BOOST_CHECK(back->indicating.at(1).first_ns == 1042 && back->indicating.at(2).first_ns == kNoTime);
}

BOOST_AUTO_TEST_CASE(charts_come_back_where_they_are_asked_for) {
  Report r = with_steps(3, 1);
  r.curves.steps = {1, 2};
  r.curves.curves = {{"loss", {2.5, std::nan("")}, {INFINITY, -INFINITY}, {0, 1}}};
  r.curves.rows = {{7, "node-0", {0, 1}}};
  r.curves.ranks = 8;
  StepPicture& picture = r.comm.pictures.emplace_back();
  picture.step = 1001, picture.step_ms = 100, picture.unit_ms = 0.0125, picture.ops = {"all_reduce dp"},
  picture.ranks = 16;
  picture.rows = {{5, "node-0", 1, 8, 3, 90.5, 0, 0, {{100, 7240, 12, 0, 9}, {1, 0, 0, 0, -1}}}};
  picture.chain = {{5, "all_reduce", 77, 3, 90.5}};
  r.activity = {1000,
                10,
                {{"a", {0, 1, 2, 4, 1024}, {0, 0, 0, 0, 1}}},
                {{1005, 7}},
                {{PhaseKind::kStart, 1000, 1005}, {PhaseKind::kCheckpoint, 1005, 1040}},
                4711};
  BOOST_CHECK(to_json(r).find("charts") == std::string::npos);
  const std::string text = to_json(r, Charts::kIncluded);
  const auto back = report_from_json(text);
  BOOST_REQUIRE(back);
  BOOST_CHECK_EQUAL(to_json(*back, Charts::kIncluded), text);
  BOOST_CHECK(back->comm.step_ms == r.comm.step_ms && back->comm.rows.at(0).excess_ms[1] == 90);
  BOOST_CHECK(back->curves.curves.at(0).worst == r.curves.curves[0].worst);
  BOOST_CHECK(std::isnan(back->curves.curves[0].median.at(1)));
  BOOST_CHECK(back->curves.curves[0].not_finite == r.curves.curves[0].not_finite);
  BOOST_CHECK(back->comm.pictures.at(0).rows.at(0).parts.at(0).last == 9);
  BOOST_CHECK(back->activity.phases.at(1).kind == PhaseKind::kCheckpoint);
  const std::string none = to_json(Report{}, Charts::kIncluded);
  BOOST_CHECK_EQUAL(to_json(report_from_json(none).value(), Charts::kIncluded), none);
}

BOOST_AUTO_TEST_CASE(a_chart_of_a_long_job_has_bounded_points_and_its_slow_step) {
  const auto back = report_from_json(to_json(with_steps(100'003, 77'777), Charts::kIncluded));
  BOOST_REQUIRE(back);
  const CommSteps& c = back->comm;
  BOOST_CHECK_EQUAL(c.steps.size(), limits::kNumericPoints);
  BOOST_CHECK(std::is_sorted(c.steps.begin(), c.steps.end()));
  const auto slow = std::find(c.steps.begin(), c.steps.end(), 78'777);
  BOOST_REQUIRE(slow != c.steps.end());
  const auto at = static_cast<size_t>(slow - c.steps.begin());
  BOOST_CHECK(c.step_ms[at] == 100 && c.without_ms[at] == 10 && c.rows.at(0).excess_ms[at] == 90);
}

BOOST_AUTO_TEST_CASE(an_empty_report_comes_back) {
  const std::string text = to_json(Report{});
  const auto back = report_from_json(text);
  BOOST_REQUIRE(back);
  BOOST_CHECK_EQUAL(to_json(*back), text);
}

BOOST_AUTO_TEST_CASE(fields_and_words_of_later_versions_are_passed_over) {
  const auto back = report_from_json(
      R"({"schema":"culprit.report/2","new":[1],"diagnoses":[{"id":"d1","category":"cosmic","extra":{}}]})");
  BOOST_REQUIRE(back);
  BOOST_CHECK(back->diagnoses.at(0).category == Category::kUnknown);
}

BOOST_AUTO_TEST_CASE(a_verdict_that_was_cut_from_the_list_stands_in_it_again) {
  const auto back =
      report_from_json(R"({"schema":"culprit.report/1","verdict":{"id":"d9","title":"x"},"diagnoses":[]})");
  BOOST_REQUIRE(back && back->verdict);
  BOOST_CHECK_EQUAL(back->diagnoses.at(*back->verdict).id, "d9");
}

BOOST_AUTO_TEST_CASE(what_is_no_report_is_refused_with_what_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON"},
      {"[]", "schema"},
      {"{}", "schema"},
      {R"({"schema":"other/1"})", "schema"},
      {R"({"schema":"culprit.report/1","diagnoses":{}})", "'diagnoses'"},
      {R"({"schema":"culprit.report/1","diagnoses":[3]})", "'diagnoses'"},
      {R"({"schema":"culprit.report/1","diagnoses":[{"title":3}]})", "'title'"},
      {R"({"schema":"culprit.report/1","suspects":[{"ranks":[-1]}]})", "'ranks'"},
      {R"({"schema":"culprit.report/1","job":{"lines":1.5}})", "'lines'"},
      {R"({"schema":"culprit.report/1","irregularities":[{"steps":[1]}]})", "'steps'"},
      {R"({"schema":"culprit.report/1","missing":"x"})", "'missing'"},
      {R"({"schema":"culprit.report/1","charts":{"comm":{"steps":[1,2],"step_ms":[1]}}})", "'step_ms'"},
      {R"({"schema":"culprit.report/1","charts":{"comm":{"steps":[1],"step_ms":["x"]}}})", "'step_ms'"},
      {R"({"schema":"culprit.report/1","charts":{"numerics":{"steps":[],"curves":[{"median":[1]}]}}})",
       "'median'"},
      {R"({"schema":"culprit.report/1","charts":{"numerics":{"steps":[1],"curves":[{"median":[1],"worst":[1],"not_finite":[1]}]}}})",
       "'not_finite'"},
      {R"({"schema":"culprit.report/1","charts":{"activity":{"hosts":[{"host":"a","lines":"0+"}]}}})",
       "'lines'"},
      {R"({"schema":"culprit.report/1","charts":{"activity":{"progress":[[1]]}}})", "'progress'"},
      {R"({"schema":"culprit.report/1","charts":{"activity":{"indicating_ns":3}}})", "'indicating_ns'"},
      {R"({"schema":"culprit.report/1","indicating":[{}],"charts":{"activity":{"indicating_ns":["x"]}}})",
       "'indicating_ns'"}};
  for (const auto& [text, named] : cases) {
    const auto back = report_from_json(text);
    BOOST_REQUIRE_MESSAGE(!back, text);
    BOOST_CHECK_MESSAGE(back.error().text.find(named) != std::string::npos, back.error().text);
  }
}

}  // namespace
}  // namespace culprit
