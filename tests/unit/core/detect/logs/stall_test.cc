// A stop that may be no hang: an announced phase, and the first step of a job.
#include "core/detect/logs/stall.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "core/detect/logs/ending.h"
#include "core/logs/line_parser.h"

using namespace culprit;
using namespace culprit::detect;

BOOST_AUTO_TEST_SUITE(stall)

namespace {

constexpr TimeNs kS = kNsPerSecond;

struct Fixture {
  Fixture() { log.settle(); }
  bool excused(TimeNs now) const { return watch.excused(log, StallOptions{}, now); }

  logs::JobLog log{JobFile{}};
  ProgressWatch watch;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_first_step_may_take_minutes, Fixture) {
  watch.moves(1000 * kS);
  watch.moves(1020 * kS);
  BOOST_TEST(excused(1400 * kS));
  BOOST_TEST(!excused(2000 * kS));
}

BOOST_FIXTURE_TEST_CASE(a_job_that_worked_for_long_is_past_its_first_step, Fixture) {
  for (TimeNs at = 1000; at < 1200; at += 10) watch.moves(at * kS);
  BOOST_TEST(!excused(1400 * kS));
}

BOOST_FIXTURE_TEST_CASE(a_job_with_finished_steps_is_past_its_first_step, Fixture) {
  for (int64_t step = 1; step < 4; ++step) watch.beat({step, 0}, (1000 + step) * kS);
  BOOST_TEST(!excused(1100 * kS));
}

BOOST_FIXTURE_TEST_CASE(an_announced_phase_is_excused_until_it_ends, Fixture) {
  for (int64_t step = 1; step < 4; ++step) watch.beat({step, 0}, (1000 + step) * kS);
  watch.phase({"evaluation", true, 0}, 1010 * kS);
  BOOST_TEST(excused(1600 * kS));
  watch.phase({"evaluation", false, 0}, 1600 * kS);
  BOOST_TEST(!excused(1700 * kS));
}

BOOST_AUTO_TEST_CASE(a_line_that_announces_work_is_told_from_one_that_waits) {
  for (const char* text : {"eval", "Evaluating: <*>%", "Performing inference on dev set",
                           "Now computing BLEU", "rank <*>: loading shards", "building index mappings",
                           "running test set", "Saving checkpoint to out"})
    BOOST_TEST(announces_work(text), text);
  for (const char* text : {"Waiting for peers", "WARNING: slow network", "epoch <*> done",
                           "Training loss <*>", "all ranks are in the ring"})
    BOOST_TEST(!announces_work(text), text);
}

// A log as `print` writes it, without times.
BOOST_FIXTURE_TEST_CASE(work_that_a_line_without_a_time_announces_is_no_hang, Fixture) {
  const auto feed = [&](const std::string& text, uint64_t index) {
    logs::LogBatch batch;
    logs::LineParser parser{logs::ParseOptions{}};
    parser.parse({0, index, 0, text, text.size(), false}, {}, batch);
    log.add(batch);
    log.settle();
    watch.lines(log.iterations().moves(), (1000 + static_cast<TimeNs>(index)) * kS);
  };
  log.open_source({});
  for (int i = 1; i <= 40; ++i)
    feed("step " + std::to_string(i) + "/60 loss 0.5\n", static_cast<uint64_t>(i));
  BOOST_TEST(!excused(1200 * kS));
  feed("Performing inference on dev set\n", 41);
  BOOST_TEST(excused(1200 * kS));
  feed("step 41/60 loss 0.5\n", 42);
  BOOST_TEST(!excused(1200 * kS));
}

BOOST_AUTO_TEST_SUITE_END()
