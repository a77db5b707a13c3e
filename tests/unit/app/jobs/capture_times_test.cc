#include "app/jobs/capture_times.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(capture_times)

namespace {

constexpr TimeNs kS = kNsPerSecond;

}  // namespace

BOOST_AUTO_TEST_CASE(a_stop_is_captured_at_once_and_then_at_intervals) {
  CaptureTimes times;
  const CapturePlan plan{3, 10 * kS};
  std::vector<TimeNs> at;
  for (TimeNs now = 100 * kS; now < 200 * kS; now += kS)
    if (times.due({true}, plan, now)) at.push_back(now / kS);
  BOOST_TEST(at == (std::vector<TimeNs>{100, 110, 120}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_job_that_stops_again_is_captured_again) {
  CaptureTimes times;
  const CapturePlan plan{2, 10 * kS};
  BOOST_TEST(*times.due({true}, plan, 100 * kS) == 1u);
  BOOST_TEST(*times.due({true}, plan, 110 * kS) == 2u);
  BOOST_TEST(!times.due({true}, plan, 120 * kS));
  BOOST_TEST(!times.due({false}, plan, 130 * kS));
  BOOST_TEST(*times.due({true}, plan, 131 * kS) == 3u, "at once, with the next number");
}

BOOST_AUTO_TEST_CASE(a_clock_that_was_set_back_delays_nothing) {
  CaptureTimes times;
  const CapturePlan plan{2, 10 * kS};
  BOOST_TEST(*times.due({true}, plan, 1000 * kS) == 1u);
  BOOST_TEST(*times.due({true}, plan, 10 * kS) == 2u);
}

BOOST_AUTO_TEST_CASE(without_samples_nothing_is_captured) {
  CaptureTimes times;
  BOOST_TEST(!times.due({true}, {0, 10 * kS}, 100 * kS));
}

BOOST_AUTO_TEST_CASE(a_person_gets_the_rounds_that_were_asked_for) {
  CaptureTimes times;
  const CapturePlan plan{5, 10 * kS};
  using Request = CaptureTimes::Request;
  BOOST_TEST(!times.due({}, plan, 99 * kS));
  BOOST_TEST((times.request(3, plan, 5 * kS, 100 * kS) == Request::kTaken));
  std::vector<TimeNs> at;
  for (TimeNs now = 100 * kS; now < 200 * kS; now += kS) {
    if (const auto number = times.due({}, plan, now, 6)) {
      at.push_back(now / kS);
      BOOST_TEST(*number == 6 + at.size(), "behind those that were seen before");
    }
    if (now < 120 * kS) BOOST_TEST((times.request(1, plan, 5 * kS, now) == Request::kUnderWay));
  }
  BOOST_TEST(at == (std::vector<TimeNs>{100, 110, 120}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_request_that_follows_too_soon_is_refused) {
  CaptureTimes times;
  const CapturePlan plan{5, 2 * kS};
  using Request = CaptureTimes::Request;
  BOOST_TEST((times.request(1, plan, 5 * kS, 100 * kS) == Request::kTaken));
  BOOST_TEST((times.request(1, plan, 5 * kS, 100 * kS) == Request::kUnderWay));
  BOOST_TEST(*times.due({}, plan, 100 * kS) == 1u);
  BOOST_TEST((times.request(1, plan, 5 * kS, 101 * kS) == Request::kUnderWay), "hosts still answer");
  BOOST_TEST((times.request(1, plan, 5 * kS, 103 * kS) == Request::kTooSoon));
  BOOST_TEST((times.request(1, plan, 5 * kS, 110 * kS) == Request::kTaken));
}

BOOST_AUTO_TEST_CASE(a_stop_that_is_being_captured_takes_no_request) {
  CaptureTimes times;
  const CapturePlan plan{3, 10 * kS};
  using Request = CaptureTimes::Request;
  (void)times.due({true}, plan, 100 * kS);
  BOOST_TEST((times.request(1, plan, 5 * kS, 108 * kS) == Request::kUnderWay));
  (void)times.due({true}, plan, 110 * kS);
  (void)times.due({true}, plan, 120 * kS);
  BOOST_TEST((times.request(1, plan, 5 * kS, 128 * kS) == Request::kTaken));
  BOOST_TEST(*times.due({true}, plan, 128 * kS) == 4u);
}

BOOST_AUTO_TEST_CASE(a_job_that_became_slower_is_captured_in_rounds_once) {
  CaptureTimes times;
  CapturePlan plan{5, 10 * kS, 3};
  std::vector<TimeNs> at;
  for (TimeNs now = 100 * kS; now < 400 * kS; now += kS) {
    const bool slow = now >= 150 * kS && now != 250 * kS;
    if (times.due({false, slow}, plan, now)) at.push_back(now / kS);
  }
  BOOST_TEST(at == (std::vector<TimeNs>{150, 160, 170}), boost::test_tools::per_element());
  plan.rounds = 0;
  CaptureTimes without;
  BOOST_TEST(!without.due({false, true}, plan, 100 * kS));
  plan = {5, 10 * kS, 3, false};
  BOOST_TEST(!without.due({false, true}, plan, 100 * kS), "RAS alone says nothing of a job that goes on");
}

BOOST_AUTO_TEST_SUITE_END()
