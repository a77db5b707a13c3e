// Reports of running jobs as inputs of the controller.
#include "app/daemon/recover/job_reports.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kNow = 1'700'000'000 * kNsPerSecond;

LiveJobSummary reporting(TimeNs saved_ns) {
  LiveJobSummary out;
  out.id = "llama";
  out.iteration = 120;
  out.saved = detect::SaveWatch::Saved{118, saved_ns};
  return out;
}

bool saves(const std::vector<recover::Input>& inputs) {
  for (const recover::Input& input : inputs)
    if (const auto* seen = std::get_if<recover::ProgressSeen>(&input)) return seen->saved;
  return false;
}

AdviceSummary taken_by(uint64_t ranks, uint64_t achieved, TimeNs at) {
  AdviceSummary out;
  out.id = 7;
  out.kind = "save_now";
  out.taken = ranks;
  out.achieved = achieved;
  out.first_step = out.last_step = 121;
  out.at_ns = at;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_is_given_once_and_after_a_moment) {
  JobReports reports;
  const LiveJobSummary job = reporting(kNow);
  BOOST_TEST(!saves(reports.read({}, job, kNow + kNsPerSecond)));
  BOOST_TEST(saves(reports.read({}, job, kNow + 3 * kNsPerSecond)));
  BOOST_TEST(!saves(reports.read({}, job, kNow + 8 * kNsPerSecond)));
  BOOST_TEST(saves(reports.read({}, reporting(kNow + 20 * kNsPerSecond), kNow + 25 * kNsPerSecond)));
}

BOOST_AUTO_TEST_CASE(an_old_checkpoint_is_no_news_after_a_restart) {
  JobReports reports;
  BOOST_TEST(!saves(reports.read({}, reporting(kNow), kNow + 300 * kNsPerSecond)));
}

BOOST_AUTO_TEST_CASE(advice_is_given_once_all_ranks_have_reported) {
  JobReports reports;
  LiveJobSummary job = reporting(kNow);
  job.advice = {taken_by(4, 0, kNow)};
  const auto first = reports.read({}, job, kNow + 3 * kNsPerSecond);
  BOOST_REQUIRE(first.size() == 2u);
  const auto& seen = std::get<recover::AdviceSeen>(first[1]);
  BOOST_TEST((seen.outcome == AdviceOutcome::kTaken));
  BOOST_TEST(seen.ranks == 4u);
  BOOST_TEST(seen.step == 121);
  job.advice = {taken_by(4, 3, kNow + 5 * kNsPerSecond)};
  BOOST_TEST(reports.read({}, job, kNow + 8 * kNsPerSecond).size() == 1u);
  job.advice = {taken_by(4, 4, kNow + 8 * kNsPerSecond)};
  const auto last = reports.read({}, job, kNow + 13 * kNsPerSecond);
  BOOST_REQUIRE(last.size() == 2u);
  BOOST_TEST((std::get<recover::AdviceSeen>(last[1]).outcome == AdviceOutcome::kAchieved));
  BOOST_TEST(reports.read({}, job, kNow + 18 * kNsPerSecond).size() == 1u);
}

BOOST_AUTO_TEST_CASE(jobs_that_are_gone_are_forgotten) {
  JobReports reports;
  const LiveJobSummary job = reporting(kNow);
  BOOST_TEST(saves(reports.read({}, job, kNow + 3 * kNsPerSecond)));
  reports.forget_others();
  reports.forget_others();
  BOOST_TEST(saves(reports.read({}, job, kNow + 8 * kNsPerSecond)));
}
