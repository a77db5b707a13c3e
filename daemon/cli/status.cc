#include "cli/status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  culprit status --all
  culprit status --format json | jq .drops)";

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

// A healthy daemon may still report missing parts.
Ink ink_of_health(const Json& json, const std::string& health) {
  const auto healthy = json.find("healthy");
  const bool well = healthy != json.end() && healthy->is_boolean() && healthy->get<bool>();
  return health == "ok" ? Ink::kDim : well ? Ink::kCaution : Ink::kAlarm;
}

// Name, role and health of the daemon.
std::string headline(const Json& json, const Zone& zone, bool color) {
  const std::string health = text_field(json, "health");
  return fmt::format("culpritd {} on {}, {}, since {}: {}\n", text_field(json, "version"),
                     text_field(json, "host"), text_field(json, "role"), time_field(json, "started_ns", zone),
                     inked(health, ink_of_health(json, health), color));
}

// A member of an object; null if missing.
const Json& member(const Json& object, const char* name) {
  static const Json kNone;
  const auto at = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && at != object.end() ? *at : kNone;
}

uint64_t count(const Json& object, const char* name) {
  const Json& value = member(object, name);
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0)
             ? value.get<uint64_t>()
             : 0;
}

uint64_t sum(const Json& list, const char* name) {
  uint64_t out = 0;
  if (list.is_array())
    for (const Json& one : list) out += count(one, name);
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string jobs_line(const Json& json) {
  return fmt::format("{} running, {} read ({})", count(json, "jobs"), counted(count(json, "lines"), "line"),
                     format_bytes(count(json, "bytes")));
}

std::string reads_line(const Json& json) {
  const Json& logs = member(json, "logs");
  std::vector<std::string> out;
  if (logs.is_array() && !logs.empty())
    out.push_back(
        fmt::format("{} of {}", counted(sum(logs, "files"), "file"), counted(logs.size(), "log pattern")));
  if (member(json, "kernel") == Json(true)) out.emplace_back("the kernel's log");
  if (member(json, "journal") == Json(true)) out.emplace_back("the journal");
  if (count(json, "trace_clients")) out.push_back(counted(count(json, "trace_clients"), "trace client"));
  if (count(json, "rings")) out.push_back(counted(count(json, "rings"), "ring"));
  if (out.empty()) return "nothing of this host";
  const uint64_t left_out = sum(logs, "left_out");
  return joined(out) + fmt::format("; {} unread", format_bytes(count(json, "lag_bytes"))) +
         (left_out ? fmt::format("; {} beyond the limit {} not read", counted(left_out, "file"),
                                 left_out == 1 ? "is" : "are")
                   : "");
}

// Empty: the logs of pods are not followed.
std::string pods_line(const Json& json) {
  const Json& pods = member(json, "pods");
  if (!pods.is_object()) return "";
  const bool known = !member(pods, "trouble").is_string();
  std::string out = fmt::format("{} of {} followed, {} left out", counted(count(pods, "followed"), "pod"),
                                counted(count(pods, "jobs"), "job"), count(pods, "left_out"));
  if (const uint64_t waiting = count(pods, "waiting")) out += fmt::format(", {} waiting", waiting);
  return out + (known ? "; labels from the API server"
                      : "; jobs by the pods' names: " + text_field(pods, "trouble"));
}

// Target of an agent, or input of a collector. A daemon without its collector counts as healthy, but the
// reader must see that no data leaves the host.
std::pair<std::string, std::string> way(const Json& json, const Zone& zone, bool color) {
  const Json& forward = member(json, "forward");
  if (forward.is_object()) {
    const std::string sentence = text_field(forward, "sentence");
    const bool well = sentence == "connected" || sentence == "-";
    std::string out = well ? fmt::format("connected to {} since {}", text_field(forward, "to"),
                                         time_field(forward, "connected_since_ns", zone))
                           : inked(sentence, Ink::kAlarm, color);
    return {"forward", out + fmt::format("; {} wait", format_bytes(count(forward, "waiting_bytes")))};
  }
  const Json& collector = member(json, "collector");
  if (!collector.is_object()) return {"collector", "none: it judges this host alone"};
  return {"collector",
          fmt::format("{} connected to {}; archive {} of {}", counted(count(collector, "hosts"), "host"),
                      text_field(collector, "listen"), format_bytes(count(collector, "archive_bytes")),
                      format_bytes(count(collector, "archive_max_bytes")))};
}

std::string alerts_line(const Json& json) {
  const Json& alerts = member(json, "alerts");
  if (!alerts.is_object())
    return member(json, "forward").is_object() ? "sent by the collector" : "none are sent";
  const Json& receivers = member(alerts, "receivers");
  std::string out = fmt::format("{} firing, ", count(alerts, "firing"));
  if (!receivers.is_array() || receivers.empty()) return out + "no receiver, so none is sent";
  out += fmt::format("{}, {} sent, {} waiting", counted(receivers.size(), "receiver"), sum(receivers, "sent"),
                     count(alerts, "waiting"));
  const uint64_t held = count(alerts, "held_silent") + count(alerts, "held_by_storms");
  return held ? out + fmt::format(", {} held", held) : out;
}

std::string store_line(const Json& json) {
  const Json& spool = member(json, "spool");
  return fmt::format("{} of {}", format_bytes(count(spool, "bytes")),
                     format_bytes(count(spool, "max_bytes")));
}

std::string cost_line(const Json& json) {
  std::string out = fmt::format("{} of memory, {} of CPU time", format_bytes(count(json, "memory_bytes")),
                                format_duration(static_cast<TimeNs>(count(json, "cpu_ns"))));
  const Json& engines = member(json, "engines");
  if (!engines.is_object()) return out;
  return out + fmt::format("; engines {} of {}", format_bytes(count(engines, "memory_bytes")),
                           format_bytes(count(engines, "memory_max_bytes")));
}

// Losses and problems, each in a few words.
std::vector<std::string> troubles_of(const Json& json) {
  std::vector<std::string> out;
  const auto some = [&](uint64_t n, const char* noun, const char* what) {
    if (n) out.push_back(counted(n, noun) + what);
  };
  const Json& logs = member(json, "logs");
  some(sum(logs, "refused"), "file", " refused");
  some(sum(logs, "gaps"), "gap", " in logs");
  some(count(member(json, "spool"), "dropped_segments"), "segment", " of the spool dropped");
  some(count(member(json, "engines"), "jobs_without_engine"), "job", " without an engine");
  const auto say = [&](const Json& value) {
    if (value.is_string() && !value.get_ref<const std::string&>().empty()) out.push_back(shown(value));
  };
  const Json& frames = member(member(json, "forward"), "logs");
  if (frames.is_object())
    for (const auto& [name, log] : frames.items()) say(member(log, "trouble"));
  say(member(member(json, "collector"), "last_refusal"));
  if (const Json& again = member(member(json, "collector"), "reading_again"); again.is_object())
    out.push_back(
        fmt::format("jobs are answered from the ends of their logs: {} of {} of condensed logs are read",
                    format_bytes(count(again, "read")), format_bytes(count(again, "bytes"))));
  const Json& alerts = member(json, "alerts");
  if (const Json& list = member(alerts, "troubles"); list.is_array())
    for (const Json& one : list) say(one);
  const Json& controller = member(json, "controller");
  if (member(controller, "remedy").is_string()) say(member(controller, "trouble"));
  if (const Json& cluster = member(json, "cluster");
      !controller.is_object() && member(cluster, "trouble").is_string())
    out.push_back("the cluster's database does not answer: " + text_field(cluster, "trouble"));
  say(member(member(json, "copies"), "trouble"));
  return out;
}

// Empty: copies are off.
std::string copies_line(const Json& json) {
  const Json& copies = member(json, "copies");
  if (!copies.is_object()) return "";
  return fmt::format("{} made, {} pending; {} stored for other hosts, {}", count(copies, "copied"),
                     count(copies, "pending"), count(copies, "stored"),
                     format_bytes(count(copies, "stored_bytes")));
}

// Empty: the daemon has no controller.
std::string controller_line(const Json& json, const Zone& zone) {
  const Json& controller = member(json, "controller");
  if (!controller.is_object()) return "";
  if (member(controller, "trouble").is_string() && !member(controller, "remedy").is_string())
    return fmt::format("{}; another collector acts since {}: {}", text_field(controller, "mode"),
                       time_field(controller, "trouble_since_ns", zone), text_field(controller, "trouble"));
  if (member(controller, "trouble").is_string())
    return fmt::format("{}; does nothing since {}{}", text_field(controller, "mode"),
                       time_field(controller, "trouble_since_ns", zone),
                       fmt::format("; mend: {}", text_field(controller, "remedy")));
  return fmt::format(
      "{}; {}, {} open, {} out", text_field(controller, "mode"), counted(count(controller, "jobs"), "job"),
      counted(count(controller, "questions"), "question"), counted(count(controller, "isolated"), "host"));
}

// Empty: no other collector shares the jobs.
std::string cluster_line(const Json& json, const Zone& zone) {
  const Json& cluster = member(json, "cluster");
  if (!cluster.is_object()) return "";
  const Json& parts = member(cluster, "parts");
  const uint64_t free = count(cluster, "without_owner");
  std::string out =
      fmt::format("member {}; owns {} of {}", text_field(cluster, "member"), count(cluster, "owned"),
                  counted(parts.is_array() ? parts.size() : 0, "partition"));
  if (free > 0) out += fmt::format(", {} without an owner", free);
  if (member(cluster, "trouble").is_string())
    out += fmt::format("; the database does not answer since {}: {}",
                       time_field(cluster, "trouble_since_ns", zone), text_field(cluster, "trouble"));
  const Json& reports = member(cluster, "reports");
  if (const uint64_t waiting = reports.is_object() ? count(reports, "unpublished") : 0; waiting > 0)
    out += fmt::format("; {} unpublished since {}", counted(waiting, "report"),
                       time_field(reports, "unpublished_since_ns", zone));
  if (reports.is_object() && member(reports, "trouble").is_string() &&
      !member(cluster, "trouble").is_string())
    out += "; reports are not shared: " + text_field(reports, "trouble");
  return out;
}

int status(RemoteOptions& o, bool all) {
  return print_answer(o, "/v1/status", [&](const Json& json) {
    return all ? status_fields(json, o.zone, wants_color()) : status_text(json, o.zone, wants_color());
  });
}

}  // namespace

std::string status_text(const Json& status, const Zone& zone, bool color) {
  const std::vector<std::string> troubles = troubles_of(status);
  const auto [way_name, way_text] = way(status, zone, color);
  std::string out = headline(status, zone, color);
  const auto line = [&](const std::string& name, const std::string& text) {
    out += inked(padded(name, 11), Ink::kDim, color) + text + "\n";
  };
  line("jobs", jobs_line(status));
  line("reads", reads_line(status));
  if (const std::string text = pods_line(status); !text.empty()) line("pods", text);
  line(way_name, way_text);
  line("alerts", alerts_line(status));
  if (const std::string text = controller_line(status, zone); !text.empty()) line("controller", text);
  if (const std::string text = cluster_line(status, zone); !text.empty()) line("cluster", text);
  if (const std::string text = copies_line(status); !text.empty()) line("copies", text);
  line("spool", store_line(status));
  line("itself", cost_line(status));
  line("trouble", troubles.empty() ? "none" : inked(joined(troubles), Ink::kCaution, color));
  return out;
}

std::string status_fields(const Json& status, const Zone& zone, bool color) {
  std::vector<std::vector<std::string>> rows{{"WHAT", "VALUE"}};
  Json rest = status;
  for (const char* reported : {"version", "host", "role", "started_ns", "health", "healthy"})
    rest.erase(reported);
  if (rest.contains("cluster") && rest["cluster"].is_object())
    rest["cluster"].erase("parts");  // culprit cluster status --all has them
  flatten(rest, "", rows, zone);
  return headline(status, zone, color) + "\n" + table(rows, color);
}

void add_status(Command& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  auto all = std::make_shared<bool>(false);
  Command* verb = app.add_subcommand("status", "How the daemon of this host is doing, in a line per part");
  verb->footer(kStatusExamples);
  add_server_options(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->add_flag("--all", *all, "Each field by its name");
  verb->callback([o, all, &run] { run = [o, all] { return status(*o, *all); }; });
}

}  // namespace culprit::cli
