// Files of plugins on disk: their folders, and their states.
#include <fcntl.h>

#include "base/limits.h"
#include "fixture.h"
#include "plughost/folders.h"
#include "plughost/state_file.h"

namespace culprit::plughost::testing {
namespace {

struct StoredState {
  TempFolder folder;
  StateFile file{folder.path(), "actor"};
  std::string path = folder.path() + "/actor.state";

  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(path, std::ios::binary) << text; }
};

BOOST_AUTO_TEST_CASE(a_state_is_taken_once) {
  const StoredState retained;
  const std::string state("a\0b", 3), largest(limits::kPluginStateBytes, 'x');
  BOOST_TEST(retained.file.take() == "");
  for (const std::string& one : {state, largest}) {
    BOOST_TEST(retained.file.keep("of before").has_value());
    BOOST_TEST(retained.file.keep(one).has_value());
    BOOST_TEST((retained.file.take() == one));
    BOOST_TEST(retained.file.take() == "");
  }
  BOOST_TEST(retained.file.keep(state).has_value());
  BOOST_TEST(retained.file.keep("").has_value());  // instead of the one before
  BOOST_TEST(retained.file.take() == "");
  const StateFile nowhere("", "actor");
  BOOST_TEST(nowhere.keep(state).has_value());
  BOOST_TEST(nowhere.take() == "");
}

BOOST_AUTO_TEST_CASE(a_damaged_state_is_ignored_and_removed) {
  const StoredState retained;
  BOOST_REQUIRE(retained.file.keep("a state").has_value());
  const std::string sound = retained.bytes();
  std::vector<std::string> cases{"", "short", sound + "x", sound.substr(0, sound.size() - 1),
                                 std::string(3 * limits::kPluginStateBytes, 'x')};
  for (size_t at = 0; at < sound.size(); ++at) {
    cases.push_back(sound);
    cases.back()[at] ^= 1;
  }
  for (const std::string& bytes : cases) {
    retained.write(bytes);
    BOOST_TEST(retained.file.take() == "");
    BOOST_TEST(!std::filesystem::exists(retained.path));
  }
}

BOOST_AUTO_TEST_CASE(a_state_is_a_regular_file_of_this_user) {
  const StoredState retained;
  BOOST_REQUIRE(retained.file.keep("a state").has_value());
  const std::string elsewhere = retained.folder.path() + "/elsewhere";
  std::filesystem::rename(retained.path, elsewhere);
  std::filesystem::create_symlink(elsewhere, retained.path);
  BOOST_TEST(retained.file.take() == "");
  std::filesystem::remove(retained.path);
  BOOST_REQUIRE(mkfifo(retained.path.c_str(), 0600) == 0);
  BOOST_TEST(retained.file.take() == "");  // and does not wait for a writer
  std::filesystem::remove(retained.path);
  if (geteuid() != 0) return;
  std::filesystem::rename(elsewhere, retained.path);
  BOOST_REQUIRE(chown(retained.path.c_str(), 12002, 0) == 0);
  BOOST_TEST(retained.file.take() == "");
}

struct PluginFolder {
  TempFolder folder;
  std::string sub(const std::string& name, mode_t mode = 0755) const {
    const std::string path = folder.path() + "/" + name;
    std::filesystem::create_directories(path);
    chmod(path.c_str(), mode);
    return path;
  }
  static void add(const std::string& at, const std::string& file, mode_t mode = 0644) {
    std::ofstream(at + "/" + file) << "x";
    chmod((at + "/" + file).c_str(), mode);
  }
};

BOOST_AUTO_TEST_CASE(untrusted_files_push_no_trusted_one_out) {
  const PluginFolder world;
  const std::string first = world.sub("first"), second = world.sub("second");
  for (size_t i = 0; i < limits::kPluginsOnHost; ++i)
    PluginFolder::add(first, fmt::format("a{:03}.so", i), 0666);
  PluginFolder::add(first, "same.so", 0666);
  PluginFolder::add(second, "same.so");
  PluginFolder::add(second, "z.so");
  const PluginFiles found = find_plugins({first, second}, geteuid());
  BOOST_TEST(found.by_name.size() == limits::kPluginsOnHost);
  BOOST_REQUIRE(found.by_name.contains("same"));
  BOOST_TEST(found.by_name.at("same").path == second + "/same.so");
  BOOST_TEST(found.by_name.contains("z"));
  BOOST_TEST(found.by_name.contains("a000"));      // to be refused
  BOOST_TEST(found.errors_reported.size() == 3u);  // two without room, and the one with the same name
}

BOOST_AUTO_TEST_CASE(of_a_name_in_several_folders_the_first_file_counts) {
  const PluginFolder world;
  const std::string first = world.sub("first"), second = world.sub("second");
  PluginFolder::add(first, "same.so");
  PluginFolder::add(second, "same.so");
  PluginFolder::add(second, "Bad name.so");
  PluginFolder::add(second, "README.md");
  const PluginFiles found = find_plugins({first, second, world.folder.path() + "/none"}, geteuid());
  BOOST_TEST(found.by_name.size() == 1u);
  BOOST_TEST(found.by_name.at("same").path == first + "/same.so");
  BOOST_TEST(found.any);
  const std::vector<std::string> expected = {
      second + "/Bad name.so: the name of a plugin has only [a-z0-9_]",
      fmt::format("{}/same.so: not used, as {}/same.so has the same name", second, first),
      fmt::format("plugins: {}/none: no such file or directory", world.folder.path())};
  BOOST_TEST(found.errors_reported == expected, boost::test_tools::per_element());
  BOOST_TEST(!find_plugins({world.folder.path()}, geteuid()).any);
}

}  // namespace
}  // namespace culprit::plughost::testing
