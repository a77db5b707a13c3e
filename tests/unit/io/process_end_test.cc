#include "io/process_end.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>

using namespace culprit;

BOOST_AUTO_TEST_SUITE(process_end)

BOOST_AUTO_TEST_CASE(a_process_that_goes_on_has_not_ended_and_one_that_is_killed_has) {
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    for (;;) ::pause();
  }
  BOOST_TEST(!io::ends_within(child, -1));
  BOOST_TEST(!io::ends_within(child, kNsPerMs));
  ::kill(child, SIGKILL);
  BOOST_TEST(io::ends_within(child, 60 * kNsPerSecond));
  BOOST_TEST(io::ends_within(child, 0));  // its status is still there
  int status = 0;
  BOOST_TEST(::waitpid(child, &status, WNOHANG) == child);
  BOOST_TEST(WIFSIGNALED(status));
  BOOST_TEST(io::ends_within(child, 60 * kNsPerSecond));  // no child any more
}

BOOST_AUTO_TEST_SUITE_END()
