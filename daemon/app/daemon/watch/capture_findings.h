// What the state of a rank alone says of a job that hangs: it was stopped, its process is gone, or it waits
// for a file system that does not answer. These are facts of the kernel, without stacks. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "model/plugin_finding.h"

namespace culprit::app {

// The source of captured lines, and the plugin that their findings name.
inline constexpr std::string_view kCaptureSource = "plugin/culprit-capture",
                                  kCapturePlugin = "culprit-capture";

// Of a {"kind":"stack"} line of culprit-capture. Nothing: the state says nothing, or the line is none.
std::optional<PluginFinding> finding_of_state(std::string_view line);

}  // namespace culprit::app
