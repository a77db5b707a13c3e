#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kAlertExamples = R"(
Examples:
  culprit alert list                  # what fires, and what each receiver has before it
  culprit alert test                  # send a test to every receiver
  culprit alert test on-call)";
constexpr const char* kAlertTestExamples = R"(
Examples:
  culprit alert test                  # to every receiver of [[alert]] and to [otlp]
  culprit alert test on-call          # the one of this name)";
constexpr const char* kAlertListExamples = R"(
Examples:
  culprit alert list
  culprit alert list --format json | jq -r '.receivers[] | select(.trouble).name')";

struct AlertTestOptions {
  RemoteOptions remote;
  std::string receiver;
};

int alert_test(AlertTestOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return complain(client.error().text), kUnable;
  const std::string query = o.receiver.empty() ? "" : "?receiver=" + app::url_escaped(o.receiver);
  const auto done = client->post("/v1/alerts/test" + query, by_whom());
  if (!done) return complain(done.error().text), kUnable;
  const Json json = Json::parse(*done, nullptr, false);
  if (!json.is_object() || !json.contains("items") || !json["items"].is_array())
    return complain("the daemon's answer is no list"), kUnable;
  bool all = true;
  std::string out;
  for (const Json& one : json["items"]) {
    if (!one.is_object()) continue;
    const bool sent = one.value("sent", false);
    all = all && sent;
    out += fmt::format("{}: {}: {}\n", text_field(one, "receiver"),
                       sent ? "took the test" : "did not take it", text_field(one, "answer"));
  }
  if (!print(o.remote.format == "json" ? *done : out)) return kUnable;
  return all ? kDone : kFound;
}

std::string receivers_table(const Json& json, const RemoteOptions& o) {
  std::vector<std::vector<std::string>> rows{{"RECEIVER", "TYPE", "WAITING", "SENT", "DROPPED", "TROUBLE"}};
  if (const auto receivers = json.find("receivers"); receivers != json.end() && receivers->is_array())
    for (const Json& one : *receivers)
      if (one.is_object())
        rows.push_back({text_field(one, "name"), text_field(one, "type"), text_field(one, "waiting"),
                        text_field(one, "sent"), text_field(one, "dropped"),
                        one.value("trouble", Json()).is_string()
                            ? fmt::format("since {}{}: {}", time_field(one, "failing_since_ns", o.zone),
                                          one.value("next_ns", Json()).is_number()
                                              ? ", next try " + time_field(one, "next_ns", o.zone)
                                              : "",
                                          text_field(one, "trouble"))
                            : "-"});
  if (rows.size() == 1) return "no receiver is configured: see [[alert]] in culpritd.toml(5)\n";
  return table(rows, wants_color());
}

int alert_list(RemoteOptions& o) {
  constexpr size_t kWhat = 4;  // column
  return print_answer(o, "/v1/alerts", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"STATE", "SINCE", "JOB", "RUN", "WHAT", "RECEIVERS"}};
    if (const auto items = json.find("items"); items != json.end() && items->is_array())
      for (const Json& one : *items) {
        if (!one.is_object()) continue;
        std::string receivers;
        if (const auto all = one.find("receivers"); all != one.end() && all->is_object())
          for (const auto& [name, state] : all->items())
            receivers +=
                fmt::format("{}{} {}", receivers.empty() ? "" : ", ", to_terminal(name), shown(state));
        const bool over = one.value("end", Json()).is_string();
        rows.push_back({text_field(one, "state"), time_field(one, "since_ns", o.zone), text_field(one, "job"),
                        text_field(one, "run"),
                        text_field(one, "title") + (over ? "; " + text_field(one, "end") : ""),
                        receivers.empty() ? "-" : receivers});
      }
    const std::string issues = rows.size() > 1 ? table(rows, wants_color(), kWhat, page_width())
                                               : std::string("no issue is known\n");
    return issues + "\n" + receivers_table(json, o);
  });
}

}  // namespace

void add_alert(Command& app, Run& run) {
  Command* alert = app.add_subcommand("alert", "Alerts that the daemon sends, and tests of their receivers");
  alert->require_subcommand();
  alert->footer(kAlertExamples);
  {
    auto o = std::make_shared<RemoteOptions>();
    Command* verb = alert->add_subcommand("list", "Issues, and what waits for each receiver");
    verb->footer(kAlertListExamples);
    add_server_options(*verb, *o);
    add_format(*verb, *o, {"text", "json"});
    add_timezone(*verb, *o);
    verb->callback([o, &run] { run = [o] { return alert_list(*o); }; });
  }
  auto o = std::make_shared<AlertTestOptions>();
  Command* verb = alert->add_subcommand(
      "test", "Send a test and print what the receiver answered; exit 1 if one refused");
  verb->footer(kAlertTestExamples);
  verb->add_option("RECEIVER", o->receiver, "Its name in the configuration, or otlp (default: all)");
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return alert_test(*o); }; });
}

}  // namespace culprit::cli
