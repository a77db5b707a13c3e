// `culprit plugin check`: what the daemon will ask of a plugin, tried on a library before it is installed.
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
  std::vector<std::pair<std::string, std::string>> values;  // of its options
  std::vector<std::string> lines;                           // of logs, besides the built-in events
  std::string host_program;                                 // empty: the installed one
};

struct PluginCheckRow {
  enum class Outcome : unsigned char { kOk, kNote, kWrong } outcome = Outcome::kOk;
  std::string check;  // "symbols"
  std::string text;
};

// What was measured; 0: nothing, as a check before failed or the plugin takes no events.
struct PluginCost {
  double event_ns = 0;  // of a core, in the plugin's own process, with the way there and back
  uint64_t memory_bytes = 0;
};

// Calls `row` for each check as it is done. An error: the file cannot be read.
Result<PluginCost> check_plugin(const PluginCheckOptions& options,
                                const std::function<void(PluginCheckRow)>& row);

}  // namespace culprit::app
