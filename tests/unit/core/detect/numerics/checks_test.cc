// Results of a loop's own checks: they prove or withdraw a finding.
#include <boost/test/unit_test.hpp>

#include "job.h"

using namespace numbers;

namespace {

struct RasJudgement {
  std::string name;
  int64_t step = 0;
  uint32_t rank = 0;
  std::vector<std::pair<std::string, std::string>> fields;
};

void give(Detector& detector, const RasJudgement& output) {
  std::vector<EventField> fields;
  for (const auto& [name, json] : output.fields) fields.push_back({name, json});
  detector.add(LoopEvent{{}, output.rank, output.step, kNoTime, output.name, fields});
}

RasJudgement audit(int64_t step, uint32_t rank, uint32_t by, const std::string& odd = "") {
  RasJudgement output{"audit", step, rank, {{"by", std::to_string(by)}, {"equal", "false"}}};
  if (!odd.empty()) output.fields.emplace_back("odd", odd);
  return output;
}
RasJudgement replay(int64_t step, uint32_t rank, const std::string& where, const std::string& equal) {
  return {"replay", step, rank, {{"where", '"' + where + '"'}, {"equal", equal}}};
}

NumericFindings with(const std::vector<RasJudgement>& all, bool suspect = false) {
  Detector detector;
  for (const Row& row : rows({}, [&](Row& r) {
         if (suspect && r.rank == 2 && r.step >= 60) r.values["act_max/layer.1"] *= 1.6;
       })) {
    row.give(detector);
  }
  for (const RasJudgement& output : all) give(detector, output);
  return detector.findings();
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_audit_of_two_suspects_both_by_half) {
  const NumericFindings t = with({audit(70, 1, 2)});
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST((t.faults[0].kind == NumericClass::kSdc));
  BOOST_TEST(t.faults[0].ranks == (std::vector<uint32_t>{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(t.findings[0].subjects.at(0).strength == t.findings[0].subjects.at(1).strength);
  BOOST_TEST(t.findings[0].subjects[0].strength < 0.5);
  BOOST_TEST((t.findings[0].action == ActionKind::kCheck));
}

BOOST_AUTO_TEST_CASE(a_third_names_the_odd_one_and_it_is_isolated) {
  const NumericFindings t = with({audit(70, 1, 2, "2")});
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == std::vector<uint32_t>{2}, boost::test_tools::per_element());
  BOOST_TEST((t.findings[0].action == ActionKind::kIsolate));
}

BOOST_AUTO_TEST_CASE(who_differs_from_two_is_the_odd_one) {
  const NumericFindings t = with({audit(70, 1, 2), audit(72, 2, 3)});
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == std::vector<uint32_t>{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_check_proved_and_the_numbers_show_is_one_fault) {
  Detector detector;
  for (const Row& row : rows({}, [&](Row& r) {
         if (r.rank == 2 && r.step >= 60) r.values["param_norm"] *= 1.01;
       })) {
    if (row.step == 60 && row.rank == 0) give(detector, audit(60, 1, 2, "2"));
    row.give(detector);
  }
  const NumericFindings t = detector.findings();
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST(t.faults[0].ranks == std::vector<uint32_t>{2}, boost::test_tools::per_element());
  BOOST_TEST(t.faults[0].step == 60);
  BOOST_TEST(t.faults[0].metrics == std::vector<std::string>{"param_norm"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(further_audits_leave_less_doubt) {
  const double once = with({audit(70, 1, 2, "2")}).faults.at(0).confidence;
  BOOST_TEST(with({audit(70, 1, 2, "2"), audit(80, 2, 3, "2")}).faults.at(0).confidence > once);
}

BOOST_AUTO_TEST_CASE(a_replay_that_differs_proves_the_device) {
  for (const char* where : {"same", "elsewhere"}) {
    const NumericFindings t = with({replay(70, 2, where, "false")}, true);
    BOOST_TEST_REQUIRE(t.faults.size() == 1);
    BOOST_TEST(t.faults[0].confidence >= 0.95);
    BOOST_TEST((t.findings[0].action == ActionKind::kIsolate));
  }
}

BOOST_AUTO_TEST_CASE(what_was_not_taken_is_not_rolled_back) {
  RasJudgement undone = replay(70, 2, "same", "false");
  undone.fields.emplace_back("undone", "true");
  BOOST_TEST(with({undone}).faults.at(0).mitigation.find("nothing is to be rolled back") !=
             std::string::npos);
  const std::string both = with({undone, replay(72, 2, "same", "false")}).faults.at(0).mitigation;
  BOOST_TEST(both.find("roll back to a checkpoint from before step 70") != std::string::npos);
  // Replicas that differ have taken something wrong.
  BOOST_TEST(with({undone}, true).faults.at(0).mitigation.find("roll back to") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rank_whose_device_is_proved_wrong_has_no_second_case_for_its_nan) {
  for (const bool first : {true, false}) {
    Detector detector;
    const auto all = rows({}, [](Row& r) {
      if (r.rank == 2 && r.step == 60) r.values["grad_norm"] = std::numeric_limits<double>::quiet_NaN();
    });
    for (const Row& row : all) {
      const bool before = row.step == 60 && row.rank == 0, after = row.step == 62 && row.rank == 0;
      if (first ? before : after) give(detector, replay(60, 2, "same", "false"));
      row.give(detector);
    }
    const NumericFindings t = detector.findings();
    BOOST_TEST_REQUIRE(t.faults.size() == 1);
    BOOST_TEST((t.faults[0].kind == NumericClass::kSdc));
    BOOST_TEST(t.faults[0].step == 60);
  }
}

BOOST_AUTO_TEST_CASE(a_replay_elsewhere_that_agrees_takes_the_suspicion_back) {
  const NumericFindings t = with({replay(70, 2, "elsewhere", "true")}, true);
  BOOST_TEST_REQUIRE(t.faults.size() == 1);
  BOOST_TEST((t.faults[0].kind == NumericClass::kData));
  BOOST_TEST(t.findings[0].subjects.empty());
}

BOOST_AUTO_TEST_CASE(a_step_from_before_the_fault_takes_nothing_back) {
  const NumericFindings without = with({}, true), t = with({replay(50, 2, "same", "true")}, true);
  BOOST_TEST(t.faults.at(0).confidence == without.faults.at(0).confidence);
  BOOST_TEST(t.findings[0].why == without.findings.at(0).why, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_computes_every_step_again_is_counted) {
  for (const std::string where : {"same", "elsewhere"}) {
    const NumericFindings once = with({replay(70, 2, where, "true")}, true);
    std::vector<RasJudgement> all;
    for (int64_t step = 70; step < 1070; ++step) all.push_back(replay(step, 2, where, "true"));
    const NumericFindings t = with(all, true);
    BOOST_TEST(t.faults.at(0).confidence == once.faults.at(0).confidence);
    BOOST_TEST(t.findings[0].why.size() == once.findings.at(0).why.size());
    BOOST_TEST(t.findings[0].why.back().find("step 70 and 999 more until step 1069") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(an_audit_that_agrees_says_nothing) {
  RasJudgement output = audit(70, 1, 2);
  output.fields[1].second = "true";
  BOOST_TEST(with({output}).faults.empty());
}

BOOST_AUTO_TEST_CASE(a_check_that_cannot_be_read_is_reported) {
  const NumericFindings t = with({{"replay", 5, 1, {{"equal", "false"}}},
                                  {"audit", 5, 1, {{"equal", "3"}}},
                                  audit(5, 1, 1),
                                  audit(5, 1, 2, "3")});
  BOOST_TEST(t.faults.empty());
  BOOST_TEST_REQUIRE(t.problems.size() == 1);
  BOOST_TEST(t.problems[0].find("4 events") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(other_events_are_ignored) {
  Detector detector;
  give(detector, {"epoch_end", 5, 1, {}});
  BOOST_TEST(detector.empty());
}
