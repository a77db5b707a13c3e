// The metrics of jobs: which jobs, which labels, what is left out.
#include "app/daemon/api/job_metrics.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

constexpr TimeNs kNow = 1'795'226'400 * kNsPerSecond;

JobCounters job(std::string id, FigureState state = FigureState::kRunning, TimeNs age_ns = kNsPerSecond) {
  JobCounters out;
  out.id = std::move(id);
  out.state = state;
  out.first_ns = kNow - age_ns;
  out.last_ns = kNow;
  return out;
}

JobCounters accused(JobCounters of) {
  of.verdict = {Category::kHardware, Component::kGpu, Symptom::kHang, ActionKind::kIsolate, 0.875, 2};
  return of;
}

std::vector<std::string> jobs_in(const std::string& text) {
  std::vector<std::string> out;
  const std::string begin = "culprit_job_run{job_id=\"";
  for (size_t at = 0; (at = text.find(begin, at)) != text.npos;) {
    at += begin.size();
    out.push_back(text.substr(at, text.find('"', at) - at));
  }
  return out;
}

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != text.npos;
}

BOOST_AUTO_TEST_SUITE(job_metrics)

BOOST_AUTO_TEST_CASE(a_job_has_what_is_known_of_it) {
  JobCounters full = accused(job("llama", FigureState::kHangs));
  full.run = 2, full.step = 1120, full.effective_time = 0.75, full.hosts = 4, full.ranks = 32;
  full.progressed_ns = kNow - kNsPerSecond / 2;
  const std::string text = job_metrics_text({full, job("bare")}, {10, kNow, 2 * kNsPerSecond});
  for (
      const char* line :
      {R"(culprit_job_state{job_id="llama",state="hangs"} 1)", R"(culprit_job_run{job_id="llama"} 2)",
       R"(culprit_job_start_time_seconds{job_id="llama"} 1795226399)",
       R"(culprit_job_last_progress_time_seconds{job_id="llama"} 1795226399.5)",
       R"(culprit_job_effective_time_ratio{job_id="llama"} 0.75)", R"(culprit_job_step{job_id="llama"} 1120)",
       R"(culprit_job_hosts{job_id="llama"} 4)", R"(culprit_job_ranks{job_id="llama"} 32)",
       R"(culprit_job_verdict_info{job_id="llama",category="hardware",component="gpu",symptom="hang",action="isolate"} 1)",
       R"(culprit_job_verdict_confidence_ratio{job_id="llama"} 0.875)",
       R"(culprit_job_suspects{job_id="llama"} 2)", R"(culprit_job_suspects{job_id="bare"} 0)",
       "culprit_jobs_left_out 0", "culprit_jobs_age_seconds 2"})
    BOOST_TEST(has(text, line), line << " in " << text);
  for (const char* absent : {"effective_time_ratio", "step", "hosts", "ranks", "verdict_confidence_ratio",
                             "last_progress_time_seconds"})
    BOOST_TEST(!has(text, fmt::format("culprit_job_{}{{job_id=\"bare\"", absent)), absent);
}

BOOST_AUTO_TEST_CASE(the_worst_come_first_then_the_newest_and_the_rest_is_counted) {
  std::vector<JobCounters> jobs = {job("old", FigureState::kRunning, 90 * kNsPerSecond),
                                   job("new", FigureState::kRunning),
                                   job("ended", FigureState::kEnded),
                                   job("failed", FigureState::kFailed),
                                   job("hangs", FigureState::kHangs),
                                   job("bare", FigureState::kNoEngine),
                                   accused(job("accused"))};
  std::string text = job_metrics_text(jobs, {10, kNow, 0});
  const std::vector<std::string> all = {"accused", "hangs", "failed", "new", "old", "bare", "ended"};
  BOOST_TEST(jobs_in(text) == all, boost::test_tools::per_element());
  text = job_metrics_text(jobs, {3, kNow, 0});
  BOOST_TEST(jobs_in(text) == std::vector<std::string>(all.begin(), all.begin() + 3),
             boost::test_tools::per_element());
  BOOST_TEST(has(text, "culprit_jobs_left_out 4"));
  BOOST_TEST(jobs_in(job_metrics_text(jobs, {0, kNow, 0})).empty());
}

BOOST_AUTO_TEST_CASE(a_job_that_ended_is_shown_for_an_hour) {
  std::vector<JobCounters> jobs = {job("now", FigureState::kFailed), job("before", FigureState::kFailed),
                                   job("still", FigureState::kRunning)};
  jobs[1].last_ns = jobs[2].last_ns = kNow - 3601 * kNsPerSecond;
  const std::string text = job_metrics_text(jobs, {10, kNow, 0});
  BOOST_TEST(jobs_in(text) == (std::vector<std::string>{"now", "still"}), boost::test_tools::per_element());
  BOOST_TEST(has(text, "culprit_jobs_left_out 0"));
}

BOOST_AUTO_TEST_CASE(a_hostile_name_ends_no_label_and_makes_no_series_twice) {
  const std::string hostile = "a\"} 1\nculprit_healthy 0\n# \\";
  const std::string text = job_metrics_text({job(hostile), job("x\xff"), job("x\xfe")}, {10, kNow, 0});
  BOOST_TEST(has(text, R"(culprit_job_run{job_id="a\"} 1\nculprit_healthy 0\n# \\"} 0)"));
  BOOST_TEST(!has(text, "culprit_healthy 0"));
  BOOST_TEST(has(text, "culprit_jobs_left_out 1"), "equal as UTF-8");
}

BOOST_AUTO_TEST_CASE(a_thousand_jobs_take_bounded_text) {
  std::vector<JobCounters> jobs;
  for (int i = 0; i < 10'000; ++i) jobs.push_back(accused(job(fmt::format("job-{}", i))));
  const std::string text = job_metrics_text(jobs, {200, kNow, 0});
  BOOST_TEST(text.size() < (256u << 10), text.size());
  BOOST_TEST(has(text, "culprit_jobs_left_out 9800"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
