#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit hosts
  culprit hosts --format json | jq '.items[] | select(.state != "ok")')";

int hosts(RemoteOptions& o) {
  return print_answer(o, "/v1/hosts", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"HOST", "STATE", "SUSPECTED", "LAST SEEN"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& host : *items)
        if (host.is_object())
          rows.push_back({text_field(host, "host"), text_field(host, "state"), text_field(host, "suspected"),
                          time_field(host, "last_ns", o.zone)});
    return rows.size() > 1 ? table(rows, wants_color()) : std::string("no host was seen yet\n");
  });
}

}  // namespace

void add_hosts(CLI::App& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  CLI::App* verb = app.add_subcommand("hosts", "Hosts that the daemon knows, and which are suspected");
  verb->footer(kExamples);
  add_server_options(*verb, *o, Asks::kReads);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->callback([o, &run] { run = [o] { return hosts(*o); }; });
}

}  // namespace culprit::cli
