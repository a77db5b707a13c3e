// A check of the host as a finding of its jobs' reports.
#include <boost/test/unit_test.hpp>

#include "app/daemon/watch/check_finding.h"

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(check_findings)

BOOST_AUTO_TEST_CASE(a_failed_check_raises_what_a_passed_one_clears) {
  using check::Answer;
  BOOST_TEST(!finding_of_check({Answer::kNoAnswer, "memory: the time was over"}, 5));
  const auto failed = finding_of_check({Answer::kFailed, "memory: 1 of 16777216 words differ"}, 5);
  BOOST_REQUIRE(failed);
  BOOST_TEST((failed->state == PluginState::kRaised));
  BOOST_TEST((failed->severity == PluginSeverity::kError));
  BOOST_TEST(failed->component == "host_memory");
  BOOST_TEST(failed->job.empty());  // every job of the host
  const auto passed = finding_of_check({Answer::kPassed, "passed: memory"}, 6);
  BOOST_REQUIRE(passed);
  BOOST_TEST((passed->state == PluginState::kCleared));
  BOOST_TEST(passed->id == failed->id);
  BOOST_TEST(passed->plugin == failed->plugin);
  BOOST_TEST(finding_of_check({Answer::kFailed, "dcgmi: exited with status 1"}, 5)->component == "unknown");
}

BOOST_AUTO_TEST_CASE(other_bits_are_a_finding_of_their_own) {
  using check::Answer;
  BOOST_TEST(!finding_of_alignment({Answer::kNoAnswer, "cuda:0: 2 devices"}, 5));
  const auto failed = finding_of_alignment({Answer::kFailed, "cuda:3: other bits"}, 5);
  BOOST_REQUIRE(failed);
  BOOST_TEST((failed->state == PluginState::kRaised));
  BOOST_TEST(failed->component == "gpu");
  BOOST_TEST(failed->symptom == "numeric");
  const auto passed = finding_of_alignment({Answer::kPassed, "cuda:3: its bits"}, 6);
  BOOST_TEST((passed->state == PluginState::kCleared));
  BOOST_TEST(passed->id == failed->id);
  BOOST_TEST(passed->id != finding_of_check({Answer::kPassed, ""}, 6)->id);
}

BOOST_AUTO_TEST_SUITE_END()
