#include "model/plugin_finding.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"
#include "model/json_writer.h"

namespace culprit {
namespace {

constexpr std::array<std::string_view, 4> kSeverities = {"info", "warning", "error", "fatal"};
// Bytes of a shortened text. JSON may encode one byte as six; the line then still has room for all texts and
// places.
constexpr size_t kShortText = 256;
constexpr std::array<std::string_view, 3> kStates = {"happened", "raised", "cleared"};

template <class Enum, size_t kSize>
std::optional<Enum> value_of(const std::array<std::string_view, kSize>& words, std::string_view word) {
  for (size_t i = 0; i < kSize; ++i)
    if (words[i] == word) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(PluginSeverity severity) { return kSeverities[static_cast<size_t>(severity)]; }
std::string_view to_string(PluginState state) { return kStates[static_cast<size_t>(state)]; }
std::optional<PluginSeverity> plugin_severity(std::string_view word) {
  return value_of<PluginSeverity>(kSeverities, word);
}
std::optional<PluginState> plugin_state(std::string_view word) {
  return value_of<PluginState>(kStates, word);
}

std::string finding_line(const PluginFinding& f) {
  JsonWriter w;
  w.object([&] {
    const auto text = [&](std::string_view name, const std::string& value) {
      if (!value.empty()) w.field(name, value);
    };
    w.field("kind", "finding");
    text("job", f.job);
    text("host", f.host);
    if (f.rank) w.field("rank", *f.rank);
    if (f.device) w.field("device", *f.device);
    if (f.time_ns != kNoTime) w.field("time_ns", f.time_ns);
    w.field("plugin", f.plugin);
    w.field("id", f.id);
    w.field("severity", to_string(f.severity));
    w.field("state", to_string(f.state));
    w.field("confidence", f.confidence);
    w.field("title", f.title);
    text("text", f.text);
    text("category", f.category);
    text("component", f.component);
    text("symptom", f.symptom);
    text("action", f.action);
    text("restart", f.restart);
    text("remedy", f.remedy);
    text("peer", f.peer);
    text("part", f.part);
    if (!f.values.empty())
      w.member("values", [&] {
        w.object([&] {
          for (const auto& [name, value] : f.values) w.field(name, value);
        });
      });
  });
  return w.finish();
}

bool fit_line(PluginFinding& f) {
  const auto fits = [&f] { return finding_line(f).size() < limits::kLineBytes; };
  if (fits()) return false;
  for (const auto text :
       {&PluginFinding::title, &PluginFinding::text, &PluginFinding::category, &PluginFinding::component,
        &PluginFinding::symptom, &PluginFinding::action, &PluginFinding::restart, &PluginFinding::remedy})
    f.*text = shorten(f.*text, kShortText);
  while (!f.values.empty() && !fits()) f.values.resize(f.values.size() / 2);
  return true;
}

PluginFinding plugin_forgot(const std::string& plugin, TimeNs time) {
  PluginFinding out;
  out.plugin = plugin;
  out.id = kPluginForgot;
  out.title = "A plugin forgot its states";
  out.text = fmt::format("plugin {}: it knows nothing of what it raised before", plugin);
  out.category = "platform";
  out.action = "none";
  out.time_ns = time;
  out.confidence = 1;
  return out;
}

}  // namespace culprit
