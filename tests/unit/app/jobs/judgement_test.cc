#include "app/jobs/judgement.h"

#include <boost/test/unit_test.hpp>

#include "model/headline.h"

using namespace culprit;
using namespace culprit::app;

namespace {

// "b* a c": the order, with a mark at the verdict.
std::string judged(const Judgements& judgements, std::optional<size_t> verdict = 0) {
  const std::vector<RankedDiagnosis> given = {{"a", 0.9}, {"b", 0.6}, {"c", 0.3}};
  const JudgedOrder order = order_of(given, verdict, judgements);
  std::string out;
  for (const size_t i : order.order) out += given[i].id + (order.verdict == i ? "* " : " ");
  out.pop_back();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(judgement)

BOOST_AUTO_TEST_CASE(a_confirmed_diagnosis_leads_and_a_refuted_one_leads_nothing) {
  BOOST_TEST(judged({}) == "a* b c");
  BOOST_TEST(judged({{"a", false}}) == "b* c a");
  BOOST_TEST(judged({{"a", false}, {"b", false}}) == "c a b", "what is left is not conclusive");
  BOOST_TEST(judged({{"c", true}}) == "c* a b");
  BOOST_TEST(judged({{"b", false}}) == "a* c b");
  BOOST_TEST(judged({{"a", false}, {"c", true}}) == "c* b a");
  BOOST_TEST(judged({{"b", false}}, std::nullopt) == "a c b", "a person's no makes no verdict");
}

BOOST_AUTO_TEST_CASE(a_refuted_verdict_takes_its_advice_on_a_restart_and_its_suspects_with_it) {
  Report report;
  Diagnosis& d = report.diagnoses.emplace_back();
  d.id = "a";
  d.title = "GPU lost";
  d.confidence = 0.9;
  d.hosts.emplace_back().host = "node-3";
  d.restart.kind = Restart::kElsewhere;
  d.restart.why = "the GPU is gone";
  report.verdict = 0;
  report.suspects = d.hosts;
  conclude(report);
  BOOST_TEST_REQUIRE(report.restart.has_value());
  judge_report({{"a", false}}, report);
  BOOST_TEST(!report.verdict.has_value());
  BOOST_TEST((!report.restart || report.restart->kind != Restart::kElsewhere));
  BOOST_TEST(report.suspects.empty());
  BOOST_TEST(report.missing.size() == 1u);
  BOOST_TEST(report.diagnoses[0].is_refuted());
}

BOOST_AUTO_TEST_CASE(the_report_is_reordered) {
  Report report;
  for (const char* id : {"a", "b"}) {
    report.diagnoses.emplace_back();
    report.diagnoses.back().id = id;
    report.diagnoses.back().confidence = 0.8;
  }
  report.verdict = 0;
  apply_judgements({{"a", false}}, report);
  BOOST_TEST(report.diagnoses[0].id == "b");
  BOOST_TEST(*report.verdict == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
