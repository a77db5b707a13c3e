#include "ingest/live/safe_open.h"

#include <fcntl.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace culprit;
using namespace culprit::ingest;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/culprit-open-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    std::filesystem::create_directories(path + "/root/sub");
    for (const char* file : {"/outside", "/root/plain", "/root/sub/inner"})
      std::ofstream(path + file) << "x\n";
    std::filesystem::create_symlink("plain", path + "/root/link");
    std::filesystem::create_symlink("/dev/null", path + "/root/device");
    std::filesystem::create_directory_symlink("sub", path + "/root/linked");
    BOOST_REQUIRE_EQUAL(::mkfifo((path + "/root/pipe").c_str(), 0600), 0);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(safe_open)

BOOST_AUTO_TEST_CASE(the_same_is_opened_and_refused_with_and_without_openat2) {
  const Folder folder;
  struct Case {
    const char* below;
    int error;
  };
  const Case cases[] = {
      {"plain", 0},
      {"sub/inner", 0},
      {"link", ELOOP},
      {"device", ELOOP},
      {"linked/inner", ELOOP},
      {"pipe", EINVAL},
      {"sub", EINVAL},
      {"../outside", EXDEV},
      {"sub/../../outside", EXDEV},
      {"/etc/passwd", EXDEV},
      {"none", ENOENT},
      {"none/inner", ENOENT},
      {"plain/inner", ENOTDIR},
  };
  for (const bool openat2 : {true, false}) {
    SafeFolder root(SafeFolder::Options{.openat2 = openat2});
    BOOST_REQUIRE(root.open(folder.path + "/root"));
    for (const Case& one : cases) {
      Descriptor file;
      BOOST_TEST_CONTEXT(one.below << (openat2 ? "" : ", without openat2")) {
        BOOST_CHECK_EQUAL(root.open_file(one.below, file), one.error);
        BOOST_CHECK_EQUAL(file.is_open(), one.error == 0);
      }
    }
    std::vector<Entry> entries;
    BOOST_CHECK_EQUAL(root.list("", 100, entries), 0);
    BOOST_CHECK_EQUAL(entries.size(), 6);
    BOOST_CHECK_EQUAL(root.list("sub", 100, entries), 0);
    BOOST_CHECK_EQUAL(root.list("linked", 100, entries), ENOTDIR);
    BOOST_CHECK_EQUAL(root.list("..", 100, entries), EXDEV);
  }
}

BOOST_AUTO_TEST_SUITE_END()
