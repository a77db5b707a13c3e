#include "app/daemon/watch/capture_findings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using Json = nlohmann::json;

constexpr double kCertain = 0.9;  // the kernel reports the state; that it is the cause is likely
constexpr double kLikely = 0.7;   // a local disk or a driver may recover

std::string text_of(const Json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_string() ? shorten(at->get<std::string>(), limits::kEvidenceText) : "";
}
bool is_set(const Json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_boolean() && at->get<bool>();
}

struct Words {
  const char *id, *title, *category, *component, *action, *remedy;
};
constexpr Words kStopped = {"process.stopped",
                            "A rank was stopped by a signal",
                            "platform",
                            "platform",
                            "restart",
                            "Find who sent SIGSTOP: a scheduler that suspends jobs, a terminal, an operator. "
                            "kill -CONT lets the rank go on."};
constexpr Words kFrozen = {
    "process.frozen", "The control group of a rank is frozen",
    "platform",       "platform",
    "restart",        "Thaw the group, or find which container runtime or scheduler froze it."};
constexpr Words kTraced = {"process.traced", "A debugger holds a rank", "user", "user_code",
                           "restart",        "Detach the debugger."};
constexpr Words kStorage = {
    "process.storage",
    "A rank waits for a file system that does not answer",
    "platform",
    "storage",
    "check",
    "Check the server of this mount and the network to it; the process ends only when "
    "the server answers or the mount is aborted."};
constexpr Words kBlocked = {"process.blocked",
                            "A rank is blocked in the kernel",
                            "unknown",
                            "host_kernel",
                            "check",
                            "See the kernel log of the host for a disk, a driver or a device that does not "
                            "answer."};
constexpr Words kExited = {
    "process.gone", "The process of a rank has ended",
    "unknown",      "unknown",
    "restart",      "See how the process ended: its log, the kernel log, its launcher."};

PluginFinding made(const Words& words, std::string text, double confidence) {
  PluginFinding out;
  out.id = words.id;
  out.title = words.title;
  out.category = words.category;
  out.component = words.component;
  out.action = words.action;
  out.remedy = words.remedy;
  out.text = std::move(text);
  out.confidence = confidence;
  out.symptom = "hang";
  out.severity = PluginSeverity::kError;
  return out;
}

// "process 12 (python3)".
std::string process_of(const Json& from) {
  const auto pid = from.find("pid");
  const std::string name = text_of(from, "name");
  return fmt::format("process {}{}", pid != from.end() && pid->is_number() ? pid->get<int64_t>() : 0,
                     name.empty() ? "" : fmt::format(" ({})", name));
}

PluginFinding waiting(const Json& line, const Json& waits) {
  const std::string file = text_of(waits, "file"), mount = text_of(waits, "mount"),
                    type = text_of(waits, "fs_type");
  const std::string wchan = text_of(waits, "wchan"), state = text_of(waits, "state");
  std::string text = fmt::format("{} is in state {}", process_of(line), state);
  if (!wchan.empty()) text += fmt::format(" in {}", wchan);
  if (!file.empty()) text += fmt::format(", waiting for {}", file);
  if (!mount.empty()) text += fmt::format(" on {} ({})", mount, type);
  return is_set(waits, "served") ? made(kStorage, std::move(text), kCertain)
                                 : made(kBlocked, std::move(text), kLikely);
}

std::optional<PluginFinding> finding_in(const Json& line) {
  const std::string state = text_of(line, "state");
  if (state == "gone") return made(kExited, fmt::format("{} is gone", process_of(line)), kLikely);
  if (state == "Z" || state == "X")
    return made(
        kExited,
        fmt::format("{} is a zombie: it ended, and its parent has not collected it", process_of(line)),
        kCertain);
  if (is_set(line, "frozen")) return made(kFrozen, fmt::format("{} is frozen", process_of(line)), kCertain);
  if (line.contains("tracer") && (state == "t" || state == "T"))
    return made(
        kTraced,
        fmt::format("{} is stopped by its tracer, process {}", process_of(line), line["tracer"].dump()),
        kCertain);
  if (state == "T")
    return made(kStopped, fmt::format("{} is in state T: stopped", process_of(line)), kCertain);
  if (const auto waits = line.find("waits"); waits != line.end() && waits->is_object())
    return waiting(line, *waits);
  return std::nullopt;
}

}  // namespace

std::optional<PluginFinding> finding_of_state(std::string_view text) {
  const Json line = parse_json(text);
  if (!line.is_object() || text_of(line, "kind") != "stack") return std::nullopt;
  auto out = finding_in(line);
  if (!out) return std::nullopt;
  out->plugin = kCapturePlugin;
  out->job = text_of(line, "job");
  out->host = text_of(line, "host");
  const auto rank = line.find("rank"), time = line.find("time_ns");
  if (rank != line.end() && rank->is_number_unsigned() && rank->get<uint64_t>() < UINT32_MAX)
    out->rank = rank->get<uint32_t>();
  if (time != line.end() && time->is_number_integer()) out->time_ns = time->get<int64_t>();
  return out;
}

}  // namespace culprit::app
