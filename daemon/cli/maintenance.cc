#include <fmt/format.h>

#include <chrono>

#include "app/config/options.h"
#include "base/text.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kMaintenanceExamples = R"(
Examples:
  culprit maintenance add --hosts 'rack7-*' --until 2h --reason 'new switch'
  culprit maintenance list
  culprit maintenance end 3)";
constexpr const char* kAddExamples = R"(
Examples:
  culprit maintenance add --hosts 'rack7-*' --until 2h --reason 'new switch'
  culprit maintenance add --jobs 'test-*' --until 2026-12-01T08:00 --reason 'tests of the scheduler'
  culprit maintenance add --hosts node-17 --from 2026-12-01T22:00 --until 2026-12-02T04:00 --reason 'new GPU')";
constexpr const char* kListExamples = R"(
Example:
  culprit maintenance list            # newest first, and how many issues each suppressed)";
constexpr const char* kEndExamples = R"(
Example:
  culprit maintenance end 3           # what it held and still fires is sent now)";

struct AddOptions {
  RemoteOptions remote;
  std::string hosts, jobs, from, until, reason;
};

TimeNs now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A duration such as "2h" counts from `base`; else a time.
Result<TimeNs> moment(const std::string& text, TimeNs base, const Zone& zone) {
  if (const auto span = app::parse_duration(text)) return base + *span;
  return parse_time(text, zone);
}

int add_window(AddOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  TimeNs from = now_ns();
  Json body = Json::parse(by_whom());
  if (!o.from.empty()) {
    const auto given = moment(o.from, from, o.remote.zone);
    if (!given) return report_error("--from: " + given.error().text), kUnable;
    from = *given;
    body["from_ns"] = from;
  }
  const auto until = moment(o.until, from, o.remote.zone);
  if (!until) return report_error("--until: " + until.error().text), kUnable;
  body["until_ns"] = *until;
  body["reason"] = to_utf8(o.reason);
  if (!o.hosts.empty()) body["hosts"] = to_utf8(o.hosts);
  if (!o.jobs.empty()) body["jobs"] = to_utf8(o.jobs);
  const auto done = client->post("/v1/maintenance", body.dump());
  if (!done) return report_error(done.error().text), kUnable;
  const Json json = parse_ordered_json(*done);
  if (!json.is_object()) return report_error("the daemon's answer is no object"), kUnable;
  const std::string reported = fmt::format("window {}: silent until {}\n", text_field(json, "id"),
                                           time_field(json, "until_ns", o.remote.zone));
  return print(o.remote.format == "json" ? *done : reported) ? kDone : kUnable;
}

int list_windows(RemoteOptions& o) {
  return print_answer(o, "/v1/maintenance", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{
        {"ID", "STATE", "HOSTS", "JOBS", "FROM", "UNTIL", "HELD", "BY", "REASON"}};
    if (const auto items = json.find("items"); items != json.end() && items->is_array())
      for (const Json& w : *items)
        if (w.is_object())
          rows.push_back({text_field(w, "id"), text_field(w, "state"), text_field(w, "hosts"),
                          text_field(w, "jobs"), time_field(w, "from_ns", o.zone),
                          time_field(w, "until_ns", o.zone), text_field(w, "held"), text_field(w, "by"),
                          text_field(w, "reason")});
    return rows.size() > 1 ? table(rows, wants_color()) : std::string("no maintenance window is known\n");
  });
}

struct EndOptions {
  RemoteOptions remote;
  uint64_t id = 0;
};

int end_window(EndOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto done = client->post(fmt::format("/v1/maintenance/{}/end", o.id), by_whom());
  if (!done) return report_error(done.error().text), kUnable;
  return print(o.remote.format == "json" ? *done : fmt::format("window {}: ended\n", o.id)) ? kDone : kUnable;
}

void add_add(Command& maintenance, Run& run) {
  auto o = std::make_shared<AddOptions>();
  Command* verb = maintenance.add_subcommand("add", "Hold alerts for hosts or jobs silent for a time");
  verb->footer(kAddExamples);
  verb->add_option("--hosts", o->hosts, "Pattern of hosts: all that a verdict accuses must match")
      ->type_name("PATTERN");
  verb->add_option("--jobs", o->jobs, "Pattern of jobs: * any characters, ? one")->type_name("PATTERN");
  verb->add_option("--from", o->from, "When it begins (default: now)")->type_name("TIME");
  verb->add_option("--until", o->until, "When it ends: 2h, or 2026-12-01T08:00")
      ->type_name("TIME")
      ->required();
  verb->add_option("--reason", o->reason, "Why, for those who list it")->type_name("TEXT")->required();
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  add_timezone(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return add_window(*o); }; });
}

}  // namespace

void add_maintenance(Command& app, Run& run) {
  Command* maintenance = app.add_subcommand("maintenance", "Maintenance windows: alerts are suppressed");
  maintenance->require_subcommand();
  maintenance->footer(kMaintenanceExamples);
  add_add(*maintenance, run);
  {
    auto o = std::make_shared<RemoteOptions>();
    Command* verb = maintenance->add_subcommand("list", "The windows, newest first");
    verb->footer(kListExamples);
    add_server_options(*verb, *o);
    add_format(*verb, *o, {"text", "json"});
    add_timezone(*verb, *o);
    verb->callback([o, &run] { run = [o] { return list_windows(*o); }; });
  }
  auto o = std::make_shared<EndOptions>();
  Command* verb = maintenance->add_subcommand("end", "End a window now");
  verb->footer(kEndExamples);
  verb->add_option("ID", o->id, "As `culprit maintenance list` shows it")->required();
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return end_window(*o); }; });
}

}  // namespace culprit::cli
