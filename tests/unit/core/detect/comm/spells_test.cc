#include "core/detect/comm/spells.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;

namespace {

std::vector<bool> at(size_t steps, const std::vector<size_t>& hits) {
  std::vector<bool> out(steps, false);
  for (const size_t h : hits) out[h] = true;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hits_that_are_near_to_one_another_are_one_event) {
  BOOST_TEST(comm::count_events(at(100, {})) == 0u);
  BOOST_TEST(comm::count_events(at(100, {3, 4, 5, 9, 15})) == 1u);
  BOOST_TEST(comm::count_events(at(100, {3, 4, 30, 60, 61, 90})) == 4u);
}

BOOST_AUTO_TEST_CASE(events_are_evidence_by_how_seldom_others_have_them) {
  BOOST_TEST(comm::recurrence_evidence(4, 0.1) > 10);
  BOOST_TEST(comm::recurrence_evidence(4, 3) < 1);
  BOOST_TEST(comm::recurrence_evidence(2, 3) == 0);
}

BOOST_AUTO_TEST_CASE(a_rhythm_is_seen_through_beats_that_are_missing_and_hits_between) {
  std::vector<size_t> hits;
  for (size_t s = 2; s < 150; s += 7)
    if (s % 5 != 0) hits.push_back(s);
  for (const size_t s : {11, 50, 101}) hits.push_back(s);
  const comm::Rhythm rhythm = comm::find_rhythm(at(150, hits), std::vector<uint32_t>(150, 0), 7);
  BOOST_TEST(rhythm.period == 7u);
  BOOST_TEST(rhythm.evidence > 10);
}

BOOST_AUTO_TEST_CASE(a_rhythm_that_others_have_too_is_none) {
  std::vector<size_t> hits;
  std::vector<uint32_t> others(150, 0);
  for (size_t s = 2; s < 150; s += 7) hits.push_back(s), others[s] = 6;
  BOOST_TEST(comm::find_rhythm(at(150, hits), others, 7).evidence < 5);
}

BOOST_AUTO_TEST_CASE(a_burst_has_no_rhythm) {
  BOOST_TEST(comm::find_rhythm(at(150, {40, 42, 44, 46, 48, 50}), std::vector<uint32_t>(150, 0), 7).period ==
             0u);
}

BOOST_AUTO_TEST_CASE(a_burst_at_the_end_has_no_rhythm) {
  std::vector<size_t> hits;
  for (size_t s = 138; s < 150; ++s) hits.push_back(s);
  BOOST_TEST(comm::find_rhythm(at(150, hits), std::vector<uint32_t>(150, 0), 7).period == 0u);
}

BOOST_AUTO_TEST_CASE(three_beats_are_a_rhythm_where_each_is_an_event_and_none_is_left_out) {
  const std::vector<uint32_t> others(80, 0);
  BOOST_TEST(comm::find_rhythm(at(80, {20, 40, 60}), others, 1).period == 20u);
  BOOST_TEST(comm::find_rhythm(at(80, {20, 40, 61}), others, 1).period == 0u);
  BOOST_TEST(comm::find_rhythm(at(80, {20, 28, 36}), others, 1).period == 0u);
}
