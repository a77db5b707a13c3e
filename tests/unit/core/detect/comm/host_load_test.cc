#include "core/detect/comm/host_load.h"

#include <boost/test/unit_test.hpp>

#include "base/time.h"

using namespace culprit;

namespace {

// A minute of samples: what rank 0 and rank 1 report of one host.
comm::HostLoad minute(double runnable, double pressure, double switches_of_0) {
  comm::HostLoad load;
  for (int s = 0; s < 60; ++s)
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const MetricValue values[] = {{"loss", 1},
                                    {"host/nonvoluntary_ctxt_switches", s * (rank == 0 ? switches_of_0 : 2)},
                                    {"host/psi_cpu_some_avg10", pressure},
                                    {"host/runnable_per_core", runnable}};
      MetricRow row;
      row.rank = rank, row.step = s, row.time_ns = s * kNsPerSecond, row.values = values;
      load.add(row);
    }
  return load;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_host_with_more_tasks_than_cores_is_contended) {
  BOOST_TEST(minute(2.5, 80, 40).of(0).contended());
  BOOST_TEST(minute(0.4, 45, 40).of(0).contended());
  BOOST_TEST(!minute(0.4, 3, 40).of(0).contended());
  BOOST_TEST(!comm::HostLoad().of(0).contended());
}

BOOST_AUTO_TEST_CASE(how_often_a_rank_loses_its_core_stands_next_to_its_peers) {
  const comm::CoreUse use = minute(2.5, 80, 40).of(0);
  BOOST_TEST(use.switches == 40, boost::test_tools::tolerance(0.01));
  BOOST_TEST(use.others == 2, boost::test_tools::tolerance(0.01));
  BOOST_TEST(use.sentence().find("40 times a second, from others 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rank_that_waits_for_its_core_is_starved_on_a_host_with_cores_to_spare) {
  const auto load = [](double waits_of_0, double waits_of_1) {
    comm::HostLoad out;
    for (int s = 0; s < 20; ++s)
      for (uint32_t rank = 0; rank < 2; ++rank) {
        const MetricValue values[] = {{"host/core_wait_ms", s * 1000 * (rank == 0 ? waits_of_0 : waits_of_1)},
                                      {"host/psi_cpu_some_avg10", 2},
                                      {"host/runnable_per_core", 0.1}};
        MetricRow row;
        row.rank = rank, row.step = s, row.time_ns = s * kNsPerSecond, row.values = values;
        out.add(row);
      }
    return out.of(0);
  };
  BOOST_TEST((load(0.5, 0.01).starved() && load(0.5, 0.01).contended()));
  BOOST_TEST(load(0.5, 0.01).sentence().find("no core in 50 % of the time, others in 1 %") !=
             std::string::npos);
  BOOST_TEST(!load(0.1, 0.01).starved());
  BOOST_TEST(!load(0.5, 0.4).starved());
}
