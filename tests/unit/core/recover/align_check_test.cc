// Wrong numbers without a certain host: an equal step on all hosts of the job.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "controlled_cluster.h"

using namespace culprit;
using namespace culprit::recover;
using namespace culprit::recover::test;

namespace {

const ScheduledJob kAlignedJob = job_named("4711");

ControllerOptions aligning(Mode mode = Mode::kAct) {
  ControllerOptions out = acting(mode);
  out.policy.align = true;
  return out;
}

Diagnosis wrong_loss(TimeNs at) {
  Diagnosis d;
  d.rule = "numbers.nan";
  d.title = "The loss is NaN";
  d.component = Component::kNumeric;
  d.symptom = Symptom::kNumeric;
  d.confidence = 0.9;
  d.time_ns = at;
  return d;
}

HostChecked aligned(const std::string& host, CheckAnswer answer) {
  HostChecked in{host, answer, answer == CheckAnswer::kPassed ? "" : "says so"};
  in.kind = CheckKind::kAlign;
  return in;
}

// The orders after the last answer; 'p', 'f' and 'n' of n1, n2, …: passed, failed, none.
Lines after(Cluster& k, const std::string& answers) {
  Lines out;
  for (size_t n = 0; n < answers.size(); ++n) {
    BOOST_TEST(out.empty());  // they are compared together
    out = k.give(aligned("n" + std::to_string(n + 1), answers[n] == 'p'   ? CheckAnswer::kPassed
                                                      : answers[n] == 'f' ? CheckAnswer::kFailed
                                                                          : CheckAnswer::kNoAnswer));
  }
  return out.empty() ? k.later(kMin) : out;  // a restart waits a little
}

struct AlignedStop {
  const char* answers;
  std::vector<std::string> orders;
  const char* note;
};
std::ostream& operator<<(std::ostream& out, const AlignedStop& one) { return out << one.answers; }

const AlignedStop kAlignedStops[] = {
    {"pppp", {"run-again 4711"}, "an equal step gave the same bits on the hosts of the job"},
    {"ppfp", {"isolate n3"}, "an equal step gave other bits on n3 than on most others"},
    {"pnfp", {"isolate n3"}, "1 host without an answer, which is unknown: n2: says so"},
    {"pnpp", {"run-again 4711"}, "same bits on the hosts of the job; 1 host without an answer"},
    {"nnnn", {"run-again 4711"}, "open: whether a host computes wrong bits; 4 hosts without an answer"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(align_check)

BOOST_DATA_TEST_CASE(a_host_with_other_bits_is_isolated_as_after_a_failed_check,
                     boost::unit_test::data::make(kAlignedStops)) {
  Cluster k(aligning());
  k.start(kAlignedJob, {"n1", "n2", "n3", "n4"});
  k.progress(kAlignedJob, 100);
  BOOST_TEST(k.verdict(kAlignedJob, wrong_loss(k.now), true).empty());  // it still runs
  BOOST_TEST(k.ended(kAlignedJob, JobEnd::kFailed) == Lines{"check n1 n2 n3 n4"},
             boost::test_tools::per_element());
  BOOST_TEST(after(k, sample.answers) == sample.orders, boost::test_tools::per_element());
  BOOST_TEST(std::ranges::any_of(
      k.history, [&](const std::string& line) { return line.find(sample.note) != std::string::npos; }));
  if (sample.orders[0] != "isolate n3") return;
  BOOST_TEST(k.orders[0].code == "ALIGN");
  const Lines rest = k.all_done();
  BOOST_TEST((std::ranges::find(rest, "run-again 4711 -n3") != rest.end()));
}

BOOST_AUTO_TEST_CASE(nothing_is_aligned_that_no_stage_mode_or_option_permits) {
  ControllerOptions no_stage = aligning();
  no_stage.guard.stages.check = false;
  for (const ControllerOptions& options : {acting(), no_stage, aligning(Mode::kObserve)}) {
    Cluster k(options);
    k.start(kAlignedJob);
    k.verdict(kAlignedJob, wrong_loss(k.now), false);
    BOOST_TEST(std::ranges::none_of(k.history, [](const auto& line) { return line.starts_with("check "); }));
  }
}

BOOST_AUTO_TEST_CASE(breaker_and_confidence_bound_the_isolation_of_it) {
  Cluster k(aligning(), 4);  // one at a time
  k.start(kAlignedJob, {"n1", "n2", "n3", "n4", "n5"});
  k.verdict(kAlignedJob, wrong_loss(k.now), false);
  BOOST_TEST(after(k, "pffpp") == Lines{"isolate n2"}, boost::test_tools::per_element());
  ControllerOptions sure = aligning();
  sure.policy.isolate_confidence = 0.95;
  Cluster s(sure);
  s.start(kAlignedJob);
  s.verdict(kAlignedJob, wrong_loss(s.now), false);
  BOOST_TEST(after(s, "pfp") == Lines({"check n2", "run-again 4711 -n2"}), boost::test_tools::per_element());
}

// Equal bits say nothing of the rest of a host.
BOOST_AUTO_TEST_CASE(an_alignment_returns_no_host_and_one_that_nothing_waits_for_isolates_none) {
  Cluster k(aligning());
  k.give(HostChecked{"s1", CheckAnswer::kFailed, "disk", true});
  k.all_done();
  BOOST_TEST(!k.c.machines().find("s1")->op.empty());
  BOOST_TEST(k.give(aligned("s1", CheckAnswer::kPassed)).empty());
  BOOST_TEST(k.give(aligned("n9", CheckAnswer::kFailed)).empty());
  k.start(kAlignedJob);
  k.verdict(kAlignedJob, wrong_loss(k.now), false);
  BOOST_TEST(k.give(HostChecked{"n1", CheckAnswer::kPassed, "memory"}).empty());  // of another kind
  BOOST_TEST(after(k, "ppp") == Lines{"run-again 4711"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_plain_check_does_not_return_a_host_with_other_bits) {
  Cluster k(aligning());
  k.start(kAlignedJob, {"n1", "n2", "n3", "n4"});
  k.verdict(kAlignedJob, wrong_loss(k.now), false);
  BOOST_TEST(after(k, "ppfp") == Lines{"isolate n3"}, boost::test_tools::per_element());
  k.all_done();
  BOOST_REQUIRE(!k.c.machines().find("n3")->op.empty());
  BOOST_TEST(k.give(HostChecked{"n3", CheckAnswer::kPassed, "memory"}).empty());
  BOOST_TEST(!k.c.machines().find("n3")->op.empty());
  BOOST_TEST(std::ranges::any_of(k.history, [](const std::string& line) {
    return line.find("n3: its check passed, which says nothing of the bits") != std::string::npos;
  }));
}

BOOST_AUTO_TEST_SUITE_END()
