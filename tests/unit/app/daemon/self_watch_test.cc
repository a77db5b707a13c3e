#include "app/daemon/self/self_watch.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs s = kNsPerSecond;
using Part = SelfWatch::Part;

std::string output(const std::optional<std::string>& why) { return why.value_or("nothing"); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_daemon_with_nothing_to_do_is_well_however_long) {
  SelfWatch watch;
  BOOST_TEST(output(watch.unhealthy(0)) == "nothing");
  for (TimeNs now = 0; now < 100 * s; now += s) {
    watch.loop_beat(now);
    BOOST_TEST(output(watch.unhealthy(now)) == "nothing");
  }
}

BOOST_AUTO_TEST_CASE(a_loop_that_comes_too_late_is_stuck_until_it_comes_in_time_again) {
  SelfWatch watch;
  watch.loop_beat(0);
  BOOST_TEST(output(watch.stuck(5 * s)) == "nothing");
  BOOST_TEST(output(watch.stuck(6 * s)) == "the loop is 5.0s late");
  watch.loop_beat(8 * s);
  BOOST_TEST(output(watch.stuck(8 * s)) == "the loop is 7.0s late");
  watch.loop_beat(9 * s);
  BOOST_TEST(output(watch.stuck(9 * s)) == "nothing");
  BOOST_TEST(watch.counters(9 * s).loop_late_ns == 0);
  BOOST_TEST(watch.counters(9 * s).loop_late_max_ns == 7 * s);
}

BOOST_AUTO_TEST_CASE(an_engine_that_stays_at_one_batch_is_stuck_and_one_that_is_only_behind_is_not) {
  SelfWatch::Limits limits;
  limits.beat_every_ns = 20 * s;
  SelfWatch watch(limits);
  watch.started(Part::kEngine, 0, "a batch");
  for (TimeNs now = 0; now < 60 * s; now += 10 * s) {  // always one task behind; each ten seconds one ends
    watch.started(Part::kEngine, now, "another");
    watch.loop_beat(now);
    if (now > 0) watch.done(Part::kEngine, now);
    BOOST_TEST(output(watch.stuck(now)) == "nothing");
  }
  watch.loop_beat(70 * s);
  BOOST_TEST(output(watch.stuck(70 * s)) == "the engine has been at another for 20.0s");
  BOOST_TEST(watch.counters(70 * s).engine_waits_ns == 20 * s);
  watch.done(Part::kEngine, 71 * s);
  watch.loop_beat(71 * s);
  BOOST_TEST(output(watch.stuck(71 * s)) == "nothing");
  BOOST_TEST(watch.counters(71 * s).engine_done == 6u);
}

BOOST_AUTO_TEST_CASE(long_work_that_gets_on_is_not_stuck) {
  SelfWatch watch;
  watch.started(Part::kEngine, 0, "what the store had");
  for (TimeNs now = 0; now < 100 * s; now += s) {
    watch.loop_beat(now);
    if (now % (15 * s) == 0) watch.gets_on(Part::kEngine, now);
    BOOST_TEST(output(watch.stuck(now)) == "nothing");
  }
}

BOOST_AUTO_TEST_CASE(a_store_that_hangs_or_fails_is_unhealthy_and_does_not_starve_the_watchdog) {
  SelfWatch watch;
  watch.loop_beat(0);
  watch.started(Part::kStore, 0, "a commit");
  watch.started(Part::kStore, 1 * s, "the next");
  watch.loop_beat(20 * s);
  watch.loop_beat(21 * s);
  BOOST_TEST(output(watch.unhealthy(21 * s)) == "the store has been at a commit for 21.0s");
  BOOST_TEST(output(watch.stuck(21 * s)) == "nothing");
  watch.done(Part::kStore, 22 * s, fail(ErrorCode::kIo, "spool: no space left on device"));
  watch.loop_beat(22 * s);
  BOOST_TEST(output(watch.unhealthy(22 * s)) == "nothing can be kept: spool: no space left on device");
  BOOST_TEST(output(watch.stuck(22 * s)) == "nothing");
  watch.done(Part::kStore, 23 * s);
  watch.loop_beat(23 * s);
  BOOST_TEST(output(watch.unhealthy(23 * s)) == "nothing");
  BOOST_TEST(watch.counters(23 * s).store_failed == 1u);
  watch.done(Part::kStore, 24 * s);  // no task was started
  BOOST_TEST(watch.counters(24 * s).store_done == 2u);
}

BOOST_AUTO_TEST_CASE(the_process_knows_what_it_uses) {
  const SelfUsage usage = read_self_usage();
  BOOST_TEST(usage.anonymous_bytes > 100'000u);
  BOOST_TEST(usage.resident_bytes >= usage.anonymous_bytes);
  BOOST_TEST(usage.descriptors >= 3u);
  BOOST_TEST(usage.descriptors_max >= usage.descriptors);
  BOOST_TEST(usage.cpu_ns > 0);
}

BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_written_is_unhealthy_and_no_hang) {
  SelfWatch watch;
  watch.index(fail(ErrorCode::kIo, "/s/index.db: the database failed: database is locked"));
  BOOST_TEST(output(watch.unhealthy(0)) ==
             "no result can be kept: /s/index.db: the database failed: database is locked");
  BOOST_TEST(output(watch.stuck(0)) == "nothing");
  watch.index({});
  BOOST_TEST(output(watch.unhealthy(0)) == "nothing");
}

BOOST_AUTO_TEST_CASE(a_file_of_alerts_that_cannot_be_used_is_unhealthy_and_no_hang) {
  SelfWatch watch;
  watch.alerts(fail(ErrorCode::kIo, "/s/alerts.db: cannot be opened: unable to open database file"));
  BOOST_TEST(output(watch.unhealthy(0)) ==
             "no alert can be kept: /s/alerts.db: cannot be opened: unable to open database file");
  BOOST_TEST(output(watch.stuck(0)) == "nothing");
  watch.alerts({});
  BOOST_TEST(output(watch.unhealthy(0)) == "nothing");
}
