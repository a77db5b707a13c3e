#include "cli/status.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kStatusExamples = R"(
Examples:
  culprit status
  culprit status --format json | jq .drops
  culprit status --server http://127.0.0.1:7420)";

// Times and sizes in readable units.
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

// Nested objects as names joined by dots, including fields of later versions.
void flatten(const Json& object, const std::string& before, std::vector<std::vector<std::string>>& rows,
             const Zone& zone) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = before + shown(Json(name));
    // An empty text has no information.
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    if (value.is_array() && value.empty()) continue;
    const bool list = value.is_array() && value[0].is_object();
    if (value.is_object() || list)
      flatten(value, path + ".", rows, zone);
    else if (object.is_object())
      rows.push_back({path, quantity(object, name, zone)});
    else
      rows.push_back({path, shown(value)});
  }
}

// A healthy daemon may still say what is missing.
Ink ink_of_health(const Json& json, const std::string& health) {
  const auto healthy = json.find("healthy");
  const bool well = healthy != json.end() && healthy->is_boolean() && healthy->get<bool>();
  return health == "ok" ? Ink::kDim : well ? Ink::kCaution : Ink::kAlarm;
}

// The most important facts as a sentence. A daemon without its collector counts as healthy, but the user must
// see that no data leaves the host.
std::string headline(const Json& json, const Zone& zone, bool color) {
  const std::string health = text_field(json, "health");
  std::string out =
      fmt::format("culpritd {} on {}, {}, since {}: {}", text_field(json, "version"),
                  text_field(json, "host"), text_field(json, "role"), time_field(json, "started_ns", zone),
                  inked(health, ink_of_health(json, health), color));
  const auto forward = json.find("forward");
  if (forward == json.end() || !forward->is_object()) return out + "\n\n";
  const std::string sentence = text_field(*forward, "sentence");
  if (sentence != "connected" && sentence != "-") out += "; forward: " + inked(sentence, Ink::kAlarm, color);
  return out + "\n\n";
}

int status(RemoteOptions& o) {
  return print_answer(o, "/v1/status",
                      [&](const Json& json) { return status_text(json, o.zone, wants_color()); });
}

}  // namespace

std::string status_text(const Json& status, const Zone& zone, bool color) {
  std::vector<std::vector<std::string>> rows{{"WHAT", "VALUE"}};
  Json rest = status;
  for (const char* reported : {"version", "host", "role", "started_ns", "health", "healthy"})
    rest.erase(reported);
  flatten(rest, "", rows, zone);
  return headline(status, zone, color) + table(rows, color);
}

void add_status(Command& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  Command* verb = app.add_subcommand("status", "How the daemon of this host is doing");
  verb->footer(kStatusExamples);
  add_server_options(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->callback([o, &run] { run = [o] { return status(*o); }; });
}

}  // namespace culprit::cli
