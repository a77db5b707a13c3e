// A finding of a plugin's detector (culprit/plugin.h), and its form as a line of JSON: {"kind":"finding",…},
// formats.md section 4. A plain value that owns its data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace culprit {

enum class PluginSeverity : uint8_t { kInfo, kWarning, kError, kFatal };
// A fault that happened, or a state that began or ended.
enum class PluginState : uint8_t { kHappened, kRaised, kCleared };
std::string_view to_string(PluginSeverity severity);  // "info", "warning", "error", "fatal"
std::string_view to_string(PluginState state);        // "happened", "raised", "cleared"
std::optional<PluginSeverity> plugin_severity(std::string_view word);
std::optional<PluginState> plugin_state(std::string_view word);

struct PluginFinding {
  std::string plugin;                                // name of the plugin, "gpu_health"
  std::string id;                                    // the fault: "gpu.thermal_throttle"
  std::string title;                                 // the fault in a few words, without names and numbers
  std::string text;                                  // the observation, with names and numbers
  std::string category, component, symptom, action;  // words of formats.md section 7; empty: unknown
  std::string restart;  // word of formats.md section 7; empty: by category and action
  std::string remedy;
  std::string host;  // empty: the daemon's host
  std::string job;   // empty: every job on the host
  std::string peer;  // for a link: the host at the other end; empty: no link
  std::string part;  // part of the host or device: "mlx5_0/1"; empty: the whole
  std::optional<uint32_t> rank, device;
  TimeNs time_ns = kNoTime;
  double confidence = 0;  // probability that the fault is there, 0..1
  PluginSeverity severity = PluginSeverity::kInfo;
  PluginState state = PluginState::kHappened;
  std::vector<std::pair<std::string, double>> values;
};

// All text members of a finding.
inline constexpr std::string PluginFinding::*kPluginFindingTexts[] = {
    &PluginFinding::plugin,   &PluginFinding::id,        &PluginFinding::title,   &PluginFinding::text,
    &PluginFinding::category, &PluginFinding::component, &PluginFinding::symptom, &PluginFinding::action,
    &PluginFinding::remedy,   &PluginFinding::host,      &PluginFinding::job,     &PluginFinding::peer,
    &PluginFinding::part,     &PluginFinding::restart};

// The JSON line, without a newline.
std::string finding_line(const PluginFinding& finding);
// Shortens texts for people and drops values until the line with its newline has at most limits::kLineBytes.
// Keeps the identity and place of the fault. Returns whether anything was too long.
bool fit_line(PluginFinding& finding);

// Id of the daemon's finding that ends all states of a plugin: no instance of the plugin knows the states
// raised by earlier instances.
inline constexpr std::string_view kPluginForgot = "culprit.plugin.forgot";
PluginFinding plugin_forgot(const std::string& plugin, TimeNs time);

}  // namespace culprit
