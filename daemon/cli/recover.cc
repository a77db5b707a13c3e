#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/recover_replay.h"
#include "cli/recovery_text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kRecoverExamples = R"(
Examples:
  culprit recover list            # jobs, and what the controller does or asks
  culprit recover explain 4711    # why job 4711 is where it is
  culprit recover approve d-0001  # in mode ask: do what was asked)";
constexpr const char* kListExamples = R"(
Examples:
  culprit recover list
  culprit recover list --format json | jq '.items[] | select(.asks)')";
constexpr const char* kExplainExamples = R"(
Examples:
  culprit recover explain 4711
  culprit recover explain 4711 --format json)";
constexpr const char* kMachinesExamples = R"(
Examples:
  culprit recover machines        # hosts that were suspected or taken out, and how often)";
constexpr const char* kCostExamples = R"(
Examples:
  culprit recover cost            # effective training time, and what was lost by cause)";
constexpr const char* kApproveExamples = R"(
Examples:
  culprit recover approve d-0001)";
constexpr const char* kDeclineExamples = R"(
Examples:
  culprit recover decline d-0001  # the job stays as it is)";
constexpr const char* kUndoExamples = R"(
Examples:
  culprit recover undo 9f0c1a2b3c4d5e6f  # return the host; the same cause takes it out no more for a day)";
constexpr const char* kCheckExamples = R"(
Examples:
  culprit recover check n17       # after its repair: if it passes, and we took it out, it is returned)";
constexpr const char* kResetExamples = R"(
Examples:
  culprit recover reset           # close the breaker; what was decided before is dropped)";

std::string joined(const Json& object, const char* name) {
  std::string out;
  if (const auto list = object.find(name); list != object.end() && list->is_array())
    for (const Json& one : *list) out += (out.empty() ? "" : ", ") + shown(one);
  return out.empty() ? "-" : out;
}

// The questions that wait for a person, each with the command that answers it.
std::string questions_text(const Json& json, const RemoteOptions& o) {
  std::string out;
  const auto list = json.find("questions");  // absent from an older daemon
  if (list == json.end() || !list->is_array()) return out;
  for (const Json& one : *list)
    if (one.is_object())
      out += fmt::format("\n{} asks to {}\n  why: {}\n  until {}: culprit recover approve {}\n",
                         text_field(one, "decision"), text_field(one, "does"), text_field(one, "text"),
                         time_field(one, "expires_ns", o.zone), text_field(one, "decision"));
  return out.empty() ? out : out + "\n";
}

std::string overview_text(const Json& json, const RemoteOptions& o) {
  std::string out =
      fmt::format("mode {}; {} hosts are out\n", text_field(json, "mode"), text_field(json, "isolated"));
  for (const auto& [name, prefix] : {std::pair{"trouble", "nothing is done: "}, {"breaker", "breaker: "}})
    if (json.value(name, Json()).is_string()) out += prefix + text_field(json, name) + "\n";
  out += questions_text(json, o);
  std::vector<std::vector<std::string>> rows{
      {"JOB", "ATTEMPT", "STATE", "SINCE", "DECISION", "WITHOUT", "WHY"}};
  if (const auto items = json.find("items"); items != json.end() && items->is_array())
    for (const Json& one : *items)
      if (one.is_object())
        rows.push_back({text_field(one, "job"), text_field(one, "attempt"),
                        text_field(one, "state") + (one.value("asks", false) ? ", asks" : ""),
                        time_field(one, "since_ns", o.zone), text_field(one, "decision"),
                        joined(one, "excluded"), text_field(one, "why")});
  constexpr size_t kWhy = 6;  // column
  if (rows.size() == 1) return out + "the scheduler shows no job\n";
  return out + table(rows, wants_color(), kWhy, page_width());
}

std::string explanation_text(const Json& json, const RemoteOptions& o) {
  std::string out =
      fmt::format("job {}, attempt {}: {} since {}\n", text_field(json, "job"), text_field(json, "attempt"),
                  text_field(json, "state"), time_field(json, "since_ns", o.zone));
  if (json.value("root", Json()).is_string()) out += "cause: " + text_field(json, "root") + "\n";
  if (json.value("why", Json()).is_string()) out += "why: " + text_field(json, "why") + "\n";
  out += fmt::format("runs on: {}\nexcluded: {}\n\n", joined(json, "hosts"), joined(json, "excluded"));
  if (const auto list = json.find("explanation"); list != json.end() && list->is_array())
    for (const Json& sentence : *list) out += "  " + shown(sentence) + "\n";
  std::vector<std::vector<std::string>> rows{{"OP", "DECISION", "ACTION", "TARGET", "STATE", "RESULT"}};
  if (const auto list = json.find("actions"); list != json.end() && list->is_array())
    for (const Json& one : *list)
      if (one.is_object())
        rows.push_back({text_field(one, "op"), text_field(one, "decision"), text_field(one, "kind"),
                        text_field(one, "target"), text_field(one, "state"), text_field(one, "detail")});
  constexpr size_t kResult = 5;  // column
  return rows.size() == 1 ? out : out + "\n" + table(rows, wants_color(), kResult, page_width());
}

struct OrderOptions {
  RemoteOptions remote;
  std::string id;
};

int send_order(OrderOptions& o, const std::string& what) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const std::string path = what == "reset" ? std::string("/v1/recovery/reset")
                                           : fmt::format("/v1/recovery/{}/{}", app::url_escaped(o.id), what);
  const auto done = client->post(path, by_whom());
  if (!done) return report_error(done.error().text), kUnable;
  const Json json = parse_ordered_json(*done);
  if (!json.is_object()) return report_error("the daemon's answer is no object"), kUnable;
  const std::string done_text =
      fmt::format("{}{}{}\n", text_field(json, "done"), o.id.empty() ? "" : ": ", to_terminal(o.id));
  return print(o.remote.format == "json" ? *done : done_text) ? kDone : kUnable;
}

void add_orders(Command& recover, Run& run) {
  const struct {
    const char *name, *about, *id, *id_about, *examples;
  } kVerbs[] = {
      {"approve", "Do what the controller asks", "DECISION", "As `culprit recover list` shows it",
       kApproveExamples},
      {"decline", "Leave the job as it is", "DECISION", "As `culprit recover list` shows it",
       kDeclineExamples},
      {"undo", "Return a host that the controller took out", "OP", "As `culprit recover machines` shows it",
       kUndoExamples},
      {"check", "Have a host checked; one that we took out is returned if it passes", "HOST",
       "As `culprit hosts` lists it", kCheckExamples},
      {"reset", "Close the breaker, and drop what was decided before", nullptr, nullptr, kResetExamples}};
  for (const auto& one : kVerbs) {
    auto o = std::make_shared<OrderOptions>();
    Command* verb = recover.add_subcommand(one.name, one.about);
    verb->footer(one.examples);
    if (one.id) verb->add_option(one.id, o->id, one.id_about)->required();
    add_server_options(*verb, o->remote);
    add_format(*verb, o->remote, {"text", "json"});
    verb->callback(
        [o, &run, what = std::string(one.name)] { run = [o, what] { return send_order(*o, what); }; });
  }
}

struct ShowOptions {
  RemoteOptions remote;
  std::string job;
};

}  // namespace

void add_recover(Command& app, Run& run) {
  Command* recover = app.add_subcommand(
      "recover", "What the controller does about jobs at fault: why, approvals, undo, cost");
  recover->require_subcommand();
  recover->footer(kRecoverExamples);
  using Show = std::string (*)(const Json&, const RemoteOptions&);
  const struct {
    const char *name, *about, *path, *examples;
    Show show;
  } kVerbs[] = {
      {"list", "Jobs, their states, and open questions", "/v1/recovery", kListExamples, overview_text},
      {"machines", "Hosts and devices that were suspected or taken out", "/v1/recovery/machines",
       kMachinesExamples,
       [](const Json& json, const RemoteOptions& o) { return machines_text(json, o.zone, wall_now()); }},
      {"cost", "Effective training time, and time lost by cause", "/v1/recovery/cost", kCostExamples,
       [](const Json& json, const RemoteOptions&) { return cost_text(json); }}};
  for (const auto& one : kVerbs) {
    auto o = std::make_shared<RemoteOptions>();
    Command* verb = recover->add_subcommand(one.name, one.about);
    verb->footer(one.examples);
    add_server_options(*verb, *o);
    add_format(*verb, *o, {"text", "json"});
    add_timezone(*verb, *o);
    verb->callback([o, &run, path = one.path, show = one.show] {
      run = [o, path, show] {
        return print_answer(*o, path, [&](const Json& json) { return show(json, *o); });
      };
    });
  }
  auto o = std::make_shared<ShowOptions>();
  Command* explain = recover->add_subcommand("explain", "Why a job is where it is, and what was done");
  explain->footer(kExplainExamples);
  explain->add_option("JOB", o->job, "Its id at the scheduler")->required();
  add_server_options(*explain, o->remote);
  add_format(*explain, o->remote, {"text", "json"});
  add_timezone(*explain, o->remote);
  explain->callback([o, &run] {
    run = [o] {
      return print_answer(o->remote, "/v1/jobs/" + app::url_escaped(o->job) + "/decision",
                          [&](const Json& json) { return explanation_text(json, o->remote); });
    };
  });
  add_orders(*recover, run);
  add_recover_replay(*recover, run);
}

}  // namespace culprit::cli
