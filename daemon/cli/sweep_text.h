// What `culprit sweep` prints: first what was found, where, and what to do; then a matrix of pairs. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/sweep/coordinator.h"
#include "model/plugin_finding.h"

namespace culprit::cli {

std::string sweep_text(const app::sweeping::SweepResult& result, bool color);
std::string sweep_json(const app::sweeping::SweepResult& result);

// Hosts to leave out, by commas; empty: none.
std::string sweep_excluded(const app::sweeping::SweepResult& result);

// A finding as the report has it, for hosts and links; `time_ns`: when the sweep ended.
std::vector<PluginFinding> sweep_findings(const app::sweeping::SweepResult& result, TimeNs time_ns);
// The same of one host, from the end of its member.
PluginFinding finding_of(const app::sweeping::End& end, const std::string& host, TimeNs time_ns);

}  // namespace culprit::cli
