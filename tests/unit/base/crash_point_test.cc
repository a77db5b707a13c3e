#include "base/crash_point.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

using namespace culprit;

namespace {

// Whether a process with this crash point dies by its n-th pass of "here".
bool dies_within(const char* armed, int passings) {
  const pid_t child = fork();
  if (child == 0) {
    if (!arm_crash_point(armed)) _exit(1);
    for (int i = 0; i < passings; ++i) {
      crash_point("elsewhere");
      crash_point("here");
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_crash_point_kills_at_the_passing_that_was_asked_for) {
  BOOST_TEST(dies_within("here", 1));
  BOOST_TEST(dies_within("here:3", 3));
  BOOST_TEST(!dies_within("here:3", 2));
  BOOST_TEST(!dies_within("there", 5));
  BOOST_TEST(!dies_within("her", 5));
}

BOOST_AUTO_TEST_CASE(a_crash_point_without_a_number_behind_its_colon_is_refused) {
  for (const char* bad : {"here:", "here:0", "here:x", "here:1x", "here:-1"})
    BOOST_TEST(!arm_crash_point(bad).has_value());
}
