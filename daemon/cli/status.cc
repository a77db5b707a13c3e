#include <fmt/format.h>

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

// Objects within one another as names joined by dots: what a later daemon tells is shown too.
void flatten(const Json& object, const std::string& before, std::vector<std::vector<std::string>>& rows,
             const Zone& zone) {
  for (const auto& [name, value] : object.items()) {
    const std::string path = before + shown(Json(name));
    if (value.is_object())
      flatten(value, path + ".", rows, zone);
    else if (name.ends_with("_ns") && value.is_number_integer() &&
             value.get<TimeNs>() > 1'000'000'000'000'000'000)
      rows.push_back({path, time_field(object, name.c_str(), zone)});
    else
      rows.push_back({path, shown(value)});
  }
}

int status(RemoteOptions& o) {
  return print_answer(o, "/v1/status", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"WHAT", "VALUE"}};
    flatten(json, "", rows, o.zone);
    return table(rows, wants_color());
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
