// Plugins in real processes, under a clock of the test's own: nothing is restarted or late unless it says so.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "plughost/events.h"
#include "plughost/plugins.h"

namespace culprit::plughost::testing {

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/culprit-plughost-XXXXXX";
    BOOST_REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string counters(size_t count) {
  EventWriter writer;
  EventHead head;
  head.kind = CULPRIT_EVENT_COUNTER;
  for (size_t i = 0; i < count; ++i) writer.counter(head, "load", static_cast<double>(i));
  return writer.take();
}

inline std::string command(std::string_view text) {
  EventWriter writer;
  EventHead head;
  head.kind = CULPRIT_EVENT_LOG;
  head.time_ns = 1;
  head.job = "job-1";
  writer.line(head, text, text, {}, 1);
  return writer.take();
}

struct World {
  TempFolder folder;
  PluginTable table;
  std::vector<PluginTable> others;
  std::vector<PluginFinding> found;
  std::vector<std::string> lines;
  std::vector<uint32_t> severities;  // of the lines
  TimeNs wall = 1'000'000 * kNsPerSecond, mono = 1'000 * kNsPerSecond;
  std::string state_folder, host_program = CULPRIT_TEST_PLUGIN_HOST;
  std::unique_ptr<Plugins> plugins;

  World() {
    table.name = "actor";
    // In a build with sanitizers a crash must stay one.
    table.environment = {"ASAN_OPTIONS=handle_segv=0:handle_abort=0:detect_leaks=0"};
    install(CULPRIT_TEST_ACTOR);
  }

  std::string plugin_folder() const { return folder.path() + "/plugins"; }
  // In the folder, at once and whole, as `mv` does it.
  void install(const std::string& library, const std::string& name = "actor") {
    std::filesystem::create_directories(plugin_folder());
    const std::string at = plugin_folder() + "/" + name + ".so";
    std::filesystem::copy_file(library, at + ".new");
    chmod((at + ".new").c_str(), 0644);
    std::filesystem::rename(at + ".new", at);
  }

  void begin() {
    PluginsOptions options;
    options.folders = {plugin_folder()};
    options.tables = others;
    options.tables.push_back(table);
    options.host = "node-1";
    options.version = "0.1.0";
    options.host_program = host_program;
    options.trusted_uid = geteuid();
    options.state_folder = state_folder;
    plugins = std::make_unique<Plugins>(
        std::move(options), [this](PluginFinding&& finding) { found.push_back(std::move(finding)); },
        [this](uint32_t severity, std::string line) {
          lines.push_back(std::move(line));
          severities.push_back(severity);
        });
    plugins->scan(mono);
  }
  void run() {
    begin();
    until_state("running");
  }

  // Rounds until it holds. The time that this may take is real, and far more than it needs.
  void until(const std::function<bool()>& holds, const std::string& what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end)
        BOOST_FAIL("not within 30 s: " + what + "; state " + row().state + ", reason " + row().reason);
      plugins->round(wall, mono, 20);
    }
  }
  PluginRow row(const std::string& name = "actor") const {
    for (PluginRow& row : plugins->rows())
      if (row.name == name) return row;
    return {};
  }
  void until_state(const std::string& state, const std::string& name = "actor") {
    until([&] { return row(name).state == state; }, state);
  }
  // The first finding of the id from number `from` on.
  const PluginFinding& finding(const std::string& id, size_t from = 0) {
    size_t at = from;
    until(
        [&] {
          while (at < found.size() && found[at].id != id) ++at;
          return at < found.size();
        },
        "finding " + id);
    return found[at];
  }
  // Sends a command and returns the finding that answers it.
  PluginFinding ask(const std::string& what, const std::string& id) {
    const size_t from = found.size();
    plugins->observe(command(what));
    return finding(id, from);
  }
  double number(const std::string& what) { return ask(what, "actor." + what).values.at(0).second; }
  size_t count(const std::string& id) const {
    size_t n = 0;
    for (const PluginFinding& finding : found) n += finding.id == id;
    return n;
  }
  bool logged(const std::string& part) const { return severity_of(part) >= 0; }
  // Of the first line with this part; -1: there is none.
  int severity_of(const std::string& part) const {
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(part) != std::string::npos) return static_cast<int>(severities[i]);
    return -1;
  }
  size_t forgotten() const { return count(std::string(kPluginForgot)); }
};

}  // namespace culprit::plughost::testing
