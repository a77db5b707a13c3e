#include "app/run/attempt_group.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnified =
    "30 23 0:26 / /sys/fs/cgroup ro,nosuid shared:4 - tmpfs tmpfs ro\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:5 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kBound = "31 30 0:27 /user.slice /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

// A folder in place of a group that this user may write.
struct FakeGroup {
  FakeGroup() {
    std::string name = (fs::temp_directory_path() / "culprit-group-XXXXXX").string();
    path = ::mkdtemp(name.data());
    add(path);
  }
  ~FakeGroup() { fs::remove_all(path); }
  static void add(const std::string& folder, const char* processes = "") {
    fs::create_directories(folder);
    std::ofstream(folder + "/cgroup.procs") << processes;
    std::ofstream(folder + "/cgroup.kill");
  }
  std::string path;
};

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt_group)

BOOST_AUTO_TEST_CASE(the_own_group_is_where_version_2_is_mounted) {
  BOOST_TEST(own_group("9:pids:/a\n0::/user.slice/run-7.scope\n", kUnified) ==
             "/sys/fs/cgroup/unified/user.slice/run-7.scope");
  BOOST_TEST(own_group("0::/\n", kUnified) == "/sys/fs/cgroup/unified");
  BOOST_TEST(own_group("0::/user.slice/a\n", kBound) == "/sys/fs/cgroup/a");
  for (const char* cgroup : {"", "9:pids:/a\n", "0::/../a\n", "0::/a (deleted)\n"})
    BOOST_TEST(own_group(cgroup, kUnified) == "", cgroup);
  for (const char* cgroup : {"0::/user.slicer/a\n", "0::/system.slice\n"})
    BOOST_TEST(own_group(cgroup, kBound) == "", cgroup);
  BOOST_TEST(own_group("0::/a\n", "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\nx\n") == "");
}

// A kernel makes the files of a new group; a plain folder has none, as with a kernel without cgroup.kill.
BOOST_AUTO_TEST_CASE(where_the_kernel_has_no_such_group_nothing_is_left) {
  const FakeGroup own;
  BOOST_TEST(!AttemptGroup::create(own.path, "7-1-1-a"));
  BOOST_TEST(!fs::exists(own.path + "/culprit-7-1-1-a"));
  BOOST_TEST(!AttemptGroup::create("", "7-1-1-a"));
  BOOST_TEST(!AttemptGroup::create(own.path + "/nowhere", "7-1-1-a"));
  fs::remove(own.path + "/cgroup.procs");
  BOOST_TEST(!AttemptGroup::create(own.path, "7-1-1-a"));
}

BOOST_AUTO_TEST_CASE(a_group_has_the_processes_of_all_groups_below_it_and_never_those_above) {
  const FakeGroup own;
  std::ofstream(own.path + "/cgroup.procs") << "1\n2\n";
  FakeGroup::add(own.path + "/culprit-7-1-1-a", "11\n12\nx\n-3\n");
  FakeGroup::add(own.path + "/culprit-7-1-1-a/inner/deep", "13\n");
  std::ofstream(own.path + "/culprit-7-1-1-b") << "a file";
  fs::create_directory_symlink(own.path, own.path + "/culprit-7-1-1-c");
  BOOST_TEST(AttemptGroup::marks_in(own.path) == std::set<std::string>{"7-1-1-a"});
  const AttemptGroup left = AttemptGroup::left_by(own.path, "7-1-1-a");
  BOOST_TEST(left.processes() == (std::set<pid_t>{11, 12, 13}));
  BOOST_TEST(left.kill());
  BOOST_TEST(text_in(left.folder() + "/cgroup.kill") == "1");
  BOOST_TEST(text_in(own.path + "/cgroup.kill") == "");
}

BOOST_AUTO_TEST_CASE(a_real_group_ends_a_process_that_left_its_session_and_its_mark) {
  const std::string own = own_group();
  const auto group = AttemptGroup::create(own, "0-0-0-test");
  if (!group) {
    BOOST_TEST_MESSAGE("this user may write no control group of version 2: '" + own + "'");
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    if (!group->enter()) ::_exit(9);
    ::setsid();
    for (;;) ::pause();
  }
  while (group->processes().empty() && ::waitpid(child, nullptr, WNOHANG) == 0) ::usleep(1000);
  BOOST_TEST(group->processes() == std::set<pid_t>{child});
  BOOST_TEST(group->kill());
  int status = 0;
  BOOST_TEST(::waitpid(child, &status, 0) == child);
  BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  BOOST_TEST(group->remove());
  BOOST_TEST(!fs::exists(group->folder()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
