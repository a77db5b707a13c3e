#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/config/options.h"
#include "base/text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kAlertExamples = R"(
Examples:
  culprit alert list                  # what fires, and what each receiver has before it
  culprit alert acknowledge llama-70b # you have it: no reminder comes any more
  culprit alert test                  # send a test to every receiver)";
constexpr const char* kAlertTestExamples = R"(
Examples:
  culprit alert test                  # to every receiver of [[alert]] and to [otlp]
  culprit alert test on-call          # the one of this name)";
constexpr const char* kAlertListExamples = R"(
Examples:
  culprit alert list
  culprit alert list --format json | jq -r '.receivers[] | select(.trouble).name')";

constexpr const char* kAcknowledgeExamples = R"(
Examples:
  culprit alert acknowledge 3f0c9a17d2b4e855
  culprit alert acknowledge llama-70b  # the one that fires for this job)";
constexpr const char* kSilenceExamples = R"(
Examples:
  culprit alert silence 3f0c9a17d2b4e855            # for two hours
  culprit alert silence llama-70b --for 30m
  culprit alert silence llama-70b --for 0s          # ends it)";
constexpr const char* kRepairedExamples = R"(
Examples:
  culprit alert repaired 3f0c9a17d2b4e855
  culprit alert repaired llama-70b     # its hosts are no suspects any more)";

struct AlertTestOptions {
  RemoteOptions remote;
  std::string receiver;
};

int alert_test(AlertTestOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const std::string query = o.receiver.empty() ? "" : "?receiver=" + app::url_escaped(o.receiver);
  const auto done = client->post("/v1/alerts/test" + query, by_whom());
  if (!done) return report_error(done.error().text), kUnable;
  const Json json = parse_ordered_json(*done);
  if (!json.is_object() || !json.contains("items") || !json["items"].is_array())
    return report_error("the daemon's answer is no list"), kUnable;
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

struct HandleOptions {
  RemoteOptions remote;
  std::string alert;  // a key or a job
  std::string for_time = "2h";
};

// The key of the alert that a person names: the key itself, or a job with only one firing alert.
Result<std::string> key_of(app::Client& client, const std::string& name) {
  auto items = get_items(client, "/v1/alerts?key=" + app::url_escaped(name));
  if (!items) return tl::unexpected(items.error());
  if (!items->empty()) return name;
  items = get_items(client, "/v1/alerts?job=" + app::url_escaped(name));
  if (!items) return tl::unexpected(items.error());
  std::vector<std::string> keys;
  for (const Json& one : *items)
    if (one.is_object() && text_field(one, "state") == "firing") keys.push_back(text_field(one, "key"));
  if (keys.size() == 1) return keys.front();
  if (keys.empty())
    return fail(
        ErrorCode::kNotFound,
        fmt::format("{}: no alert has this key, and none fires for a job of this name; culprit alert list",
                    to_terminal(name)));
  return fail(ErrorCode::kInvalid, fmt::format("{}: {} alerts fire for this job; name one: {}",
                                               to_terminal(name), keys.size(), fmt::join(keys, ", ")));
}

int handle(HandleOptions& o, const std::string& what) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  Json body = Json::parse(by_whom());
  if (what == "silence") {
    const auto span = app::parse_duration(o.for_time);
    if (!span) return report_error(fmt::format("--for {}: no time such as 2h or 30m", o.for_time)), kUnable;
    body["for_s"] = (*span + kNsPerSecond - 1) / kNsPerSecond;
  }
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto key = key_of(*client, o.alert);
  if (!key) return report_error(key.error().text), kUnable;
  const auto done = client->post(fmt::format("/v1/alerts/{}/{}", app::url_escaped(*key), what), body.dump());
  if (!done) return report_error(done.error().text), kUnable;
  const Json json = parse_ordered_json(*done);
  if (!json.is_object()) return report_error("the daemon's answer is no object"), kUnable;
  const bool silent = json.value("silent_until_ns", Json()).is_number();
  std::string reported = "repaired";
  if (what == "acknowledge") reported = "acknowledged by " + text_field(json, "acknowledged_by");
  if (what == "silence")
    reported = silent ? "silent until " + time_field(json, "silent_until_ns", o.remote.zone) : "heard again";
  reported = fmt::format("alert {}: {}: {}, {}\n", *key, reported, text_field(json, "job"),
                         text_field(json, "title"));
  return print(o.remote.format == "json" ? *done : reported) ? kDone : kUnable;
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

// "firing, acknowledged by alice, silent until 14:00".
std::string state_of(const Json& issue, const Zone& zone) {
  std::string out = text_field(issue, "state");
  if (out != "firing") return out;
  if (issue.value("again", Json()).is_string()) out += ", " + text_field(issue, "again");
  if (issue.value("acknowledged_by", Json()).is_string())
    out += ", acknowledged by " + text_field(issue, "acknowledged_by");
  if (issue.value("silent_until_ns", Json()).is_number())
    out += ", silent until " + time_field(issue, "silent_until_ns", zone);
  return out;
}

int alert_list(RemoteOptions& o) {
  constexpr size_t kWhat = 5;  // column
  return print_answer(o, "/v1/alerts", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{{"KEY", "STATE", "SINCE", "JOB", "RUN", "WHAT", "RECEIVERS"}};
    if (const auto items = json.find("items"); items != json.end() && items->is_array())
      for (const Json& one : *items) {
        if (!one.is_object()) continue;
        std::string receivers;
        if (const auto all = one.find("receivers"); all != one.end() && all->is_object())
          for (const auto& [name, state] : all->items())
            receivers +=
                fmt::format("{}{} {}", receivers.empty() ? "" : ", ", to_terminal(name), shown(state));
        const bool over = one.value("end", Json()).is_string();
        rows.push_back({text_field(one, "key"), state_of(one, o.zone), time_field(one, "since_ns", o.zone),
                        text_field(one, "job"), text_field(one, "run"),
                        text_field(one, "title") + (over ? "; " + text_field(one, "end") : ""),
                        receivers.empty() ? "-" : receivers});
      }
    const std::string issues = rows.size() > 1 ? table(rows, wants_color(), kWhat, page_width())
                                               : std::string("no issue is known\n");
    return issues + "\n" + receivers_table(json, o);
  });
}

}  // namespace

namespace {

void add_handling(Command& alert, Run& run) {
  const struct {
    const char *name, *about, *examples;
  } kVerbs[] = {
      {"acknowledge", "You have it: no reminder is sent any more", kAcknowledgeExamples},
      {"silence", "Send nothing of one alert but its end, for a time", kSilenceExamples},
      {"repaired", "The fault is repaired: close the alert and clear its hosts", kRepairedExamples}};
  for (const auto& one : kVerbs) {
    auto o = std::make_shared<HandleOptions>();
    Command* verb = alert.add_subcommand(one.name, one.about);
    verb->footer(one.examples);
    verb->add_option("ALERT", o->alert, "Its key, as `culprit alert list` shows it, or its job")->required();
    if (one.name == std::string("silence"))
      verb->add_option("--for", o->for_time, "For how long; 0s ends a silence")
          ->type_name("TIME")
          ->show_default();
    add_server_options(*verb, o->remote);
    add_format(*verb, o->remote, {"text", "json"});
    add_timezone(*verb, o->remote);
    verb->callback([o, &run, what = std::string(one.name)] { run = [o, what] { return handle(*o, what); }; });
  }
}

}  // namespace

void add_alert(Command& app, Run& run) {
  Command* alert = app.add_subcommand(
      "alert", "Alerts that the daemon sends, what to do about one, and tests of receivers");
  alert->require_subcommand();
  alert->footer(kAlertExamples);
  {
    auto o = std::make_shared<RemoteOptions>();
    Command* verb = alert->add_subcommand("list", "Issues, and what waits for each receiver");
    verb->footer(kAlertListExamples);
    add_server_options(*verb, *o);
    add_members(*verb, *o);
    add_format(*verb, *o, {"text", "json"});
    add_timezone(*verb, *o);
    verb->callback([o, &run] { run = [o] { return alert_list(*o); }; });
  }
  add_handling(*alert, run);
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
