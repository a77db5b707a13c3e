#include "core/logs/shape.h"

#include <boost/test/unit_test.hpp>

#include "core/logs/mask.h"

using namespace culprit;
using namespace culprit::logs;

namespace {
FormShape shape(std::string_view message) { return shape_of(form_text(message)); }
}  // namespace

BOOST_AUTO_TEST_CASE(progress_lines_of_the_usual_frameworks_give_their_iteration) {
  const struct {
    const char* message;
    int64_t iteration, total;
  } rows[] = {
      {"iteration      120/    5000 | consumed samples:  1024 | elapsed time per iteration (ms): 900.1", 120,
       5000},
      {"step=120 loss=2.31", 120, 0},
      {"[Rank 0] global_step: 77, lm loss: 3.2", 77, 0},
      {"{'loss': 2.1, 'step': 40, 'epoch': 0.12}", 40, 0},
      {" 12%|#2        | 1/8 [01:53<13:12, 113.21s/it]", 1, 8},
      {"Epoch 0:  25%|##5       | 50/200 [00:10<00:30,  5.00it/s, v_num=0]", 50, 200},
      {"completed step: 9, seconds: 1.020, TFLOP/s/device: 100.1, loss: 10.1", 9, 0},
      {"{ Epoch:[  1/  2], step:[   10/ 2000], loss:[10.1/10.1], time:100ms }", 10, 2000},
  };
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.message) {
      BOOST_TEST(shape(row.message).progress);
      const auto p = progress_of(row.message);
      BOOST_REQUIRE(p.has_value());
      BOOST_TEST(p->iteration == row.iteration);
      BOOST_TEST(p->total == row.total);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_printed_as_a_whole_fraction_counts) {
  const auto p = progress_of("reduced_train_loss=4.613586, global_step=132.0, consumed_samples=33792.0");
  BOOST_REQUIRE(p.has_value());
  BOOST_TEST(p->iteration == 132);
  BOOST_TEST(!progress_of("global_step=132.05").has_value());
  BOOST_TEST(!progress_of("slurmstepd: error: *** STEP 3150571.0 ON gpu-3 CANCELLED ***").has_value());
}

BOOST_AUTO_TEST_CASE(a_planned_end_is_known_by_its_words) {
  for (const char* yes : {"Done training.", "training completed, 60 steps", "reached max_steps, stop",
                          "`Trainer.fit` stopped: `max_epochs=3` reached.", "max_steps reached"})
    BOOST_TEST_CONTEXT(yes) BOOST_TEST(shape(yes).well);
  for (const char* no : {"max_steps=1000", "maximum number of retries reached", "training will be done later",
                         "done training epoch 3", "finished training for stage 1 of 4"})
    BOOST_TEST_CONTEXT(no) BOOST_TEST(!shape(no).well);
}

BOOST_AUTO_TEST_CASE(numbers_that_count_no_iteration_are_no_progress) {
  for (const char* message : {"Timestep embedding size 512", "elapsed time per iteration (ms): 900.1",
                              "steps per second 1.5", "learning rate: 0.0001"})
    BOOST_TEST_CONTEXT(message) BOOST_TEST(!progress_of(message).has_value());
}

BOOST_AUTO_TEST_CASE(exceptions_are_distinguished_from_prose) {
  for (const char* yes : {"ValueError: bad shape", "torch.distributed.DistBackendError: timed out",
                          "KeyError: 'x'", "KeyboardInterrupt", "my.pkg.BrokenException: no"})
    BOOST_TEST_CONTEXT(yes) BOOST_TEST((shape(yes).kind == ShapeKind::kException));
  for (const char* no :
       {"Error rate: 3", "error: something", "no ValueError was seen", "Exception handling is on"})
    BOOST_TEST_CONTEXT(no) BOOST_TEST((shape(no).kind != ShapeKind::kException));
}

BOOST_AUTO_TEST_CASE(a_message_on_a_progress_bars_line_is_found) {
  const struct {
    const char* line;
    const char* behind;
  } rows[] = {
      {"train:  16%|#4   | 40/250 [00:20<00:46,  4.49it/s, loss=2.9]Traceback (most recent call last):",
       "Traceback (most recent call last):"},
      {"  1%|#  | 6/1184 [00:21<1:09:10,  3.52s/it][2026-02-04 15:06:19,825] [INFO] skipped",
       "[2026-02-04 15:06:19,825] [INFO] skipped"},
      {"Generating split: 2230 examples [29:59, 1466.92 examples/s][E watch.cpp:475] late",
       "[E watch.cpp:475] late"},
      {"  0%|          | 0/993 [00:00<?, ?it/s]Killed", "Killed"},
      {" 12%|#2        | 1/8 [01:53<13:12, 113.21s/it]", ""},
      {"[2026-02-04 15:06:19,825][INFO] rate 12/s", ""},
      {"[12:34:56,789][worker/3] started", ""},
      {"values[3]next", ""},
  };
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.line) {
      const std::string_view line = row.line;
      const size_t at = text_behind_bar(line);
      BOOST_TEST((at == 0 ? std::string_view() : line.substr(at)) == row.behind);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_an_exception_calls_ignored_does_not_make_it_handled) {
  BOOST_TEST(!shape("ValueError: the following variables will be ignored:").handled);
  BOOST_TEST(shape("ConnectionError: reset, retrying").handled);
  BOOST_TEST(shape("error in the cache, ignored").handled);
}

BOOST_AUTO_TEST_CASE(advice_is_no_evidence) {
  const FormShape s = shape("this might be caused by CUDA out of memory, please try a smaller batch");
  BOOST_TEST(s.advice);
  BOOST_TEST((s.kind == ShapeKind::kPlain));
}
