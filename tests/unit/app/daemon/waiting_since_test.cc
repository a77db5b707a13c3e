#include "app/daemon/self/waiting_since.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(waiting_since)

BOOST_AUTO_TEST_CASE(what_waits_waits_since_it_was_written_and_not_since_the_last_acknowledgement) {
  struct Look {
    uint64_t written, acknowledged;
    TimeNs now, since;
  };
  const Look looks[] = {
      {5, 5, 100, kNoTime},     // idle
      {5, 5, 90'000, kNoTime},  // idle for long
      {6, 5, 90'001, 90'001},   // something is written
      {9, 5, 90'050, 90'001},   // more is written
      {9, 7, 90'060, 90'060},   // a part is acknowledged
      {9, 7, 90'090, 90'060},   // no further acknowledgement
      {9, 9, 90'100, kNoTime},  // all is acknowledged
      {10, 9, 95'000, 95'000},
  };
  WaitingSince since;
  for (const Look& look : looks) {
    since.look(look.written, look.acknowledged, look.now);
    BOOST_TEST(since.since_ns() == look.since);
  }
}

BOOST_AUTO_TEST_SUITE_END()
