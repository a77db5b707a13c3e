#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "cli/hosts.h"
#include "cli/recovery_text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kHostsExamples = R"(
Examples:
  culprit hosts --devices             # which devices were suspected of corrupting data, and in which jobs
  culprit hosts --history             # which hosts the controller took out, and how often
  culprit hosts --format json | jq -r '.items[] | select(.standing == "suspect") | .host')";

// Frames that the collector lacks: "3.2 s, 12 frames".
std::string lag(const Json& host) {
  const auto frames = host.find("lag_frames");
  if (frames == host.end() || !frames->is_number_unsigned()) {
    const auto bytes = host.find("lag_bytes");
    return bytes != host.end() && bytes->is_number_unsigned() ? format_bytes(bytes->get<uint64_t>()) : "-";
  }
  if (frames->get<uint64_t>() == 0) return "none";
  const auto age = host.find("lag_ns");
  const std::string waits = counted(frames->get<uint64_t>(), "frame");
  if (age == host.end() || !age->is_number_integer()) return waits;
  return fmt::format("{}, {}", format_duration(age->get<TimeNs>()), waits);
}

std::string drops(const Json& host) {
  const auto count = [&](const char* name) {
    const auto at = host.find(name);
    return at != host.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
  };
  const uint64_t bytes = count("dropped_bytes"), records = count("dropped_records");
  std::string out = bytes > 0 ? format_bytes(bytes) : "";
  if (records > 0) out += (out.empty() ? "" : ", ") + counted(records, "record");
  return out.empty() ? "none" : out;
}

// Findings about the host ("GPU has fallen off the bus (job llama)"), then why the host is disconnected or
// unhealthy.
std::string reason(const Json& host) {
  const auto reported = [&](const char* name) {
    const auto at = host.find(name);
    return at != host.end() && at->is_string() ? text_field(host, name) : std::string();
  };
  std::string out = reported("reason");
  if (!out.empty() && !reported("job").empty()) out += " (job " + reported("job") + ")";
  const std::string trouble = reported("trouble");
  const std::string away = trouble.empty() ? reported("left") : trouble;
  if (!away.empty()) out += (out.empty() ? "" : "; ") + away;
  return out.empty() ? "-" : out;
}

double score_of(const Json& host) {
  const auto score = host.find("score");
  return score != host.end() && score->is_number() ? score->get<double>() : 0;
}

// A daemon of an earlier version reports only whether the host is suspected.
std::string state_of(const Json& host) {
  const auto current = host.find("standing");
  if (current != host.end() && current->is_string()) return to_terminal(current->get<std::string>());
  const auto suspected = host.find("suspected");
  return suspected != host.end() && *suspected == true ? "suspect" : "normal";
}

// Hides a small clock offset, since the delay of the hello causes as much.
std::string clock(const Json& host) {
  const auto ahead = host.find("clock_ahead_ns");
  if (ahead == host.end() || !ahead->is_number_integer()) return "-";
  const TimeNs ns = ahead->get<TimeNs>();
  if (std::abs(ns) < 500 * kNsPerMs) return "ok";
  return fmt::format("{} {}", format_duration(std::abs(ns)), ns > 0 ? "ahead" : "behind");
}

// Lists earlier faults of devices, for the decision whether to use a device again.
int devices(RemoteOptions& o) {
  return print_answer(o, "/v1/devices", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{
        {"DEVICE", "HOST", "SUSPECTED", "JOB", "RUN", "STEP", "DIAGNOSIS"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& of : *items)
        if (of.is_object())
          rows.push_back({text_field(of, "device"), text_field(of, "host"), time_field(of, "time_ns", o.zone),
                          text_field(of, "job"), text_field(of, "run"), text_field(of, "step"),
                          text_field(of, "diagnosis")});
    return rows.size() > 1 ? table(rows, wants_color())
                           : std::string("no device is suspected of corrupting data\n");
  });
}

int history(RemoteOptions& o) {
  o.asks_members = false;  // the ledger is one
  return print_answer(o, "/v1/recovery/machines",
                      [&](const Json& json) { return machines_text(json, o.zone, wall_now()); });
}

int hosts(RemoteOptions& o) {
  if (Status status = resolve(o); !status) return report_error(status.error().text), kUnable;
  auto cells = cells_of(o);
  if (!cells) return report_error(cells.error().text), kUnable;
  std::vector<Json> items;
  if (cells->are_several()) {
    auto joined = get_joined(*cells, "/v1/hosts");
    if (!joined) return report_error(joined.error().text), kUnable;
    for (Json& item : (*joined)["items"]) items.push_back(std::move(item));
  } else {
    auto own = get_items(cells->clients().front(), "/v1/hosts");
    if (!own) return report_error(own.error().text), kUnable;
    items = std::move(*own);
  }
  std::vector<Json> sorted = worst_first(std::move(items));
  const std::string out =
      o.format == "json"
          ? Json{{"items", std::move(sorted)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
          : hosts_text(sorted, o.zone, wants_color());
  return print(out) ? kDone : kUnable;
}

}  // namespace

std::vector<Json> worst_first(std::vector<Json> hosts) {
  const auto order = [](const Json& host) {
    const std::string current = state_of(host), state = text_field(host, "state");
    const bool well = state == "healthy" || state == "not watched here";
    return current == "suspect" ? 0 : !well ? 1 : current == "odd" ? 2 : 3;
  };
  std::stable_sort(hosts.begin(), hosts.end(), [&](const Json& a, const Json& b) {
    return order(a) != order(b) ? order(a) < order(b) : score_of(a) > score_of(b);
  });
  return hosts;
}

std::string hosts_text(const std::vector<Json>& hosts, const Zone& zone, bool color) {
  std::vector<std::vector<std::string>> rows{
      {"HOST", "STANDING", "SCORE", "STATE", "LAST SEEN", "LAG", "DROPPED", "CLOCK", "VERSION", "WHY"}};
  for (const Json& host : hosts)
    rows.push_back({text_field(host, "host"), state_of(host),
                    score_of(host) > 0 ? fmt::format("{:.2f}", score_of(host)) : "-",
                    text_field(host, "state"), time_field(host, "last_ns", zone), lag(host), drops(host),
                    clock(host), text_field(host, "version"), reason(host)});
  return rows.size() > 1 ? table(rows, color) : std::string("no host was seen yet\n");
}

void add_hosts(Command& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  auto of_devices = std::make_shared<bool>(false), of_history = std::make_shared<bool>(false);
  Command* verb = app.add_subcommand(
      "hosts", "Hosts that the daemon knows, the worst first: suspect (a verdict names it), odd or normal");
  verb->footer(kHostsExamples);
  add_server_options(*verb, *o);
  add_members(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  Option* devices_flag = verb->add_flag(
      "--devices", *of_devices,
      "Instead: which devices were suspected of corrupting data, by jobs, newest first. A device is "
      "known by its UUID or serial number where its loop reported it; `culprit clear HOST` forgets");
  verb->add_flag("--history", *of_history,
                 "Instead: what the controller remembers of hosts and devices: suspected, taken out and "
                 "returned, how often lately (\"third time in 7 days\"), those that are out first")
      ->excludes(devices_flag);
  verb->callback([o, of_devices, of_history, &run] {
    run = [o, of_devices, of_history] {
      return *of_devices ? devices(*o) : *of_history ? history(*o) : hosts(*o);
    };
  });
}

}  // namespace culprit::cli
