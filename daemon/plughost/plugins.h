// The plugins of this host: the libraries of some folders, each in a separate process, or in this process
// where so configured. They are restarted when they fail, and replaced when their file changes. A failing
// plugin loses only its own events.
//
// One thread calls everything except wanted(), which any thread may call. No call waits longer than its
// argument permits, except for calls of plugins in this process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/plugin_finding.h"
#include "plughost/folders.h"

namespace culprit::plughost {

// A plugin's table of culpritd.toml. Limits of 0: none.
struct PluginTable {
  std::string name;
  bool enabled = true;
  bool own_process = true;  // false: in this process, where a crash of the plugin ends the daemon
  uint64_t memory_bytes = 256 << 20;
  uint64_t cpu_ppm = 100'000;  // millionths of a core, averaged over a minute
  uint64_t findings_per_minute = 60;
  TimeNs call_ns = 10 * kNsPerSecond;
  std::vector<std::pair<std::string, std::string>> options;  // of the plugin; checked when it starts
  std::vector<std::string> environment;                      // of its own process: "NAME=value"
  bool operator==(const PluginTable&) const = default;
};

struct PluginsOptions {
  std::vector<std::string> folders;  // folders.h says which files count
  std::vector<PluginTable> tables;   // a plugin without one has the defaults
  std::string host, version;         // of this host, and of Culprit
  std::string host_program = {};     // empty: default_host_program()
  // For plugin states while the daemon is stopped; empty: states are not saved.
  std::string state_folder = {};
  uid_t trusted_uid = 0;  // permitted owner of libraries besides root: the daemon's user
  int wake = -1;          // an eventfd, borrowed: while it is readable, round() does not wait; drained there
  // Called with the name when code of a plugin in this process begins to run, and with "" when it ends.
  std::function<void(std::string_view name)> entering = {};
};

// One plugin, for `culprit plugin list`, HTTP and metrics.
//
// Findings about a plugin itself have ids that no plugin may emit (culprit.plugin.crashed, hung, memory,
// cpu, flood, malformed, failed, refused, quarantined, forgot), and its name in PluginFinding::plugin. The
// finding forgot ends all states that the plugin raised: its process failed or ended, or started without
// the state of the previous one. A stop of the daemon saves the state, and the raised states continue.
struct PluginRow {
  std::string name, version, vendor, about, path;
  // starting, running, waiting (to start again), quarantined, refused, ending, disabled, missing
  std::string state;
  std::string reason;  // of the last failure or refusal; empty: none
  bool own_process = true;
  int pid = 0;  // 0: none
  uint64_t kinds = 0;
  uint64_t starts = 0, failures = 0;
  uint64_t queued = 0;  // events that wait for it
  // Dropped: while it did not run, was slow, or exceeded its processor time.
  uint64_t events = 0, dropped = 0;
  uint64_t findings = 0, findings_dropped = 0, lines_dropped = 0;
  uint64_t cpu_ns = 0;  // over all its processes
  uint64_t memory_bytes = 0;
};

// Severities of host->log: CULPRIT_INFO to CULPRIT_FATAL.
using PluginLog = std::function<void(uint32_t severity, std::string)>;

class Supervisor;

class Plugins {
 public:
  Plugins(PluginsOptions options, std::function<void(PluginFinding&&)> found, PluginLog log);
  ~Plugins();  // without stop(), plugins are killed

  // Reads the folders: starts new plugins, stops those whose file was removed, replaces those whose file
  // changed. After the first scan, a file is used only once two scans see it unchanged: it may still be
  // being written.
  void scan(TimeNs mono);
  // Applies other folders and tables. Plugins whose table changed are restarted; refused and quarantined
  // ones are tried again. Returns one sentence per plugin that keeps its earlier table because it refuses
  // the new options.
  std::vector<std::string> reload(std::vector<std::string> folders, std::vector<PluginTable> tables,
                                  TimeNs mono);
  // Event kinds (CULPRIT_BIT) that running plugins want.
  uint64_t wanted() const { return wanted_.load(std::memory_order_relaxed); }
  // Passes a batch of an EventWriter to all plugins that want any of its events. Copies it.
  void observe(std::string_view events);
  // Sends and receives for at most `wait_ms`. Returns the latest time (`mono`) of the next call.
  TimeNs round(TimeNs wall, TimeNs mono, int wait_ms);
  std::vector<PluginRow> rows() const;
  // Lets all plugins save their state and exit within `wait_ms`; then kills the remaining ones.
  void stop(TimeNs mono, int wait_ms = 2000);

 private:
  PluginTable table_of(const std::string& name) const;
  void compare(bool at_once, TimeNs mono);
  void report_error_once(const std::string& sentence);
  TimeNs round_all(TimeNs wall, TimeNs mono);

  PluginsOptions options_;
  const std::function<void(PluginFinding&&)> found_;
  const PluginLog log_;
  std::map<std::string, std::unique_ptr<Supervisor>> plugins_;
  std::map<std::string, PluginFile> seen_, in_use_;  // at the last scan; as it was started
  std::set<std::string> errors_reported_;            // logged already
  bool scanned_ = false;
  std::atomic<uint64_t> wanted_{0};
};

// Path of culprit-plugin-host: in the folder of this program, or its installed path.
std::string default_host_program();

}  // namespace culprit::plughost
