#include "app/run/end_log.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <ctime>
#include <fstream>
#include <string_view>

namespace culprit::app {
std::string run_time(TimeNs now) {
  const std::time_t seconds = now / kNsPerSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, now / kNsPerMs % 1000);
}

namespace {

// A count in a file of lines "name count".
std::optional<uint64_t> count_in(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  std::string name;
  for (uint64_t count = 0; file >> name >> count;)
    if (name == wanted) return count;
  return std::nullopt;
}

// Whether the kernel certainly killed no process for memory meanwhile: the host's count covers all groups.
bool killed_nothing(const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after) {
  return before && after && before->host && before->host == after->host;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

std::optional<MemoryKills> memory_kills() {
  MemoryKills out;
  out.host = count_in("/proc/vmstat", "oom_kill");
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (!line.starts_with("0::/")) continue;
    const std::string group = line.substr(3);
    if (const auto kills = count_in("/sys/fs/cgroup" + group + "/memory.events", "oom_kill"))
      out.group = group, out.kills = *kills;
  }
  return out.host || !out.group.empty() ? std::optional(out) : std::nullopt;
}

std::string end_lines(const CommandEnd& end, const std::string& program, TimeNs now,
                      const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after) {
  std::string out;
  if (before && after && before->group == after->group && after->kills > before->kills)
    out += fmt::format("{} culprit run: Task in {} killed as a result of limit of {} (oom_kill {} to {})\n",
                       run_time(now), after->group, after->group, before->kills, after->kills);
  const bool failed = end.status() != 0;
  if (failed && end.terminated != 0)
    out += fmt::format("{} culprit run: {} was asked to end: {} was sent to culprit run\n", run_time(now),
                       program, signal_name(end.terminated));
  const bool by_itself = !end.interrupted && end.terminated == 0;
  if (end.signal == 0 && failed && by_itself)
    out += fmt::format("{} culprit run: {} ended with exit code {}\n", run_time(now), program, end.code);
  if (end.signal != 0 && by_itself)
    out += fmt::format("{} culprit run: {} was killed by signal {} ({}){}\n", run_time(now), program,
                       end.signal, signal_name(end.signal),
                       end.signal == SIGKILL && killed_nothing(before, after)
                           ? ", and the kernel killed nothing for memory"
                           : "");
  return out;
}

}  // namespace culprit::app
