#include "cli/attempt_text.h"

#include <boost/test/unit_test.hpp>

#include "base/text.h"
#include "cli/layout.h"

namespace culprit::cli {
namespace {

app::Attempt failed(uint32_t number, std::string headline) {
  app::Attempt out;
  out.number = number;
  out.begin_ns = (number - 1) * 200 * kNsPerSecond;
  out.end_ns = out.begin_ns + 180 * kNsPerSecond;
  out.status = 1;
  out.lost_ns = 190 * kNsPerSecond;
  out.headline = std::move(headline);
  out.decision.again = true;
  out.decision.why = "without node-3";
  out.decision.hosts = {"node-3"};
  return out;
}

app::AttemptHistory two() {
  app::AttemptHistory out;
  out.attempts = {failed(1, "GPU 5 fell off the bus"), failed(2, "")};
  out.attempts[0].confidence = 0.92;
  out.attempts[0].to = 12'000;
  out.attempts[1].resume = "/ckpt/12000";
  out.attempts[1].decision = {};
  out.attempts[1].decision.why = "stopped: 2 attempts without progress";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt_text)

BOOST_AUTO_TEST_CASE(the_line_before_an_attempt_has_decision_cause_resumed_step_and_lost_time) {
  app::Attempt next;
  next.number = 2;
  next.resume = "/ckpt/12000";
  const app::Attempt last = two().attempts[0];
  BOOST_TEST(announcement(last, next, 4, 12'000) ==
             "attempt 2 of 4: without node-3 (GPU 5 fell off the bus, 92 %), from iteration 12000; "
             "3m 10s lost");
  BOOST_TEST(announcement(last, next, 4, std::nullopt) ==
             "attempt 2 of 4: without node-3 (GPU 5 fell off the bus, 92 %), from /ckpt/12000; 3m 10s lost");
  next.resume.clear();
  BOOST_TEST(announcement(failed(1, ""), next, 4, std::nullopt) ==
             "attempt 2 of 4: without node-3; 3m 10s lost");
}

BOOST_AUTO_TEST_CASE(a_torn_checkpoint_that_was_left_out_is_named_with_the_one_that_is_resumed) {
  const auto left_out = [](std::optional<int64_t> step) {
    return app::LeftOutCheckpoint{"/ckpt/12000", step, checkpoint::State::kTorn, "model.pt is short"};
  };
  BOOST_TEST(left_out_sentence({}, "/ckpt/11000", 11'000) == "");
  BOOST_TEST(left_out_sentence({left_out(12'000)}, "/ckpt/11000", 11'000) ==
             "iteration 12000 is torn (model.pt is short): resumes from iteration 11000");
  BOOST_TEST(left_out_sentence({left_out({}), left_out({})}, "/ckpt/11000", {}) ==
             "/ckpt/12000 is torn (model.pt is short), and so is 1 older: resumes from /ckpt/11000");
  BOOST_TEST(left_out_sentence({left_out(12'000), left_out(11'000), left_out(10'000)}, "", {}) ==
             "iteration 12000 is torn (model.pt is short), and so are 2 older: no whole checkpoint is there "
             "to begin from");
}

BOOST_AUTO_TEST_CASE(the_sentence_of_a_stop_has_the_cause) {
  app::Attempt last = failed(1, "No module named 'apex'");
  BOOST_TEST(stop_sentence(last) == "");  // it runs again
  last.decision.again = false;
  last.decision.why = "not started again: the same will happen again";
  BOOST_TEST(stop_sentence(last) ==
             "not started again: the same will happen again; cause: No module named 'apex'");
  last.decision.why.clear();  // a person stopped it
  BOOST_TEST(stop_sentence(last) == "");
}

BOOST_AUTO_TEST_CASE(the_table_has_a_line_for_each_attempt_and_fits_the_width) {
  app::AttemptHistory history = two();
  history.attempts[0].headline = std::string(500, 'x');
  const std::string text = attempt_table(history, {.width = 100, .zone = {}});
  const auto lines = split(text, '\n');
  BOOST_TEST(lines.size() == 4);  // the heading, two attempts, and the end
  for (const std::string_view line : lines) BOOST_TEST(columns_of(line) <= 100);
  BOOST_TEST(lines[1].find("00:00:00") != std::string_view::npos);
  BOOST_TEST(lines[1].find("- to 12000") != std::string_view::npos);
  BOOST_TEST(lines[2].find("node-3") != std::string_view::npos);  // the second one ran without it
  BOOST_TEST(lines[2].find("nothing in its output says why") != std::string_view::npos);
}

BOOST_AUTO_TEST_CASE(the_table_of_a_page_has_the_decisions_and_the_checkpoints) {
  const std::string text = attempt_table(two(), {.width = 100, .zone = {}, .decisions = true});
  BOOST_TEST(text.find("\n         run again without node-3\n") != std::string::npos);
  BOOST_TEST(text.find("\n         resumed /ckpt/12000; stopped: 2 attempts without progress\n") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_of_a_log_cannot_change_the_terminal) {
  app::AttemptHistory history = two();
  history.attempts[0].headline = "evil \x1b[2J\nattempt 9";
  BOOST_TEST(attempt_table(history, {.width = 100, .zone = {}}).find('\x1b') == std::string::npos);
  BOOST_TEST(split(attempt_table(history, {.width = 100, .zone = {}}), '\n').size() == 4);
}

BOOST_AUTO_TEST_CASE(the_totals_have_attempts_lost_time_and_what_was_left_out) {
  BOOST_TEST(attempt_totals(two()) == "2 attempts, 6m 20s lost, run without node-3");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::cli
