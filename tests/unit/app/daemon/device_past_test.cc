#include "app/daemon/api/device_past.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(device_past)

namespace {

records::DeviceFault fault(const std::string& job, uint32_t run, int64_t step, TimeNs time_ns,
                           const std::string& device = "GPU-1") {
  return {device, "node-1", job, run, "d" + std::to_string(step), step, time_ns};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_job_with_many_faults_is_one_job_at_its_last_step) {
  const records::DeviceFault own = fault("now", 0, 7, 50);
  const auto past = past_of(
      own, {fault("a", 0, 10, 1), fault("a", 0, 20, 2), fault("b", 0, 5, 3), fault("a", 0, 30, 4), own});
  BOOST_TEST(past == "GPU-1 was suspected of corrupting data in 2 jobs before: b (step 5), a (step 30)");
}

BOOST_AUTO_TEST_CASE(runs_of_a_job_count_each_and_the_last_are_named) {
  const records::DeviceFault own = fault("a", 4, 7, 50);
  const auto past =
      past_of(own, {fault("a", 0, 1, 1), fault("a", 1, 2, 2), fault("a", 2, 3, 3), fault("a", 3, 4, 4), own});
  BOOST_TEST(past ==
             "GPU-1 was suspected of corrupting data in 4 jobs before: a (step 2), a (step 3), a (step 4) "
             "and earlier ones");
}

BOOST_AUTO_TEST_CASE(its_own_run_later_faults_and_other_devices_are_no_past) {
  const records::DeviceFault own = fault("now", 0, 7, 50);
  BOOST_TEST(
      past_of(own, {fault("now", 0, 3, 1), fault("a", 0, 4, 2, "GPU-2"), own, fault("b", 0, 1, 60)}).empty());
}

BOOST_AUTO_TEST_SUITE_END()
