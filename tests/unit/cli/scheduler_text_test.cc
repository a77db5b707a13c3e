#include "cli/scheduler_text.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(scheduler_text_suite)

BOOST_AUTO_TEST_CASE(a_report_says_how_the_scheduler_saw_the_job_end) {
  const auto text = [](const char* facts) {
    return scheduler_text(Json::parse(std::string(R"({"scheduler": )") + facts + "}"));
  };
  BOOST_TEST(text(R"({"scheduler": "slurm", "id": "77", "attempt": 2, "exit": "FAILED", "exit_code": "3:0",
                     "exit_reason": "NonZeroExitCode", "nodes": 4, "hosts": "n[1-4]"})") ==
             "Slurm: job 77 FAILED, exit code 3, NonZeroExitCode; attempt 2, on n[1-4]");
  BOOST_TEST(text(R"({"scheduler": "slurm", "id": "77", "attempt": 1, "exit": "FAILED", "exit_code": "0:9",
                     "exit_reason": null, "nodes": 1, "hosts": "n1"})") ==
             "Slurm: job 77 FAILED, signal 9; attempt 1, on n1");
  BOOST_TEST(text(R"({"scheduler": "kubernetes", "id": "ml/train", "attempt": 1, "exit": null,
                     "exit_code": null, "exit_reason": null, "nodes": 0, "hosts": ""})") ==
             "Kubernetes: job ml/train runs; attempt 1");
}

BOOST_AUTO_TEST_CASE(a_report_without_a_scheduler_has_no_line_of_it) {
  for (const char* report : {"{}", "[]", "null", R"({"scheduler": null})", R"({"scheduler": {"id": 7.5}})"})
    BOOST_TEST(scheduler_text(Json::parse(report)).empty(), report);
}

BOOST_AUTO_TEST_SUITE_END()
