#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kHostsExamples = R"(
Examples:
  culprit hosts
  culprit hosts --devices             # which devices were suspected of corrupting data, and in which jobs
  culprit hosts --format json | jq '.items[] | select(.state != "healthy")')";

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

// The verdict against the host ("0.82: GPU has fallen off the bus (job llama)"), then why the host is
// disconnected or unhealthy.
std::string reason(const Json& host) {
  const auto reported = [&](const char* name) {
    const auto at = host.find(name);
    return at != host.end() && at->is_string() ? text_field(host, name) : std::string();
  };
  std::string out;
  if (const std::string verdict = reported("reason"); !verdict.empty()) {
    const auto score = host.find("score");
    if (score != host.end() && score->is_number()) out = fmt::format("{:.2f}: ", score->get<double>());
    out += fmt::format("{} (job {})", verdict, reported("job"));
  }
  const std::string trouble = reported("trouble");
  const std::string away = trouble.empty() ? reported("left") : trouble;
  if (!away.empty()) out += (out.empty() ? "" : "; ") + away;
  return out.empty() ? "-" : out;
}

// A small clock offset is hidden: the delay of the hello causes as much.
std::string clock(const Json& host) {
  const auto ahead = host.find("clock_ahead_ns");
  if (ahead == host.end() || !ahead->is_number_integer()) return "-";
  const TimeNs ns = ahead->get<TimeNs>();
  if (std::abs(ns) < 500 * kNsPerMs) return "ok";
  return fmt::format("{} {}", format_duration(std::abs(ns)), ns > 0 ? "ahead" : "behind");
}

// Lists earlier faults of devices, for the decision to use a device again.
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

int hosts(RemoteOptions& o) {
  return print_answer(o, "/v1/hosts", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{
        {"HOST", "STATE", "SUSPECTED", "LAST SEEN", "LAG", "DROPPED", "CLOCK", "VERSION", "WHY"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& host : *items)
        if (host.is_object())
          rows.push_back({text_field(host, "host"), text_field(host, "state"), text_field(host, "suspected"),
                          time_field(host, "last_ns", o.zone), lag(host), drops(host), clock(host),
                          text_field(host, "version"), reason(host)});
    return rows.size() > 1 ? table(rows, wants_color()) : std::string("no host was seen yet\n");
  });
}

}  // namespace

void add_hosts(Command& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  auto of_devices = std::make_shared<bool>(false);
  Command* verb = app.add_subcommand(
      "hosts", "Hosts that the daemon knows: seen, late, suspected; the silent ones first");
  verb->footer(kHostsExamples);
  add_server_options(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->add_flag(
      "--devices", *of_devices,
      "Instead: which devices were suspected of corrupting data, by jobs, newest first. A device is "
      "known by its UUID or serial number where its loop reported it; `culprit clear HOST` forgets");
  verb->callback(
      [o, of_devices, &run] { run = [o, of_devices] { return *of_devices ? devices(*o) : hosts(*o); }; });
}

}  // namespace culprit::cli
