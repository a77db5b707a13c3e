#include "core/diagnose/code_change.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;

BOOST_AUTO_TEST_CASE(a_changed_revision_is_a_reason_only_where_the_program_can_be_the_cause) {
  const struct {
    Restart kind;
    const char *revision, *last_good;
    bool wanted;
  } rows[] = {
      {Restart::kNever, "b", "a", true},      {Restart::kOlder, "b", "a", true},
      {Restart::kNever, "b", "b", false},     {Restart::kElsewhere, "b", "a", false},
      {Restart::kLater, "b", "a", false},     {Restart::kSame, "b", "a", false},
      {Restart::kNever, "b", nullptr, false},
  };
  for (const auto& row : rows) {
    JobFile job;
    job.revision = row.revision;
    if (row.last_good) job.last_good = row.last_good;
    Report report;
    report.diagnoses.emplace_back().restart.kind = row.kind;
    report.verdict = 0;
    diagnose::add_code_change(job, report);
    BOOST_TEST(!report.diagnoses[0].why.empty() == row.wanted);
    report.verdict.reset();
    diagnose::add_code_change(job, report);
    BOOST_TEST(report.diagnoses[0].why.size() == (row.wanted ? 1U : 0U));
  }
}
