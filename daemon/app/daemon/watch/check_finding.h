// What a check of this host found, as a finding of its jobs' reports: raised by a failed check, cleared by
// the next that passes. So for the collector's comparison of an equal step. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "check/part.h"
#include "model/plugin_finding.h"

namespace culprit::app {

// The source of these lines, and the plugin named by their findings.
inline constexpr std::string_view kCheckSource = "plugin/culprit-check", kCheckPlugin = "culprit-check";

// Nothing: the check has no answer.
std::optional<PluginFinding> finding_of_check(const check::Outcome& outcome, TimeNs now);
std::optional<PluginFinding> finding_of_alignment(const check::Outcome& outcome, TimeNs now);

}  // namespace culprit::app
