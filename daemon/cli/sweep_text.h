// What `culprit sweep` prints: first what was found, where, and what to do; then a matrix of pairs.
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "app/sweep/coordinator.h"
#include "model/plugin_finding.h"

namespace culprit::cli {

std::string sweep_text(const app::sweeping::SweepResult& result, bool color);
std::string sweep_json(const app::sweeping::SweepResult& result);

// What a finding says, and what to do about it. Names are safe for a terminal.
std::string sweep_sentence(const app::sweeping::SweepResult& result, const sweep::SweepFinding& finding);
const char* sweep_advice(const sweep::SweepFinding& finding);
// "8 of 8 hosts measured 28 pairs in 2.0 s; usual …", with notes and hosts without an answer, a line each.
std::vector<std::string> sweep_notes(const app::sweeping::SweepResult& result);

// Hosts to leave out, by commas; empty: none.
std::string sweep_excluded(const app::sweeping::SweepResult& result);

// A finding as the report has it, for hosts and links; `time_ns`: when the sweep ended.
std::vector<PluginFinding> sweep_findings(const app::sweeping::SweepResult& result, TimeNs time_ns);
// The same of one host, from the end of its member.
PluginFinding finding_of(const app::sweeping::End& end, const std::string& host, TimeNs time_ns);

}  // namespace culprit::cli
