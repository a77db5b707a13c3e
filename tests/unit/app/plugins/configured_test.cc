// `culpritd --check` reports what keeps a configured plugin from running, and runs no other.
#include "app/plugins/configured.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

// A folder of plugins with shaky.so, which no other user can change.
struct Folder {
  fs::path path;
  Config config;

  Folder() {
    std::string name = fs::temp_directory_path() / "configured-XXXXXX";
    path = ::mkdtemp(name.data());
    fs::copy_file(CULPRIT_TEST_SHAKY, library());
    fs::permissions(library(), fs::perms(0644));
    config.plugins = {(path / "none").string(), path.string()};
    config.state_dir = path / "state";
    config.plugin.emplace_back().name = "shaky";
  }
  ~Folder() { fs::remove_all(path); }

  std::string library() const { return path / "shaky.so"; }
  ConfiguredPlugins check() const { return check_configured_plugins(config, CULPRIT_TEST_PLUGIN_HOST); }
};

BOOST_AUTO_TEST_CASE(a_plugin_that_loads_and_takes_its_options_is_sound) {
  Folder folder;
  folder.config.plugin[0].options = {{"mode", "clock"}};
  const ConfiguredPlugins checked = folder.check();
  BOOST_TEST(checked.errors.empty());
  BOOST_TEST(checked.notes.empty());
  BOOST_TEST(checked.sound == 1u);
}

BOOST_AUTO_TEST_CASE(what_keeps_a_plugin_from_running_is_a_sentence_with_its_name) {
  const struct {
    void (*change)(Folder&);
    const char* output;
  } cases[] = {
      {[](Folder& f) {
         f.config.plugin[0].options = {{"mod", "x"}};
       },
       "there is no option 'mod'; it has mode"},
      {[](Folder& f) { fs::remove(f.library()); }, "no folder of plugins has a file shaky.so: "},
      {[](Folder& f) { fs::permissions(f.library(), fs::perms(0666)); }, "shaky.so: "},
      {[](Folder& f) { fs::resize_file(f.library(), 100); }, "shaky.so: "},
      {[](Folder& f) { fs::rename(f.library(), f.path / "other.so"), f.config.plugin[0].name = "other"; },
       "other.so: "},
  };
  for (const auto& c : cases) {
    Folder folder;
    c.change(folder);
    const ConfiguredPlugins checked = folder.check();
    BOOST_REQUIRE_EQUAL(checked.errors.size(), 1u);
    BOOST_TEST_CONTEXT(checked.errors[0]) {
      BOOST_TEST(checked.errors[0].starts_with("plugin " + folder.config.plugin[0].name + ": "));
      BOOST_TEST(checked.errors[0].find(c.output) != std::string::npos);
      BOOST_TEST(checked.sound == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plugin_that_does_not_run_here_is_not_checked) {
  Folder disabled, collector;
  disabled.config.plugin[0].options = collector.config.plugin[0].options = {{"mod", "x"}};
  disabled.config.plugin[0].enabled = false;
  collector.config.role = DaemonRole::kCollector;
  BOOST_TEST(disabled.check().errors.empty());
  BOOST_TEST(collector.check().errors.empty());
}

BOOST_AUTO_TEST_CASE(code_that_this_user_does_not_trust_is_not_run_and_that_is_a_note) {
  if (::geteuid() != 0) return;  // only root gives files away
  Folder folder;
  constexpr uid_t kDaemon = 65'534;
  fs::create_directory(folder.config.state_dir);
  BOOST_REQUIRE(::chown(folder.library().c_str(), kDaemon, kDaemon) == 0);
  BOOST_TEST(folder.check().errors.size() == 1u);  // the daemon is root here
  BOOST_REQUIRE(::chown(folder.config.state_dir.c_str(), kDaemon, kDaemon) == 0);
  const ConfiguredPlugins checked = folder.check();
  BOOST_TEST(checked.errors.empty());
  BOOST_REQUIRE_EQUAL(checked.notes.size(), 1u);
  BOOST_TEST(checked.notes[0].find("is not checked, as this user does not trust it") != std::string::npos);
}

}  // namespace
}  // namespace culprit::app
