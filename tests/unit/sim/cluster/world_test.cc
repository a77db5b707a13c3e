// Promises of the simulated cluster: its time adds up, a seed repeats it, and where a formula exists it gives
// the formula's result.
#include "sim/cluster/world.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <string>

#include "sim/cluster/draw.h"

namespace {

using namespace culprit;
using namespace culprit::sim;

ClusterParams small_cluster() {
  ClusterParams p;
  p.hosts = 64;
  p.spares = 4;
  p.days = 20;
  return p;
}

ClusterOutcome run_waiting(const ClusterParams& p, uint64_t seed) {
  TimeoutSupervisor supervisor;
  return ClusterWorld(p, seed, supervisor).run();
}

uint32_t kind_named(const std::string& name) {
  for (uint32_t i = 0; i < incident_kinds().size(); ++i)
    if (name == incident_kinds()[i].name) return i;
  BOOST_FAIL("no kind " << name);
  return 0;
}

std::vector<Incident> incidents_of(const ClusterParams& p, const std::string& kind, uint64_t seed) {
  std::vector<Incident> out;
  Random random = Random(seed).fork(9);
  const TimeNs mean = 86'400 * kNsPerSecond / p.incidents_per_day;
  for (TimeNs at = exponential(random, mean); at < p.days * 86'400 * kNsPerSecond;
       at += exponential(random, mean)) {
    const auto host = static_cast<uint32_t>(random.below(static_cast<uint64_t>(p.hosts)));
    out.push_back({at, kind_named(kind), host, 0, random.next(), true});
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(shares_of_incidents_add_up_to_one) {
  int64_t all = 0;
  for (const IncidentKind& kind : incident_kinds()) all += kind.share_ppm;
  BOOST_TEST(all == 1'000'000);
}

BOOST_AUTO_TEST_CASE(each_parameter_has_a_source_and_a_default_within_its_range) {
  const ClusterParams p;
  for (const ClusterParam& one : cluster_params()) {
    BOOST_TEST_CONTEXT(one.name) {
      BOOST_TEST((p.*one.value >= one.low));
      BOOST_TEST((p.*one.value <= one.high));
      BOOST_TEST(std::string(one.source).size() > 0);
      BOOST_TEST(cluster_param(one.name) == &one);
    }
  }
}

BOOST_AUTO_TEST_CASE(parameters_refuse_unknown_names_and_values_out_of_range) {
  ClusterParams p;
  for (const char* wrong : {"hosts", "hosts=", "hosts=x", "hosts=0", "hosts=1e3", "host=1", "hosts=99999999"})
    BOOST_TEST(!set_cluster_param(p, wrong).has_value(), wrong);
  BOOST_TEST(p.hosts == ClusterParams().hosts);
  BOOST_TEST(set_cluster_param(p, "hosts=7").has_value());
  BOOST_TEST(p.hosts == 7);
}

BOOST_AUTO_TEST_CASE(exponential_times_have_their_mean_and_tail) {
  Random random(5);
  const int n = 200'000;
  double sum = 0;
  int beyond = 0;
  for (int i = 0; i < n; ++i) {
    const TimeNs t = exponential(random, kNsPerSecond);
    sum += static_cast<double>(t) / 1e9;
    beyond += t > 3 * kNsPerSecond;
  }
  BOOST_TEST(sum / n == 1.0, boost::test_tools::tolerance(0.01));
  BOOST_TEST(static_cast<double>(beyond) / n == std::exp(-3.0), boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(time_by_cause_and_phase_adds_up_to_the_wall_time) {
  for (const int64_t jobs : {1, 5}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      ClusterParams p = small_cluster();
      p.jobs = jobs;
      const ClusterOutcome o = run_waiting(p, seed);
      BOOST_TEST(o.wall_ns == jobs * p.days * 86'400 * kNsPerSecond);
      BOOST_TEST(o.time.all() == o.wall_ns);
      for (size_t phase = 0; phase < kPhases; ++phase)
        BOOST_TEST(o.time.of(static_cast<Phase>(phase)) >= 0, to_string(static_cast<Phase>(phase)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_seed_repeats_all_numbers_and_another_seed_does_not) {
  const auto numbers = [](uint64_t seed) {
    const ClusterOutcome o = run_waiting(small_cluster(), seed);
    std::vector<int64_t> out{static_cast<int64_t>(o.attempts), static_cast<int64_t>(o.failures)};
    for (size_t cause = 0; cause < o.time.causes(); ++cause)
      for (size_t phase = 0; phase < kPhases; ++phase)
        out.push_back(o.time.of(cause, static_cast<Phase>(phase)));
    return out;
  };
  BOOST_TEST((numbers(3) == numbers(3)));
  BOOST_TEST((numbers(3) != numbers(4)));
}

BOOST_AUTO_TEST_CASE(without_incidents_only_saves_cost_time) {
  ClusterParams p = small_cluster();
  p.incidents_per_day = 0;
  p.checkpoint_every_s = 99;
  p.save_stall_ms = 1000;
  BOOST_TEST(run_waiting(p, 1).ettr() == 0.99, boost::test_tools::tolerance(1e-5));
}

// Failures of rate f that leave nothing: with checkpoints each c, stalls w and D lost per failure, the useful
// time of a cycle is c / (exp(f (c + w)) - 1), and its length 1 / f + D.
BOOST_AUTO_TEST_CASE(the_wait_for_the_time_out_costs_what_the_formula_says) {
  struct Row {
    const char* kind;
    int64_t per_day, checkpoint_s, stall_ms, requeue_s;
    double lost_s;  // until the order to run again
  };
  const ClusterParams d;
  const double exits = static_cast<double>(d.exit_s), hangs = static_cast<double>(d.watchdog_s);
  const Row rows[] = {{"peer-reset", 12, 120, 500, 600, exits},
                      {"peer-reset", 48, 1800, 30'000, 600, exits},
                      {"hang-unknown", 24, 600, 5000, 300, hangs}};
  for (const Row& row : rows) {
    ClusterParams p = small_cluster();
    p.days = 2000;
    p.incidents_per_day = row.per_day;
    p.checkpoint_every_s = row.checkpoint_s;
    p.save_stall_ms = row.stall_ms;
    p.requeue_s = row.requeue_s;
    TimeoutSupervisor supervisor;
    ClusterWorld world(p, 1, supervisor);
    world.set_incidents(incidents_of(p, row.kind, 1));
    const ClusterOutcome o = world.run();
    const double f = static_cast<double>(row.per_day) / 86'400, c = static_cast<double>(row.checkpoint_s),
                 w = static_cast<double>(row.stall_ms) / 1000;
    const double formula =
        c / (std::exp(f * (c + w)) - 1) / (1 / f + row.lost_s + static_cast<double>(row.requeue_s));
    BOOST_TEST(o.ettr() == formula, boost::test_tools::tolerance(0.01));
  }
}

// A broken host fails each start until a person drains it.
BOOST_AUTO_TEST_CASE(a_broken_host_holds_the_job_until_a_person_drains_it) {
  ClusterParams p = small_cluster();
  TimeoutSupervisor supervisor;
  ClusterWorld world(p, 1, supervisor);
  world.set_incidents({{3600 * kNsPerSecond, kind_named("gpu-lost"), 7, 0, 1, true}});
  const ClusterOutcome o = world.run();
  BOOST_TEST(o.drained_by_person == 1u);
  const double lost_s =
      static_cast<double>(o.wall_ns - o.time.of(Phase::kUseful) - o.time.of(Phase::kSave)) / 1e9;
  BOOST_TEST(lost_s >= static_cast<double>(p.notice_s));
  BOOST_TEST(lost_s <= static_cast<double>(p.notice_s + 2 * (p.requeue_s + p.exit_s) + p.checkpoint_every_s));
  BOOST_TEST(o.attempts >= 5u);
}
