// `culprit plugin check`: tests a library with the daemon's calls before it is installed as a plugin.
// Blocking; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace culprit::app {

struct PluginCheckOptions {
  std::string library;
  std::vector<std::pair<std::string, std::string>> values;  // values of the plugin's options
  std::vector<std::string> lines;                           // log lines, in addition to the built-in events
  std::string host_program;                                 // empty: the installed one
};

struct PluginCheckRow {
  enum class Outcome : unsigned char { kOk, kNote, kWrong } outcome = Outcome::kOk;
  std::string check;  // "symbols"
  std::string text;
};

// Measured cost; 0: not measured, since an earlier check failed or the plugin takes no events.
struct PluginCost {
  double event_ns = 0;  // time of a core, in the plugin's process, including the transfer
  uint64_t memory_bytes = 0;
};

// Calls `row` after each check. Fails if the file cannot be read.
Result<PluginCost> check_plugin(const PluginCheckOptions& options,
                                const std::function<void(PluginCheckRow)>& row);

}  // namespace culprit::app
