#include "io/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../../io/user_tree.h"
#include "ingest/live/safe_open.h"

using namespace culprit;
using namespace culprit::ingest;

namespace {

constexpr uid_t kDaemon = 12'001, kMallory = 12'002, kAlice = 12'003;

// A tree that opens its folders as the daemon does.
class Tree : public testing::UserTree {
 public:
  std::string open(const std::string& below) const {
    return told(io::open_trusted_folder(*this / below, kDaemon, io::Writers::kWatched));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(trusted_path)

BOOST_AUTO_TEST_CASE(a_folder_of_a_user_a_group_or_root_is_opened) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("home", 0);
  tree.folder("home/alice", kAlice, 0750);
  tree.folder("home/alice/logs", kAlice);
  tree.folder("home/alice/container", 0);
  tree.folder("project", kAlice, 02775);
  tree.folder("project/logs", kMallory, 0777);
  tree.folder("tmp", 0, 01777);
  tree.folder("tmp/run", kAlice);
  tree.folder("tmp/run/logs", kAlice);
  tree.folder("tmp/ours", kDaemon);
  tree.folder("tmp/ours/logs", kAlice);
  for (const char* path : {"home/alice/logs", "home/alice/container", "project/logs", "tmp", "tmp/run/logs",
                           "tmp/ours/logs", "home//alice/./logs"})
    BOOST_TEST_CONTEXT(path) BOOST_TEST(tree.open(path) == "ok");
}

BOOST_AUTO_TEST_CASE(a_link_is_followed_if_it_belongs_to_root_or_the_daemon) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("data", 0);
  tree.folder("data/logs", kAlice);
  tree.folder("home", kMallory);
  tree.link("scratch", "data", 0);
  tree.link("data/up", "../data/logs", kDaemon);
  tree.link("absolute", tree / "scratch/up", 0);
  tree.link("loop", "loop", 0);
  tree.link("home/logs", tree / "data/logs", kMallory);
  tree.link("through", "home/logs", 0);
  BOOST_TEST(tree.open("scratch/logs") == "ok");
  BOOST_TEST(tree.open("absolute") == "ok");
  BOOST_TEST(tree.open("loop") == "/loop: too many links");
  const std::string refused =
      "/home/logs is a link of user 12002, which is not followed: only links of root and of the daemon's "
      "user "
      "are; configure the path that it leads to";
  BOOST_TEST(tree.open("home/logs") == refused);
  BOOST_TEST(tree.open("through") == refused);
  BOOST_TEST(tree.open("data/none") == "no such file or directory");
}

BOOST_AUTO_TEST_CASE(what_any_user_could_replace_is_refused_with_its_path_and_owner) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("open", kAlice, 0777);
  tree.folder("open/logs", 0);
  tree.folder("tmp", 0, 01777);
  tree.folder("tmp/run", kMallory);
  tree.folder("tmp/run/logs", kAlice);
  tree.link("tmp/link", tree / "open", kMallory);
  BOOST_TEST(tree.open("open") == "ok");
  BOOST_TEST(tree.open("open/logs") ==
             "any user could replace /open/logs: /open of user 12003 has mode 0777; run chmod o-w /open, or "
             "chmod +t /open");
  BOOST_TEST(
      tree.open("tmp/run/logs") ==
      "/tmp/run belongs to user 12002 and is in a folder that any user may write to, and what is watched "
      "below it belongs to user 12003: user 12002 could replace it; run chown root /tmp/run");
  BOOST_TEST(tree.open("tmp/link").starts_with("/tmp/link is a link of user 12002, which is not followed"));
}

BOOST_AUTO_TEST_CASE(an_open_folder_whose_path_leads_elsewhere_now_is_noticed) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("home", kMallory);
  tree.folder("home/logs", kMallory);
  tree.folder("secret", 0, 0700);
  SafeFolder folder;
  BOOST_REQUIRE(folder.open(tree / "home/logs"));
  BOOST_TEST(folder.still_at(tree / "home/logs"));
  std::filesystem::rename(tree / "home/logs", tree / "home/away");
  tree.link("home/logs", tree / "home/away", kMallory);
  BOOST_TEST(!folder.still_at(tree / "home/logs"));  // the same folder, by a link that is not followed
  std::filesystem::remove(tree / "home/logs");
  tree.link("home/logs", tree / "secret", kMallory);
  BOOST_TEST(!folder.still_at(tree / "home/logs"));
  BOOST_TEST(!folder.open(tree / "home/logs"));
}

BOOST_AUTO_TEST_SUITE_END()
