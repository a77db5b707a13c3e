// Promises of the controller in the simulated cluster.
#include "sim/cluster/controlled.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "core/recover/recording.h"
#include "sim/cluster/study.h"

namespace {

using namespace culprit;
using namespace culprit::sim;

ClusterParams controlled_cluster() {
  ClusterParams p;
  p.hosts = 96;
  p.spares = 6;
  p.days = 10;
  return p;
}

}  // namespace

BOOST_AUTO_TEST_CASE(time_with_the_controller_adds_up_to_the_wall_time) {
  for (const int64_t jobs : {1, 4}) {
    ClusterParams p = controlled_cluster();
    p.jobs = jobs;
    const ClusterOutcome o = run_controlled(p, control_defaults(), 1, 5);
    BOOST_TEST(o.wall_ns == 5 * jobs * p.days * 86'400 * kNsPerSecond);
    BOOST_TEST(o.time.all() == o.wall_ns);
  }
}

BOOST_AUTO_TEST_CASE(a_seed_repeats_the_controllers_decisions) {
  const auto numbers = [] {
    const ClusterOutcome o = run_controlled(controlled_cluster(), control_defaults(), 7, 2);
    return std::vector<uint64_t>{o.attempts, o.failures, o.isolated_faulty, o.isolated_innocent,
                                 static_cast<uint64_t>(o.time.of(Phase::kUseful))};
  };
  BOOST_TEST((numbers() == numbers()));
}

BOOST_AUTO_TEST_CASE(the_controller_loses_less_time_than_the_wait_for_the_time_out) {
  const ClusterParams p = controlled_cluster();
  BOOST_TEST(run_controlled(p, control_defaults(), 1, 5).ettr() > run_waiting(p, 1, 5).ettr());
}

BOOST_AUTO_TEST_CASE(the_oracle_bounds_the_controller_and_its_time_adds_up) {
  for (const int64_t jobs : {1, 4}) {
    ClusterParams p = controlled_cluster();
    p.jobs = jobs;
    const ClusterOutcome oracle = run_oracle(p, 1, 5);
    BOOST_TEST(oracle.time.all() == oracle.wall_ns);
    BOOST_TEST(oracle.isolated_innocent == 0u);
    BOOST_TEST(oracle.ettr() > run_controlled(p, control_defaults(), 1, 5).ettr());
  }
}

BOOST_AUTO_TEST_CASE(what_a_user_can_write_isolates_no_host) {
  ClusterParams p = controlled_cluster();
  p.incidents_per_day = 100;
  const ClusterOutcome o = run_controlled(p, control_defaults(), 1, 5);
  BOOST_TEST(o.isolated_faulty > 0u);
  BOOST_TEST(o.isolated_by_user == 0u);
}

BOOST_AUTO_TEST_CASE(without_corroboration_a_user_isolates_hosts) {
  ClusterParams p = controlled_cluster();
  p.incidents_per_day = 100;
  ControlOptions control = control_defaults();
  control.trusts_users = true;
  BOOST_TEST(run_controlled(p, control, 1, 5).isolated_by_user > 0u);
}

BOOST_AUTO_TEST_CASE(recorded_months_replay_to_the_same_orders_and_another_policy_does_not) {
  ControlOptions control = control_defaults();
  recover::InputRecorder recorder;
  std::vector<std::string> lines = {recorder.header(1, 1), recorder.start(control.controller, kNoTime)};
  control.watch = [&](auto inputs, TimeNs now, auto orders) {
    lines.push_back(recorder.step(inputs, now, orders));
  };
  run_controlled(controlled_cluster(), control, 3, 1);
  for (const bool changed : {false, true}) {
    recover::Replayer replayer({}, [&](recover::ControllerOptions& o) {
      if (changed) o.policy.isolate_confidence = 0.91;
    });
    for (const std::string& line : lines) BOOST_TEST(replayer.line(line).has_value());
    BOOST_TEST(replayer.result().orders > 100u);
    BOOST_TEST((replayer.result().different > 0) == changed, replayer.result().first_difference);
  }
}

BOOST_AUTO_TEST_CASE(each_threshold_can_be_halved_and_doubled) {
  for (const Threshold& one : cluster_thresholds()) {
    ControlOptions control = control_defaults();
    const double value = one.get(control);
    BOOST_TEST_CONTEXT(one.name) {
      BOOST_TEST(value > 0);
      one.set(control, value * 2);
      BOOST_TEST(one.get(control) == value * 2, boost::test_tools::tolerance(1e-9));
    }
  }
}
