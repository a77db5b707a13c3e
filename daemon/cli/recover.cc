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
      {"list", "Jobs, their states, and open questions", "/v1/recovery", kListExamples,
       [](const Json& json, const RemoteOptions& o) { return recovery_overview_text(json, o.zone); }},
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
                          [&](const Json& json) { return decision_text(json, o->remote.zone); });
    };
  });
  add_orders(*recover, run);
  add_recover_replay(*recover, run);
}

}  // namespace culprit::cli
