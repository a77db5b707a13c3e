// What a job did when, from its progress and the lines of its pauses.
#include "core/diagnose/phases.h"

#include <fmt/format.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <ostream>

#include "core/logs/line_parser.h"

using namespace culprit;
using namespace culprit::diagnose;

namespace {

constexpr TimeNs kBegan = 1'767'225'600 * kNsPerSecond;  // 2026-01-01

// The log of a job, written second by second.
struct Job {
  int64_t at = 0;
  std::string text;

  Job& say(int64_t seconds, std::string_view message) {
    at += seconds;
    text += fmt::format("{} INFO {}\n", format_time(kBegan + at * kNsPerSecond).substr(0, 19), message);
    return *this;
  }
  Job& steps(int from, int to) {
    for (int i = from; i <= to; ++i) say(2, fmt::format("iteration {}/1000 loss {:.3f}", i, 4.0 / i));
    return *this;
  }
  Job& start() { return say(1, "initializing process group, world size 8").say(60, "model is ready"); }

  std::string phases(bool stopped = false) const {
    logs::JobLog log{JobFile{}};
    log.open_source({});
    logs::LogBatch batch;
    logs::LineParser({}, nullptr).parse({0, 0, 0, text, text.size(), true}, {}, batch);
    log.add(batch);
    log.settle();
    detect::RunEnd outcome;
    outcome.progress_stopped = stopped;
    std::string out;
    TimeNs last = kNoTime;
    for (const JobPhase& p : phases_of(log, outcome, kNoTime)) {
      if (last != kNoTime) BOOST_TEST(p.first_ns == last);
      last = p.last_ns;
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", to_string(p.kind),
                         (p.last_ns - p.first_ns) / kNsPerSecond);
    }
    return out;
  }
};

struct Case {
  std::string name;
  Job job;
  std::string phases;
  bool stopped = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const std::vector<Case> kCases = {
    {"steps alone", Job().steps(1, 40), "training 78"},
    {"a start", Job().start().steps(1, 40), "start 62, training 78"},
    {"an evaluation",
     Job().steps(1, 40).say(2, "running validation").say(60, "validation loss 2.1").steps(41, 80),
     "training 78, evaluation 64, training 78"},
    {"a checkpoint",
     Job()
         .steps(1, 40)
         .say(2, "saving checkpoint to /ckpt/40")
         .say(50, "saved checkpoint to /ckpt/40")
         .steps(41, 80),
     "training 78, checkpoint 54, training 78"},
    {"a restart", Job().start().steps(1, 40).say(20, "worker group failed").start().steps(31, 80),
     "start 62, training 78, restart 103, training 78"},
    {"a pause that nothing names", Job().steps(1, 40).say(300, "heartbeat").steps(41, 80),
     "training 78, stall 302, training 78"},
    {"a short pause is training", Job().steps(1, 40).say(3, "heartbeat").steps(41, 80), "training 161"},
    {"a job that stopped", Job().steps(1, 40).say(200, "heartbeat"), "training 78, stall 200", true},
    {"trouble names no work, and what follows a failure is the end",
     Job().steps(1, 40).say(1, "Error while running evaluation").say(60, "evaluation aborted"),
     "training 78, end 61"},
    {"an end", Job().steps(1, 40).say(60, "bye"), "training 78, end 60"},
    {"no progress", Job().start().say(100, "heartbeat"), ""},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(phases)

BOOST_DATA_TEST_CASE(pauses_are_named_by_their_lines, boost::unit_test::data::make(kCases), c) {
  BOOST_TEST(c.job.phases(c.stopped) == c.phases);
}

BOOST_AUTO_TEST_CASE(their_number_has_a_bound) {
  Job job;
  for (int i = 0; i < 400; ++i) {
    job.steps(5 * i + 1, 5 * i + 5);
    job.say(2, "running validation").say(60 + i, "validation is done");
  }
  const std::string output = job.phases();
  BOOST_TEST(std::count(output.begin(), output.end(), ',') < static_cast<long>(kPhasesMax));
}

BOOST_AUTO_TEST_SUITE_END()
