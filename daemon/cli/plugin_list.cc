#include <fmt/format.h>

#include "base/text.h"
#include "cli/plugin_verbs.h"
#include "cli/remote.h"
#include "cli/rules.h"

namespace culprit::cli {
namespace {

constexpr const char* kPluginExamples = R"(
Examples:
  culprit plugin new fan_watch && cmake -S fan_watch -B fan_watch/build && cmake --build fan_watch/build
  culprit plugin check fan_watch/build/fan_watch.so
  culprit plugin list)";

constexpr const char* kPluginListExamples = R"(
Examples:
  culprit plugin list
  culprit plugin list --format json | jq '.items[] | select(.state != "running") | {name, reason}')";

std::string number(const Json& plugin, const char* name, std::string (*show)(uint64_t)) {
  const auto at = plugin.find(name);
  return at != plugin.end() && at->is_number_unsigned() ? show(at->get<uint64_t>()) : "-";
}

std::string cpu_text(uint64_t ns) { return format_duration(static_cast<TimeNs>(ns)); }
std::string memory_text(uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

int list(RemoteOptions& o) {
  return print_answer(o, "/v1/plugins", [](const Json& json) {
    std::vector<std::vector<std::string>> rows{
        {"PLUGIN", "VERSION", "STATE", "EVENTS", "DROPPED", "FINDINGS", "FAILURES", "CPU", "MEMORY", "WHY"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& of : *items)
        if (of.is_object())
          rows.push_back({text_field(of, "name"), text_field(of, "version"), text_field(of, "state"),
                          text_field(of, "events"), text_field(of, "dropped_events"),
                          text_field(of, "findings"), text_field(of, "failures"),
                          number(of, "cpu_ns", cpu_text), number(of, "memory_bytes", memory_text),
                          text_field(of, "reason")});
    return rows.size() > 1 ? table(rows, wants_color())
                           : std::string("no plugin is in the folders of culpritd.toml\n");
  });
}

}  // namespace

void add_plugin_list(Command& plugin, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  Command* verb = plugin.add_subcommand(
      "list", "Plugins of the daemon: their state, what they cost and found, why one does not run");
  verb->footer(kPluginListExamples);
  add_server_options(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return list(*o); }; });
}

void add_plugin(Command& app, Run& run) {
  Command* plugin = app.add_subcommand("plugin", "Begin, check and list detectors as plugins");
  plugin->require_subcommand();
  plugin->footer(kPluginExamples);
  add_plugin_new(*plugin, run);
  add_plugin_check(*plugin, run);
  add_plugin_list(*plugin, run);
}

}  // namespace culprit::cli
