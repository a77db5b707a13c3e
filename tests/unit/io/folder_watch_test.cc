#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(folder_watch)

namespace {

struct Watched {
  Watched() {
    watch = std::move(*loop.env->folder_watch([this](const std::string& changed) {
      ++reported[changed];
      loop.env->stop();
    }));
  }
  // All reports until none arrives for the collection time.
  std::map<std::string, int> after(const std::function<void()>& change) {
    reported.clear();
    change();
    loop.run();
    auto quiet = loop.env->timer([this] { loop.env->stop(); });
    quiet->start(220 * kNsPerMs);
    loop.run();
    return reported;
  }
  Folder folder;
  RealLoop loop;
  std::unique_ptr<FolderWatch> watch;
  std::map<std::string, int> reported;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(each_kind_of_change_is_reported, Watched) {
  const std::string file = folder / "f", other = folder / "g";
  BOOST_REQUIRE(watch->add(folder.path));
  std::ofstream out;
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"create", [&] { out.open(file); }},
      {"write", [&] { out << "x" << std::flush; }},
      {"close", [&] { out.close(); }},
      {"permissions", [&] { std::filesystem::permissions(file, std::filesystem::perms::owner_all); }},
      {"rename", [&] { std::filesystem::rename(file, other); }},
      {"folder", [&] { std::filesystem::create_directory(folder / "d"); }},
      {"truncate", [&] { std::filesystem::resize_file(other, 0); }},
      {"remove", [&] { std::filesystem::remove(other); }},
      {"itself", [&] { std::filesystem::remove_all(folder.path); }},
  };
  for (const auto& [name, change] : changes) {
    const auto seen = after(change);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(seen.size() == 1u);
      BOOST_TEST(seen.count(folder.path) == 1u);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(many_changes_are_reported_once_for_each_folder, Watched) {
  for (const char* name : {"a", "b", "c"}) {
    std::filesystem::create_directory(folder / name);
    BOOST_REQUIRE(watch->add(folder / name));
  }
  const auto seen = after([&] {
    for (int i = 0; i < 100; ++i)
      for (const char* name : {"a", "b"}) std::ofstream(folder / name + "/" + std::to_string(i)) << "x";
  });
  BOOST_TEST(seen.size() == 2u);
  for (const auto& [name, count] : seen) BOOST_TEST(count == 1);
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_was_removed_from_the_watch_is_quiet, Watched) {
  std::filesystem::create_directory(folder / "a");
  BOOST_REQUIRE(watch->add(folder.path));
  BOOST_REQUIRE(watch->add(folder / "a"));
  BOOST_REQUIRE(watch->add(folder / "a"));  // a repeated add has no effect
  watch->remove(folder / "a");
  watch->remove(folder / "a");
  const auto seen = after([&] {
    std::ofstream(folder / "a/x") << "x";
    std::ofstream(folder / "x") << "x";
  });
  BOOST_TEST(seen.size() == 1u);
  BOOST_TEST(seen.count(folder.path) == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_folder_of_two_names_is_reported_by_both, Watched) {
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory_symlink(folder / "a", folder / "link");
  BOOST_REQUIRE(watch->add(folder / "a"));
  BOOST_REQUIRE(watch->add(folder / "link"));
  BOOST_TEST(after([&] { std::ofstream(folder / "a/x") << "x"; }).size() == 2u);
  watch->remove(folder / "a");
  const auto seen = after([&] { std::ofstream(folder / "a/y") << "x"; });
  BOOST_TEST(seen.size() == 1u);
  BOOST_TEST(seen.count(folder / "link") == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_comes_back_can_be_added_again, Watched) {
  std::filesystem::create_directory(folder / "a");
  BOOST_REQUIRE(watch->add(folder / "a"));
  after([&] { std::filesystem::remove(folder / "a"); });
  std::filesystem::create_directory(folder / "a");
  BOOST_REQUIRE(watch->add(folder / "a"));
  BOOST_TEST(after([&] { std::ofstream(folder / "a/x") << "x"; }).size() == 1u);
  // Also if another folder got its name before the deletion was noticed.
  std::filesystem::rename(folder / "a", folder / "b");
  std::filesystem::create_directory(folder / "a");
  BOOST_REQUIRE(watch->add(folder / "a"));
  BOOST_TEST(after([&] { std::ofstream(folder / "a/x") << "x"; }).size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(what_is_no_folder_is_an_error, Watched) {
  std::ofstream(folder / "f") << "x";
  for (const std::string& name : {folder / "none", folder / "f"}) {
    const Status status = watch->add(name);
    BOOST_REQUIRE(!status);
    BOOST_TEST(status.error().text.rfind(name + ": ", 0) == 0u);
  }
}

BOOST_FIXTURE_TEST_CASE(a_watch_may_be_destroyed_from_within_its_call, Watched) {
  int calls = 0;
  std::unique_ptr<FolderWatch> own;
  own =
      std::move(*loop.env->folder_watch([&](const std::string&) { ++calls, own.reset(), loop.env->stop(); }));
  std::filesystem::create_directory(folder / "a");
  BOOST_REQUIRE(own->add(folder.path));
  BOOST_REQUIRE(own->add(folder / "a"));
  std::ofstream(folder / "x") << "x";
  std::ofstream(folder / "a/x") << "x";
  loop.run();
  BOOST_TEST(calls == 1);
}

BOOST_FIXTURE_TEST_CASE(an_overflow_tells_all_folders, Watched) {
  for (const char* name : {"a", "b", "quiet"}) {
    std::filesystem::create_directory(folder / name);
    BOOST_REQUIRE(watch->add(folder / name));
  }
  std::ifstream setting("/proc/sys/fs/inotify/max_queued_events");
  int most = 16384;
  setting >> most;
  const auto seen = after([&] {
    for (int i = 0; i <= most / 4; ++i)  // at least four events each, never the same twice in a row
      for (const char* name : {"a", "b"}) {
        const std::string file = folder / name + "/x";
        std::ofstream(file) << "x";
        std::filesystem::remove(file);
      }
  });
  BOOST_TEST(seen.count(folder / "quiet") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
