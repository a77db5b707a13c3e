#include <fmt/format.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit status
  culprit status --format json | jq .drops
  culprit status --server http://127.0.0.1:7420)";

// Times and sizes in people's units.
std::string quantity(const Json& object, const std::string& name, const Zone& zone) {
  const Json& value = object[name];
  if (!value.is_number_integer()) return shown(value);
  if (name.ends_with("bytes")) return format_bytes(value.get<uint64_t>());
  if (!name.ends_with("_ns")) return shown(value);
  const auto ns = value.get<TimeNs>();
  return ns > 1'000'000'000'000'000'000
             ? time_field(object, name.c_str(), zone)
             : fmt::format("{:.3f} s", static_cast<double>(ns) / static_cast<double>(kNsPerSecond));
}

// What lies within one another as names joined by dots: what a later daemon tells is shown too.
void flatten(const Json& object, const std::string& before, std::vector<std::vector<std::string>>& rows,
             const Zone& zone) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = before + shown(Json(name));
    if ((value.is_string() || value.is_array()) && value.empty()) continue;  // says nothing
    const bool list = value.is_array() && value[0].is_object();
    if (value.is_object() || list)
      flatten(value, path + ".", rows, zone);
    else if (object.is_object())
      rows.push_back({path, quantity(object, name, zone)});
    else
      rows.push_back({path, shown(value)});
  }
}

// What a person looks for first, as a sentence.
std::string headline(const Json& json, const Zone& zone) {
  const std::string health = text_field(json, "health");
  return fmt::format("culpritd {} on {}, {}, since {}: {}\n\n", text_field(json, "version"),
                     text_field(json, "host"), text_field(json, "role"), time_field(json, "started_ns", zone),
                     inked(health, health == "ok" ? Ink::kDim : Ink::kAlarm, wants_color()));
}

int status(RemoteOptions& o) {
  return print_answer(o, "/v1/status", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"WHAT", "VALUE"}};
    Json rest = json;
    for (const char* told : {"version", "host", "role", "started_ns", "health", "healthy"}) rest.erase(told);
    flatten(rest, "", rows, o.zone);
    return headline(json, o.zone) + table(rows, wants_color());
  });
}

}  // namespace

void add_status(CLI::App& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  CLI::App* verb = app.add_subcommand("status", "How the daemon of this host is doing");
  verb->footer(kExamples);
  add_server_options(*verb, *o, Asks::kReads);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->callback([o, &run] { run = [o] { return status(*o); }; });
}

}  // namespace culprit::cli
