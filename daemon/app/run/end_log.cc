#include "app/run/end_log.h"

#include <fmt/format.h>
#include <string.h>

#include <ctime>
#include <fstream>

namespace culprit::app {
namespace {

std::string utc(TimeNs now) {
  const std::time_t seconds = now / kNsPerSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, now / kNsPerMs % 1000);
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

std::optional<MemoryKills> memory_kills() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    if (!line.starts_with("0::/")) continue;
    MemoryKills out{line.substr(3), 0};
    std::ifstream events("/sys/fs/cgroup" + out.group + "/memory.events");
    std::string name;
    for (uint64_t count = 0; events >> name >> count;)
      if (name == "oom_kill") return out.kills = count, out;
  }
  return std::nullopt;
}

std::string end_lines(const CommandEnd& end, const std::string& program, TimeNs now,
                      const std::optional<MemoryKills>& before, const std::optional<MemoryKills>& after) {
  std::string out;
  if (before && after && before->group == after->group && after->kills > before->kills)
    out += fmt::format("{} culprit run: Task in {} killed as a result of limit of {} (oom_kill {} to {})\n",
                       utc(now), after->group, after->group, before->kills, after->kills);
  if (end.signal != 0 && !end.interrupted && !end.terminated)
    out += fmt::format("{} culprit run: {} was killed by signal {} ({})\n", utc(now), program, end.signal,
                       signal_name(end.signal));
  return out;
}

}  // namespace culprit::app
