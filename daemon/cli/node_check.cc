#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "app/check/host_check.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/child_work.h"
#include "cli/remote.h"
#include "cli/verbs.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kNodeCheckExamples = R"(
Examples:
  culprit node-check                           # from what the daemon knows, within a second
  culprit node-check --full                    # also memory, disk, PCIe links, the vendor's diagnostics
  culprit node-check --full --strict || exit 1 # a gate that takes no answer for a failure

Exit status: 0 passed or unknown, 1 failed, 2 usage or a wrong configuration; with --strict 3 unknown.)";

constexpr int kUnknown = 3;  // with --strict
constexpr TimeNs kQuickWithin = 900 * kNsPerMs;
constexpr long kAnswerMs = 600;  // of the daemon, for both questions
constexpr TimeNs kBeyond = 5 * kNsPerSecond;
constexpr int kPauseMs = 2;

struct NodeCheckOptions {
  RemoteOptions remote;
  std::string config, host;
  bool full = false, strict = false;
};

struct NodeChecked {
  std::string host;
  check::Outcome outcome;
  std::vector<check::Part> parts;
};

check::Outcome unknown(std::string why) { return {check::Answer::kNoAnswer, std::move(why)}; }

// What the daemon holds against the host.
check::Outcome known_outcome(app::Client& client, NodeChecked& out) {
  const auto status = get_json(client, "/v1/status");
  if (!status) return unknown(status.error().text);
  if (!status->value("healthy", false))
    return unknown("the daemon is not healthy: " + text_field(*status, "health"));
  if (!status->value("restored", false)) return unknown("the daemon still reads what it stored");
  if (out.host.empty()) out.host = status->value("host", "");
  if (status->value("role", "") == "agent")
    return unknown("the daemon of this host is an agent: its collector knows more (--server)");
  const auto hosts = get_items(client, "/v1/hosts");
  if (!hosts) return unknown(hosts.error().text);
  const auto row =
      std::ranges::find_if(*hosts, [&](const Json& one) { return one.value("host", "") == out.host; });
  if (row == hosts->end()) return unknown(fmt::format("the daemon knows no host {}", to_terminal(out.host)));
  if (!row->value("suspected", false)) return {check::Answer::kPassed, "nothing is held against it"};
  return {check::Answer::kFailed, fmt::format("suspected: {} (job {}, {})", text_field(*row, "reason"),
                                              text_field(*row, "job"), text_field(*row, "diagnosis"))};
}

check::Outcome ask_daemon(const NodeCheckOptions& o, NodeChecked& out) {
  app::ClientOptions options = o.remote.client;
  options.answer_ms = kAnswerMs / 2;
  auto client = app::Client::make(options);
  return client ? known_outcome(*client, out) : unknown(client.error().text);
}

// A fault that the daemon knows is not tested away.
void check_fully(const app::LoadedConfig& loaded, NodeChecked& out) {
  if (out.outcome.answer == check::Answer::kFailed) return;
  const app::ProcessView view = app::look_at_processes({"/proc", wall_now(), steady_now});
  if (const auto job = app::job_in_the_way(view, ::geteuid())) {
    out.outcome = unknown(*job);
    return;
  }
  app::HostCheckOptions options = app::host_check_options(loaded.config);
  if (::access(options.folder.c_str(), W_OK) != 0) options.folder = "/tmp";
  app::HostCheck done = app::check_host(options);
  out.outcome = std::move(done.outcome);
  out.parts = std::move(done.parts);
}

std::string json_text(const NodeChecked& checked) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.node-check/1");
    w.text_or_null("host", checked.host);
    w.field("answer", check::to_string(checked.outcome.answer));
    w.field("why", checked.outcome.why);
    w.list("parts", checked.parts, [&](const check::Part& part) {
      w.object([&] {
        w.field("part", part.name);
        w.field("answer", check::to_string(part.answer));
        w.field("text", part.text);
        if (!part.unit.empty()) {
          w.field("figure", part.figure);
          w.field("unit", part.unit);
        }
        w.field("took_s", static_cast<double>(part.took_ns) / kNsPerSecond);
      });
    });
  });
  return w.finish() + "\n";
}

std::string line_of(const NodeChecked& checked) {
  const check::Outcome& o = checked.outcome;
  const std::string why = o.why.starts_with("passed: ") ? o.why.substr(8) : o.why;
  return fmt::format("{}{}: {}\n", checked.host.empty() ? "" : to_terminal(checked.host) + " ",
                     o.answer == check::Answer::kNoAnswer ? "unknown" : check::to_string(o.answer), why);
}

// The answer's digit, then the text to print. In a child: each step may hang.
std::string checked_text(const NodeCheckOptions& o, const app::LoadedConfig* loaded) {
  NodeChecked checked;
  checked.host = o.host;
  checked.outcome = ask_daemon(o, checked);
  if (loaded) check_fully(*loaded, checked);
  return fmt::format("{}{}", static_cast<int>(checked.outcome.answer),
                     o.remote.format == "json" ? json_text(checked) : line_of(checked));
}

int node_check(NodeCheckOptions& o) {
  std::optional<app::LoadedConfig> loaded;
  TimeNs within = kQuickWithin;
  if (o.full && !o.host.empty())
    return report_error("node-check: --full tests this host; without --host"), kUnable;
  if (o.full) {
    loaded = app::load_config(o.config);
    // A user who may not read the daemon's configuration gets the defaults; a wrong one is never replaced.
    const auto wrong = std::ranges::find_if(loaded->errors, [&](const app::ConfigError& error) {
      return !o.config.empty() || error.code != ErrorCode::kDenied;
    });
    if (wrong != loaded->errors.end())
      return report_error("node-check: " + app::format_error(*wrong)), kUnable;
    if (!loaded->errors.empty()) loaded = app::LoadedConfig{};
    within += loaded->config.check.within_ns + kBeyond;
  }
  const auto goes_on = [] {
    ::poll(nullptr, 0, kPauseMs);
    return true;
  };
  const auto work = [&] { return checked_text(o, loaded ? &*loaded : nullptr); };
  std::string text = in_child(work, within, goes_on).value_or("");
  if (text.size() < 2) {
    NodeChecked late;
    late.host = o.host;
    late.outcome = unknown(fmt::format("no answer within {}", format_duration(within)));
    text = "2" + (o.remote.format == "json" ? json_text(late) : line_of(late));
  }
  if (!print(text.substr(1))) return kUnable;
  const auto answer = static_cast<check::Answer>(text.front() - '0');
  if (answer == check::Answer::kFailed) return kFound;
  return answer == check::Answer::kNoAnswer && o.strict ? kUnknown : kDone;
}

}  // namespace

void add_node_check(Command& app, Run& run) {
  auto o = std::make_shared<NodeCheckOptions>();
  Command* verb =
      app.add_subcommand("node-check", "Say whether this host may run jobs: one line and a status");
  verb->footer(kNodeCheckExamples);
  verb->add_flag("--full", o->full, "Test the host: memory, disk, PCIe links, commands of [check]");
  verb->add_flag("--strict", o->strict, "Exit with 3 instead of 0 if the answer is unknown");
  verb->add_option("--host", o->host, "Name at the daemon; default: the daemon's own host");
  verb->add_option("--config", o->config, "Configuration with [check]; default: the daemon's");
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return node_check(*o); }; });
}

}  // namespace culprit::cli
