#include "cli/doctor.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_CASE(a_doctors_rows_stand_in_columns_and_the_command_whole_on_its_line) {
  const std::vector<DoctorRow> rows = {
      {"config", Health::kOk, "/etc/culprit/culpritd.toml is valid", ""},
      {"log", Health::kFail,
       "/var/log/train/**/*.log: culprit may not read 3 of 7 files: /var/log/train/a.log, "
       "/var/log/train/b.log, "
       "/var/log/\x1b[31m.log",
       "setfacl -m u:culprit:r /var/log/train/a.log"},
      {"inotify", Health::kWarn, "the limits cannot be read", "ls /proc/sys/fs/inotify"}};
  BOOST_TEST(
      cli::render_doctor(rows, false) ==
      "ok    config   /etc/culprit/culpritd.toml is valid\n"
      "fail  log      /var/log/train/**/*.log: culprit may not read 3 of 7 files: /var/log/train/a.log,\n"
      "               /var/log/train/b.log, /var/log/\\x1b[31m.log\n"
      "               mend: setfacl -m u:culprit:r /var/log/train/a.log\n"
      "warn  inotify  the limits cannot be read\n"
      "               mend: ls /proc/sys/fs/inotify\n"
      "\n"
      "1 failure and 1 warning of 3 checks.\n");
  BOOST_TEST(cli::render_doctor({rows[0]}, false) ==
             "ok    config  /etc/culprit/culpritd.toml is valid\n\nNothing stands in the way.\n");
  BOOST_TEST(cli::render_doctor(rows, true).find("\x1b[1;31mfail") != std::string::npos);
}
