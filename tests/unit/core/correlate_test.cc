#include "core/fuse/correlate.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace culprit::core {
namespace {

constexpr TimeNs kAt = 1'763'690'000 * kNsPerSecond;
constexpr TimeNs kHour = 3600 * kNsPerSecond;

FindingSubject place(const char* host, std::optional<uint32_t> device = {},
                     std::optional<uint32_t> rank = {}) {
  FindingSubject s;
  s.host = host;
  s.device = device;
  s.rank = rank;
  s.strength = 1;
  return s;
}

// What a detector measured.
Finding measured(Symptom symptom, Component component, std::vector<FindingSubject> where) {
  Finding f;
  f.detector = symptom == Symptom::kNumeric ? DetectorKind::kNumerics : DetectorKind::kComm;
  f.kind = FindingKind::kFault;
  f.symptom = symptom;
  f.component = component;
  f.category = Category::kUnknown;
  f.title = "Measured";
  f.confidence = 0.7;
  f.first_ns = f.last_ns = kAt;
  f.subjects = std::move(where);
  f.by_no_device = f.subjects.empty();
  f.why = {"by the numbers"};
  return f;
}

// What a plugin's counters say, from now on.
Finding counted_by(Component component, Symptom symptom, FindingSubject where) {
  Finding f;
  f.detector = DetectorKind::kPlugin;
  f.plugin = "watcher";
  f.kind = FindingKind::kSupport;
  f.component = component;
  f.symptom = symptom;
  f.category = component == Component::kStorage ? Category::kPlatform : Category::kHardware;
  f.title = "Counted";
  f.confidence = 0.8;
  f.first_ns = kAt;
  f.subjects = {std::move(where)};
  f.evidence.resize(1);
  f.lines = 1;
  return f;
}

// What a rule read in a kernel's log.
Finding logged(Component component, Symptom symptom, FindingSubject where) {
  Finding f = counted_by(component, symptom, std::move(where));
  f.detector = DetectorKind::kNone;
  f.plugin.clear();
  f.rule = "kernel.line";
  f.title = "Logged";
  f.last_ns = kAt;
  f.as_kernel = true;
  f.subjects[0].strength = 0;
  return f;
}

Finding fault(Finding f) {
  f.kind = FindingKind::kFault;
  return f;
}

// The title of the only finding that is left; else how many are left.
std::string left(std::vector<Finding> all, std::vector<Finding> witnesses = {}, TimeNs stopped = kNoTime) {
  fuse::join_causes(all, std::move(witnesses), stopped);
  return all.size() == 1 ? all[0].title : std::to_string(all.size());
}

const Finding kSlowRank = measured(Symptom::kSlowdown, Component::kGpu, {place("a", 3, 3)});
const Finding kSlowLink = measured(Symptom::kSlowdown, Component::kNetwork, {place("a")});
const Finding kOddReplica = measured(Symptom::kNumeric, Component::kGpu, {place("a", 3, 3)});
const Finding kStalledAt = measured(Symptom::kHang, Component::kUnknown, {place("a", 3, 3)});
const Finding kStalled = measured(Symptom::kHang, Component::kNetwork, {});

}  // namespace

BOOST_AUTO_TEST_SUITE(correlate)

BOOST_AUTO_TEST_CASE(a_cause_on_one_host_gives_no_weight_to_another_host_that_is_as_slow) {
  Finding slow = kSlowRank;
  slow.kind = FindingKind::kSupport;
  slow.subjects = {place("a", 3, 3), place("b", 3, 11)};
  for (FindingSubject& s : slow.subjects) s.strength = 0;
  std::vector<Finding> all{slow, counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3))};
  fuse::join_causes(all, {}, kNoTime);
  BOOST_REQUIRE(all.size() == 1u);
  BOOST_REQUIRE(all[0].subjects.size() == 2u);
  BOOST_TEST((all[0].subjects[0].strength > 0 && all[0].subjects[1].strength == 0));
}

BOOST_AUTO_TEST_CASE(each_combination_of_the_table_is_one_diagnosis_of_the_cause) {
  struct Row {
    Finding effect, cause;
  };
  const Row rows[] = {
      {kSlowRank, counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3))},
      {kSlowRank, counted_by(Component::kStorage, Symptom::kSlowdown, place("a"))},
      {kSlowLink, counted_by(Component::kNetwork, Symptom::kSlowdown, place("a"))},
      {kSlowLink, fault(counted_by(Component::kNetwork, Symptom::kHang, place("a")))},
      {kOddReplica, counted_by(Component::kGpuMemory, Symptom::kCrash, place("a", 3))},
      {kStalledAt, counted_by(Component::kStorage, Symptom::kHang, place("a"))},
      {kStalledAt, counted_by(Component::kHostKernel, Symptom::kHang, place("a"))},
      {kStalledAt, fault(counted_by(Component::kHostMemory, Symptom::kCrash, place("a")))},
      {kStalled, fault(counted_by(Component::kNetwork, Symptom::kHang, place("b")))},
  };
  for (const Row& row : rows) {
    std::vector<Finding> all = {row.cause, row.effect};
    fuse::join_causes(all);
    BOOST_REQUIRE_EQUAL(all.size(), 1u);
    BOOST_TEST(all[0].title == "Counted: Measured");
    BOOST_TEST((all[0].kind == FindingKind::kFault));
    BOOST_TEST((all[0].component == row.cause.component));
    BOOST_TEST((all[0].symptom == row.effect.symptom));
    BOOST_TEST(all[0].confidence > 0.9);
    BOOST_TEST(all[0].evidence.size() == 1u);
    BOOST_TEST(all[0].found_by.size() == 2u);
    BOOST_TEST(all[0].why.back().find("no explanation") != std::string::npos);
  }
}

// A hang that a log's silence shows is a mere consequence: with its cause it leads what the cause ended.
BOOST_AUTO_TEST_CASE(a_consequence_that_is_joined_with_its_cause_is_a_cause) {
  Finding silence = kStalledAt;
  silence.role = FindingRole::kCascade;
  std::vector<Finding> all = {counted_by(Component::kGpu, Symptom::kCrash, place("a", 3)), silence};
  fuse::join_causes(all);
  BOOST_REQUIRE_EQUAL(all.size(), 1u);
  BOOST_TEST((all[0].role == FindingRole::kRoot));
}

// The GPU that another job loses later is no cause of a job that had failed; of one that stands it may be.
BOOST_AUTO_TEST_CASE(what_the_machine_reports_after_a_failure_does_not_explain_it) {
  constexpr TimeNs kStopped = 1'000 * kNsPerSecond;
  const struct {
    FindingRole role;
    TimeNs after;
    size_t left;
  } kCases[] = {
      {FindingRole::kCascade, 5 * kNsPerSecond, 1},
      {FindingRole::kCascade, 17 * kNsPerSecond, 2},
      {FindingRole::kRoot, 17 * kNsPerSecond, 1},
  };
  for (const auto& c : kCases) {
    Finding silence = kStalledAt, lost = counted_by(Component::kGpu, Symptom::kCrash, place("a", 3));
    silence.role = c.role;
    silence.first_ns = silence.last_ns = kStopped;
    lost.first_ns = lost.last_ns = kStopped + c.after;
    std::vector<Finding> all = {lost, silence};
    fuse::join_causes(all, {}, kStopped);
    BOOST_TEST(all.size() == c.left, c.after / kNsPerSecond << " s");
  }
}

BOOST_AUTO_TEST_CASE(what_a_part_does_not_do_is_not_joined) {
  BOOST_TEST(left({kSlowRank, counted_by(Component::kNetwork, Symptom::kSlowdown, place("a"))}) == "2");
  BOOST_TEST(left({kSlowRank, counted_by(Component::kGpu, Symptom::kHang, place("a", 3))}) == "2");
  BOOST_TEST(left({kSlowLink, counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3))}) == "2");
  BOOST_TEST(left({kOddReplica, counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3))}) == "2");
  BOOST_TEST(left({kStalledAt, counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3))}) == "2");
}

BOOST_AUTO_TEST_CASE(another_device_or_host_merely_coincides) {
  for (const FindingSubject& elsewhere : {place("a", 2), place("b", 3), place("b")}) {
    BOOST_TEST(left({kSlowRank, counted_by(Component::kGpu, Symptom::kSlowdown, elsewhere)}) == "2");
    BOOST_TEST(left({kOddReplica, counted_by(Component::kGpuMemory, Symptom::kCrash, elsewhere)}) == "2");
  }
  BOOST_TEST(left({kSlowLink, counted_by(Component::kNetwork, Symptom::kSlowdown, place("b"))}) == "2");
  BOOST_TEST(left({kStalledAt, counted_by(Component::kStorage, Symptom::kHang, place("b"))}) == "2");
}

BOOST_AUTO_TEST_CASE(either_end_of_a_link_may_have_the_cause) {
  Finding link = kSlowLink;
  link.subjects[0].peer = "b";
  for (const char* host : {"a", "b"})
    BOOST_TEST(left({link, counted_by(Component::kNetwork, Symptom::kSlowdown, place(host))}) ==
               "Counted: Measured");
  BOOST_TEST(left({link, counted_by(Component::kNetwork, Symptom::kSlowdown, place("c"))}) == "2");
}

BOOST_AUTO_TEST_CASE(earlier_and_cleared_or_later_merely_coincides) {
  Finding cause = counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3));
  cause.first_ns = kAt - 2 * kHour;
  BOOST_TEST(left({kSlowRank, cause}) == "Counted: Measured");  // it stands
  cause.last_ns = kAt - kHour;
  BOOST_TEST(left({kSlowRank, cause}) == "2");
  cause.first_ns = kAt + kHour;
  cause.last_ns = kNoTime;
  BOOST_TEST(left({kSlowRank, cause}) == "2");
}

BOOST_AUTO_TEST_CASE(a_stop_is_timed_by_the_last_progress_and_not_by_its_time_out) {
  Finding timed_out = kStalled;
  timed_out.first_ns = timed_out.last_ns = kAt + kHour;
  Finding down = fault(counted_by(Component::kNetwork, Symptom::kHang, place("a")));
  down.last_ns = kAt + 60 * kNsPerSecond;  // it came back
  BOOST_TEST(left({timed_out, down}, {}, kAt) == "Counted: Measured");
  BOOST_TEST(left({timed_out, down}) == "2");
  BOOST_TEST(left({timed_out, down}, {}, kAt + kHour) == "2");
}

BOOST_AUTO_TEST_CASE(a_warning_anywhere_does_not_explain_that_the_whole_job_stands) {
  BOOST_TEST(left({kStalled, counted_by(Component::kNetwork, Symptom::kSlowdown, place("a"))}) == "2");
  Finding program = kStalled;
  program.component = Component::kUserCode;
  program.category = Category::kUser;
  BOOST_TEST(left({program, fault(counted_by(Component::kNetwork, Symptom::kHang, place("a")))}) == "2");
}

BOOST_AUTO_TEST_CASE(kernel_counters_and_measurement_are_one_diagnosis) {
  std::vector<Finding> all = {fault(counted_by(Component::kStorage, Symptom::kHang, place("a"))),
                              fault(logged(Component::kStorage, Symptom::kHang, place("a"))),
                              fault(logged(Component::kHostKernel, Symptom::kHang, place("b"))), kStalled};
  fuse::join_causes(all);
  BOOST_REQUIRE_EQUAL(all.size(), 1u);
  BOOST_TEST((all[0].component == Component::kStorage));
  BOOST_TEST(all[0].found_by == (std::vector<std::string>{"comm", "plugin:watcher", "rule:kernel.line"}),
             boost::test_tools::per_element());
  BOOST_TEST(all[0].evidence.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_fault_of_another_part_stays_beside) {
  BOOST_TEST(left({fault(counted_by(Component::kStorage, Symptom::kHang, place("a"))),
                   fault(logged(Component::kNetwork, Symptom::kHang, place("a"))), kStalled}) == "2");
}

BOOST_AUTO_TEST_CASE(a_witness_explains_and_is_dropped_if_it_explains_nothing) {
  const Finding flap = logged(Component::kNetwork, Symptom::kCrash, place("a"));
  BOOST_TEST(left({kSlowLink}, {flap}) == "Logged: Measured");
  BOOST_TEST(left({kSlowRank}, {flap}) == "Measured");
  std::vector<Finding> none;
  fuse::join_causes(none, {flap});
  BOOST_TEST(none.empty());
}

BOOST_AUTO_TEST_CASE(a_line_supports_the_counter_of_the_same_device) {
  const Finding counter = fault(counted_by(Component::kGpuMemory, Symptom::kCrash, place("a", 3)));
  BOOST_TEST(left({counter}, {logged(Component::kGpuMemory, Symptom::kCrash, place("a"))}) == "Counted");
  std::vector<Finding> all = {counter};
  fuse::join_causes(all, {logged(Component::kGpuMemory, Symptom::kCrash, place("a"))});
  BOOST_TEST(all[0].found_by.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_trace_finds_too_cheap_becomes_a_fault_with_a_cause) {
  Finding weak = kSlowLink;
  weak.kind = FindingKind::kSupport;
  std::vector<Finding> all = {weak, counted_by(Component::kNetwork, Symptom::kSlowdown, place("a"))};
  fuse::join_causes(all);
  BOOST_REQUIRE_EQUAL(all.size(), 1u);
  BOOST_TEST((all[0].kind == FindingKind::kFault));
  all = {weak};
  fuse::join_causes(all);
  BOOST_TEST((all.at(0).kind == FindingKind::kSupport));
}

BOOST_AUTO_TEST_CASE(numbers_that_move_after_a_planned_change_are_no_fault) {
  Finding moved = measured(Symptom::kNumeric, Component::kUserData, {});
  moved.iteration = 110;
  Finding plan = moved;
  plan.kind = FindingKind::kSupport;
  plan.component = Component::kUserConfig;
  plan.action = ActionKind::kNone;
  plan.title = "A planned change moved the loss";
  const auto is_fault = [](Finding effect, const Finding& planned) {
    std::vector<Finding> all = {std::move(effect), planned};
    fuse::join_causes(all);
    return all.at(0).kind == FindingKind::kFault;
  };
  plan.iteration = 100;
  BOOST_TEST(!is_fault(moved, plan));
  plan.iteration = 20;
  BOOST_TEST(is_fault(moved, plan));
  plan.iteration = 120;
  BOOST_TEST(is_fault(moved, plan));
  plan.iteration = 100;
  moved.fatal = true;  // it ended the job
  BOOST_TEST(is_fault(moved, plan));
  Finding odd = kOddReplica;
  odd.iteration = 110;
  BOOST_TEST(is_fault(odd, plan));
}

BOOST_AUTO_TEST_CASE(a_slower_pace_and_a_counter_of_one_host_at_that_moment_are_a_fault_of_it) {
  Finding pace = measured(Symptom::kSlowdown, Component::kUnknown, {});
  pace.kind = FindingKind::kSupport;
  pace.detector = DetectorKind::kTemporal;
  pace.confidence = 0.3;
  Finding hot = counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3));
  std::vector<Finding> all = {pace, hot};
  fuse::join_causes(all);
  BOOST_REQUIRE_EQUAL(all.size(), 1u);
  BOOST_TEST((all[0].kind == FindingKind::kFault));
  BOOST_TEST(all[0].confidence <= 0.6);
  BOOST_TEST((all[0].subjects.at(0).host == "a"));
  BOOST_TEST(all[0].why.back().find("no trace") != std::string::npos);
  // Two hosts explain it equally well; what was raised long before explains nothing.
  BOOST_TEST(left({pace, hot, counted_by(Component::kGpu, Symptom::kSlowdown, place("b", 1))}) == "2");
  BOOST_TEST(left({pace}) == "0");
  hot.first_ns = kAt - kHour;
  BOOST_TEST(left({pace, hot}) == "Counted");
}

BOOST_AUTO_TEST_CASE(a_cause_on_one_of_two_replicas_decides_which_is_wrong) {
  Finding differ = measured(Symptom::kNumeric, Component::kGpu, {place("a", 3, 3), place("b", 3, 11)});
  differ.iteration = 63;
  const Finding xid = logged(Component::kGpuMemory, Symptom::kCrash, place("b", 3));
  for (const bool one_of : {true, false}) {
    differ.one_of = one_of;
    std::vector<Finding> all{differ};
    fuse::join_causes(all, {xid}, kNoTime);
    BOOST_REQUIRE(all.size() == 1u);
    BOOST_TEST(all[0].subjects.size() == (one_of ? 1u : 2u));
    BOOST_TEST(*all[0].subjects.back().host == "b");
    BOOST_TEST(all[0].remedy.ends_with("before step 63.") == one_of);
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_all_ranks_lost_join_the_only_device_whose_memory_failed_then) {
  const Finding lost = measured(Symptom::kNumeric, Component::kNumeric, {});
  Finding xid = fault(logged(Component::kGpuMemory, Symptom::kCrash, place("a", 3)));
  BOOST_TEST(left({lost, xid}) == "Logged: Measured");
  BOOST_TEST(left({lost, xid, fault(logged(Component::kGpuMemory, Symptom::kCrash, place("b", 1)))}) == "3");
  BOOST_TEST(left({lost}, {logged(Component::kGpuMemory, Symptom::kCrash, place("a"))}) == "Measured");
  xid.first_ns = xid.last_ns = kAt - kHour;
  BOOST_TEST(left({lost, xid}) == "2");
}

BOOST_AUTO_TEST_CASE(a_claim_and_a_fault_of_the_program_explain_nothing) {
  Finding claim = counted_by(Component::kGpu, Symptom::kSlowdown, place("a", 3));
  claim.said_by.uids = {1000};
  BOOST_TEST(left({kSlowRank, claim}) == "2");
  Finding program = fault(logged(Component::kGpu, Symptom::kCrash, place("a")));
  program.category = Category::kUser;
  BOOST_TEST(left({kStalledAt, program}) == "2");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::core
