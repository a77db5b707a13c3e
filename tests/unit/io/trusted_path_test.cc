#include "io/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "user_tree.h"

using namespace culprit;
using namespace culprit::io;

namespace {

constexpr uid_t kAlice = 12'003, kMallory = 12'002;

// A tree that opens its files as Alice's program does.
class Tree : public testing::UserTree {
 public:
  std::string open(const std::string& below, Writers writers = Writers::kOwner) const {
    return told(open_trusted_file(*this / below, kAlice, writers));
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(trusted_path)

BOOST_AUTO_TEST_CASE(a_file_that_only_root_and_its_user_can_change_is_opened) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("etc", 0);
  tree.file("etc/root", 0);
  tree.file("etc/alice", kAlice, 0600);
  tree.folder("tmp", 0, 01777);
  tree.folder("tmp/alice", kAlice, 0700);
  tree.file("tmp/alice/f", kAlice);
  tree.link("etc/relative", "../tmp/alice/f", kAlice);
  tree.link("etc/absolute", tree / "etc/relative", 0);
  tree.link("here", "etc", 0);
  for (const char* path : {"etc/root", "etc/alice", "tmp/alice/f", "etc/relative", "etc/absolute",
                           "here/root", "etc/../etc/./root"})
    for (const Writers writers : {Writers::kOwner, Writers::kGroup})
      BOOST_TEST(tree.open(path, writers) == "ok", path);
  BOOST_TEST(tree.open("etc/none") == "no such file or directory");
  BOOST_TEST(tree.open("etc") == "it is no regular file");
}

BOOST_AUTO_TEST_CASE(what_another_user_or_a_group_could_change_is_refused_with_its_remedy) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("etc", 0);
  tree.file("etc/group", 0, 0664);
  tree.file("etc/mallory", kMallory);
  tree.folder("team", 0, 0775);
  tree.folder("team/alice", kAlice);
  tree.file("team/alice/f", kAlice);
  tree.folder("mallory", kMallory);
  tree.file("mallory/f", 0);
  tree.folder("tmp", 0, 01777);
  tree.file("tmp/mallory", kMallory);
  tree.link("etc/link", tree / "etc/none", kMallory);
  const std::pair<const char*, const char*> rows[] = {
      {"etc/group", "/etc/group has mode 0664, so that others could change it; run chmod go-w /etc/group"},
      {"etc/mallory", "/etc/mallory belongs to user 12002, who is not trusted; run chown root /etc/mallory"},
      {"team/alice/f",
       "/team has mode 0775, so that others could replace what is in it; run chmod go-w /team"},
      {"mallory/f", "/mallory belongs to user 12002, who is not trusted; run chown root /mallory"},
      {"tmp/mallory", "/tmp/mallory belongs to user 12002, who is not trusted; run chown root /tmp/mallory"},
      {"etc/link", "/etc/link belongs to user 12002, who is not trusted; run chown root /etc/link"},
  };
  for (const auto& [path, why] : rows) BOOST_TEST(tree.open(path) == why);
}

BOOST_AUTO_TEST_CASE(a_group_may_share_a_folder_of_rules_and_any_user_may_not) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.folder("rules.d", 0, 02775);
  tree.file("rules.d/mallory", kMallory, 0664);
  tree.file("rules.d/open", 0, 0666);
  tree.folder("open", 0, 0777);
  tree.file("open/f", 0);
  tree.folder("tmp", 0, 01777);
  tree.folder("tmp/rules", kMallory);
  tree.file("tmp/rules/f", kMallory);
  BOOST_TEST(tree.open("rules.d/mallory", Writers::kGroup) == "ok");
  BOOST_TEST(tree.open("rules.d/open", Writers::kGroup) ==
             "/rules.d/open has mode 0666, so that others could change it; run chmod go-w /rules.d/open");
  BOOST_TEST(
      tree.open("open/f", Writers::kGroup).starts_with("any user could replace /open/f: /open of root"));
  BOOST_TEST(
      tree.open("tmp/rules/f", Writers::kGroup) ==
      "/tmp/rules belongs to user 12002, and any user could have put it there; run chown root /tmp/rules");
}

BOOST_AUTO_TEST_CASE(a_relative_path_begins_in_the_current_folder) {
  if (!testing::is_root()) return;
  const Tree tree;
  tree.file("f", 0);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(tree / "");
  const auto opened = open_trusted_file("./f", kAlice);
  std::filesystem::current_path(before);
  BOOST_REQUIRE(opened.has_value());
  const Descriptor file(*opened);
}

BOOST_AUTO_TEST_SUITE_END()
