// How the findings became one answer, in sentences.
#include "core/fuse/trace.h"

#include <boost/test/unit_test.hpp>

namespace culprit::core::fuse {
namespace {

Finding fault(const std::string& title, double confidence, DetectorKind detector = DetectorKind::kComm) {
  Finding f;
  f.detector = detector;
  f.kind = FindingKind::kFault;
  f.title = title;
  f.confidence = confidence;
  return f;
}

std::string last_of(const Trace& trace) {
  const std::vector<PassStep> steps = trace.steps();
  return steps.empty() ? "" : steps.back().what;
}

BOOST_AUTO_TEST_CASE(each_kind_of_change_is_a_sentence) {
  Trace trace;
  std::vector<Finding> findings = {fault("A rank is slow", 0.6)};
  findings[0].subjects.push_back({"node-3", 7, {}, {}, 1});
  trace.note("records", findings);
  BOOST_TEST(last_of(trace) == "\"A rank is slow\" (node-3 rank 7) of comm is a cause, 60 %");

  findings.push_back(fault("The GPU throttles", 0.8, DetectorKind::kPlugin));
  findings[1].plugin = "gpu_health";
  trace.note("plugins", findings);
  BOOST_TEST(last_of(trace) == "\"The GPU throttles\" of plugin gpu_health is a cause, 80 %");

  findings[0].confidence = 0.85;
  findings[0].why.push_back("the GPU throttles at the same time");
  findings[0].found_by = {"comm", "plugin:gpu_health"};
  findings.pop_back();
  trace.note("causes", findings);
  BOOST_TEST(trace.steps().size() == 4u);
  BOOST_TEST(
      trace.steps()[2].what ==
      "\"A rank is slow\" (node-3 rank 7) of comm: 85 % after 60 %: the GPU throttles at the same time");
  BOOST_TEST(
      last_of(trace) ==
      "\"The GPU throttles\" of plugin gpu_health is joined into \"A rank is slow\" (node-3 rank 7) of "
      "comm: the GPU throttles at the same time");
  BOOST_TEST(trace.steps()[3].pass == "causes");

  findings[0].role = FindingRole::kCascade;
  trace.note("slowness behind", findings);
  BOOST_TEST(last_of(trace) ==
             "\"A rank is slow\" (node-3 rank 7) of comm is now a consequence, not a cause");

  trace.note("agents away", {});
  BOOST_TEST(last_of(trace) == "\"A rank is slow\" (node-3 rank 7) of comm is left out");
}

BOOST_AUTO_TEST_CASE(a_pass_that_changes_nothing_and_weights_of_hosts_say_nothing) {
  Trace trace;
  Finding weight = fault("", 0.5);
  weight.kind = FindingKind::kSupport;
  const std::vector<Finding> findings = {fault("A", 0.5), fault("A", 0.5), weight};
  trace.note("lines", findings);
  trace.note("clock", findings);
  BOOST_TEST(trace.steps().size() == 2u, "equal ones are two");
}

BOOST_AUTO_TEST_CASE(what_a_pass_adds_is_listed_from_the_most_certain) {
  Trace trace;
  trace.note("rules", {fault("A", 0.3), fault("B", 0.9), fault("C", 0.6)});
  BOOST_TEST(trace.steps().front().what == "\"B\" of comm is a cause, 90 %");
  BOOST_TEST(last_of(trace) == "\"A\" of comm is a cause, 30 %");
}

BOOST_AUTO_TEST_CASE(where_several_grew_none_is_said_to_have_taken_another_in) {
  Trace trace;
  std::vector<Finding> findings = {fault("A", 0.5), fault("B", 0.5), fault("C", 0.5)};
  trace.note("lines", findings);
  findings.pop_back();
  for (Finding& f : findings) f.evidence.emplace_back();
  trace.note("causes", findings);
  BOOST_TEST(last_of(trace) == "\"C\" of comm is left out");
}

BOOST_AUTO_TEST_CASE(the_number_of_steps_is_bounded) {
  Trace trace;
  std::vector<Finding> findings;
  for (int i = 0; i < 2000; ++i) findings.push_back(fault("fault " + std::to_string(i), 0.5));
  trace.note("lines", findings);
  BOOST_TEST(trace.steps().size() == 501u);
  BOOST_TEST(last_of(trace) == "1500 more");
}

}  // namespace
}  // namespace culprit::core::fuse
