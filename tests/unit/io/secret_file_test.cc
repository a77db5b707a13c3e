#include "io/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(secret_files)

BOOST_AUTO_TEST_CASE(a_secret_that_others_may_read_or_change_is_refused_with_the_command_that_mends_it) {
  const ProcessRights daemon{990, 991, {4, 106}}, root{0, 0, {}};
  const struct {
    FileRights file;
    ProcessRights process;
    std::string says;  // "": it may be used
  } cases[] = {
      {{990, 990, 0600}, daemon, ""},
      {{990, 990, 0400}, daemon, ""},
      {{990, 991, 0640}, daemon, ""},  // the daemon's own group
      {{0, 991, 0640}, daemon, ""},
      {{0, 106, 0640}, daemon, ""},  // read by a group of the daemon, such as ssl-cert
      {{0, 0, 0440}, daemon, ""},    // a credential of systemd, with an ACL
      {{0, 0, 0600}, root, ""},
      {{990, 991, 0640}, root, ""},  // culpritd --check as root
      {{990, 991, 0644}, daemon, "/k: any user may read it: run chmod 600 /k"},
      {{0, 0, 0644}, daemon, "/k: any user may read it: run chown 990 /k && chmod 600 /k"},
      {{0, 991, 0644}, daemon, "/k: any user may read it: run chmod 640 /k"},
      {{0, 0, 0644}, root, "/k: any user may read it: run chmod 600 /k"},
      {{990, 991, 0660}, daemon, "/k: others may change it: run chmod 600 /k"},
      {{990, 991, 0602}, daemon, "/k: others may change it: run chmod 600 /k"},
      {{990, 106, 0640}, daemon, "/k: group 106 may read it: run chmod 600 /k"},
      {{0, 1000, 0640}, daemon, "/k: group 1000 may read it: run chown 990 /k && chmod 600 /k"},
      {{12002, 991, 0640},
       daemon,
       "/k: belongs to user 12002, who is neither root nor the daemon's user: run chown 990 /k && chmod 600 "
       "/k"},
  };
  for (const auto& row : cases) {
    const Status status = check_secret("/k", row.file, row.process);
    BOOST_TEST_CONTEXT(row.file.uid << ':' << row.file.gid << ' ' << row.file.mode)
    BOOST_TEST((status ? "" : status.error().text) == row.says);
  }
}

BOOST_AUTO_TEST_CASE(a_secret_is_read_whole_from_a_regular_file) {
  Folder folder;
  const std::string path = folder / "token";
  std::ofstream(path) << "secret\n";
  BOOST_REQUIRE(::chmod(path.c_str(), 0600) == 0);
  BOOST_TEST(read_secret(path, 100).value_or("") == "secret\n");
  BOOST_TEST(read_secret(path, 6).error().text == path + ": is too large for a key or token");
  BOOST_REQUIRE(::chmod(path.c_str(), 0604) == 0);
  BOOST_TEST(read_secret(path, 100).error().text == path + ": any user may read it: run chmod 600 " + path);
  BOOST_TEST(read_secret(folder / "none", 100).error().text ==
             (folder / "none") + ": no such file or directory");
  BOOST_REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  BOOST_TEST(read_secret(folder / "fifo", 100).error().text == (folder / "fifo") + ": is no regular file");
}

BOOST_AUTO_TEST_SUITE_END()
