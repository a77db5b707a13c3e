// Findings from the state of a hung job's rank: the process is stopped or gone, or waits for a file system
// that does not answer. These are facts of the kernel, without stacks. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "model/plugin_finding.h"

namespace culprit::app {

// The source of captured lines, and the plugin named by their findings.
inline constexpr std::string_view kCaptureSource = "plugin/culprit-capture",
                                  kCapturePlugin = "culprit-capture";

// The finding of a {"kind":"stack"} line of culprit-capture. Nothing: an ordinary state, or another line.
std::optional<PluginFinding> finding_of_state(std::string_view line);

}  // namespace culprit::app
