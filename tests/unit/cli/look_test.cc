#include "cli/look.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

BOOST_AUTO_TEST_SUITE(look)

BOOST_AUTO_TEST_CASE(evidence_of_a_daemon_is_shown_by_the_daemon_that_was_asked) {
  Evidence e;
  e.file = "/var/log/train 1.log";
  e.line = 120;
  BOOST_TEST(look_at_daemon(e, "llama", {}) ==
             "culprit evidence cat --job llama --path '/var/log/train 1.log' --line 120");
  e.host = "node-17";
  app::ClientOptions there{"http://c:7420", "/etc/token", ""};
  BOOST_TEST(look_at_daemon(e, "llama", there) ==
             "culprit evidence cat --job llama --host node-17 --path '/var/log/train 1.log' --line 120 "
             "--server http://c:7420 --token-file /etc/token");
  BOOST_TEST(look_at_daemon(e, "-rf", {}) ==
             "culprit evidence cat --job=-rf --host node-17 --path '/var/log/train 1.log' --line 120");
  BOOST_TEST(look_at_daemon(e, "", {}) == "");
  e.line.reset();
  BOOST_TEST(look_at_daemon(e, "llama", {}) == "");
}

BOOST_AUTO_TEST_CASE(what_is_no_line_of_a_file_has_no_command) {
  Evidence e;
  e.file = "/no/such/file";
  BOOST_TEST(look_in_file(e) == "");
  e.line = 3;
  BOOST_TEST(look_in_file(e) == "");
  for (const char* file : {"-", "/dev/null", "/"}) {
    e.file = file;
    BOOST_TEST(look_in_file(e) == "", file);
  }
}

BOOST_AUTO_TEST_SUITE_END()
