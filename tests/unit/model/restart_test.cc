#include "model/restart.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;

BOOST_AUTO_TEST_CASE(a_value_that_nobody_stated_follows_from_action_and_category) {
  const struct {
    Category category;
    ActionKind action;
    Restart wanted;
  } rows[] = {{Category::kHardware, ActionKind::kIsolate, Restart::kElsewhere},
              {Category::kHardware, ActionKind::kCheck, Restart::kElsewhere},
              {Category::kPlatform, ActionKind::kCheck, Restart::kUnknown},
              {Category::kUser, ActionKind::kFix, Restart::kNever},
              {Category::kPlatform, ActionKind::kRetry, Restart::kLater},
              {Category::kUser, ActionKind::kRollback, Restart::kOlder},
              {Category::kHardware, ActionKind::kRestart, Restart::kSame},
              {Category::kUser, ActionKind::kMitigate, Restart::kUnknown},
              {Category::kHardware, ActionKind::kNone, Restart::kUnknown}};
  for (const auto& row : rows) BOOST_TEST((default_restart(row.category, row.action) == row.wanted));
}

BOOST_AUTO_TEST_CASE(the_value_of_a_finding_turns_with_progress) {
  Finding f;
  f.restart = Restart::kNever;
  BOOST_TEST((restart_of(f, true) == Restart::kNever));
  f.restart_after_steps = Restart::kSame;
  BOOST_TEST((restart_of(f, false) == Restart::kNever));
  BOOST_TEST((restart_of(f, true) == Restart::kSame));
}

BOOST_AUTO_TEST_CASE(of_two_values_the_stricter_counts_and_unknown_counts_least) {
  BOOST_TEST((stricter(Restart::kSame, Restart::kNever) == Restart::kNever));
  BOOST_TEST((stricter(Restart::kElsewhere, Restart::kOlder) == Restart::kElsewhere));
  BOOST_TEST((stricter(Restart::kUnknown, Restart::kSame) == Restart::kSame));
}

BOOST_AUTO_TEST_CASE(one_plain_sentence_says_whether_it_runs_again) {
  const struct {
    RestartAdvice advice;
    const char* wanted;
  } rows[] = {
      {{Restart::kNever, true, "", {}, {}}, "no: the same will happen again"},
      {{Restart::kNever, false, "", {}, {}}, "once at most: the same will probably happen again"},
      {{Restart::kElsewhere, true, "", {"node-3"}, {}}, "elsewhere, without node-3"},
      {{Restart::kElsewhere, true, "", {"node-3"}, {"GPU 5"}}, "elsewhere, without node-3 (GPU 5)"},
      {{Restart::kElsewhere, true, "", {}, {"GPU 5"}}, "elsewhere, without GPU 5"},
      {{Restart::kElsewhere, true, "", {}, {}}, "elsewhere: not on the host or device that failed"},
      {{Restart::kOlder, true, "", {}, {}}, "from an older checkpoint"},
      {{Restart::kLater, true, "", {}, {}}, "later, when the service answers again"},
      {{Restart::kSame, true, "", {}, {}}, "yes, as it is"},
      {{Restart::kUnknown, false, "", {}, {}}, "once: the cause is not known"},
  };
  for (const auto& row : rows) BOOST_TEST(sentence(row.advice) == row.wanted);
}
