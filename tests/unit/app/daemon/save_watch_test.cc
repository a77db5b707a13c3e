#include "app/daemon/watch/save_watch.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "../../io/fixtures.h"

using namespace culprit;
using namespace culprit::app;
using namespace culprit::io::testing;

namespace {

struct Saves {
  explicit Saves(std::set<std::string> below = {}) {
    std::filesystem::create_directories(folder / "old/ranks");
    write("old/ranks/shard", 4 << 20);
    std::set<std::string> watched{folder.path};
    for (const std::string& name : below) watched.insert(folder / name);
    BOOST_REQUIRE(saves.watch(watched));
  }
  void write(const std::string& name, size_t bytes) const {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    std::ofstream(folder / name, std::ios::app | std::ios::binary) << std::string(bytes, 'x');
  }
  void until(bool saving) {
    while (saves.saving({}) != saving) loop.run();
  }
  Folder folder;
  RealLoop loop;
  int changes = 0;
  SaveWatch saves{*loop.env, 50 * kNsPerMs, [this] { ++changes, loop.env->stop(); }};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(save_watch)

BOOST_AUTO_TEST_CASE(a_save_is_seen_and_its_end) {
  Saves t;
  t.write("new/ranks/shard", 2 << 20);
  t.until(true);
  t.until(false);
  BOOST_TEST(t.changes == 2);
}

BOOST_AUTO_TEST_CASE(what_grows_decides) {
  const struct {
    const char* what;
    const char* file;
    size_t bytes;
    const char* look;  // below the watched folder; empty: itself
    bool saving;
  } cases[] = {
      {"a file of the folder", "weights", 2 << 20, "", true},
      {"a log", "log", 64 << 10, "", false},
      {"a file of a new subfolder", "new/weights", 2 << 20, "", true},
      {"a file of a subfolder that was there, and is not watched", "old/weights", 2 << 20, "", false},
      {"a file of a watched subfolder", "old/ranks/shard", 2 << 20, "old/ranks", true},
      {"a folder that is not watched", "old/weights", 2 << 20, "old", false},
  };
  for (const auto& c : cases) {
    Saves t({"old/ranks"});
    t.write(c.file, c.bytes);
    t.saves.look(*c.look == '\0' ? t.folder.path : t.folder / c.look);
    BOOST_TEST(t.saves.saving({}) == c.saving, c.what);
  }
}

BOOST_AUTO_TEST_CASE(only_the_owner_of_what_grows_saves) {
  Saves t;
  t.write("weights", 2 << 20);
  t.saves.look(t.folder.path);
  BOOST_TEST(t.saves.saving(::geteuid()));
  BOOST_TEST(!t.saves.saving(::geteuid() + 1));
}

BOOST_AUTO_TEST_CASE(a_new_folder_is_watched_until_its_first_bytes_come) {
  Saves t;
  std::filesystem::create_directory(t.folder / "new");
  t.saves.look(t.folder.path);
  BOOST_REQUIRE(t.saves.watch({t.folder.path}));
  t.write("new/weights", 2 << 20);
  t.saves.look(t.folder / "new");
  BOOST_TEST(t.saves.saving({}));
}

BOOST_AUTO_TEST_CASE(a_link_to_a_folder_is_not_followed) {
  Saves t;
  Folder other;
  std::ofstream(other / "big") << std::string(4 << 20, 'x');
  std::filesystem::create_directory_symlink(other.path, t.folder / "new");
  std::filesystem::create_symlink(other / "big", t.folder / "file");
  t.saves.look(t.folder.path);
  BOOST_TEST(!t.saves.saving({}));
}

BOOST_AUTO_TEST_CASE(a_folder_that_left_and_returned_is_new) {
  Saves t;
  t.write("new/weights", 2 << 20);
  t.saves.look(t.folder.path);
  t.until(false);
  std::filesystem::remove_all(t.folder / "new");
  t.saves.look(t.folder / "new");
  t.saves.look(t.folder.path);
  BOOST_TEST(!t.saves.saving({}));
  t.write("new/weights", 2 << 20);
  t.saves.look(t.folder.path);
  BOOST_TEST(t.saves.saving({}));
}

BOOST_AUTO_TEST_SUITE_END()
