// Parsers of procfs and sysfs: text in, numbers out. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace host {

// avg60 of a line of /proc/pressure/*: "some" or "full".
std::optional<double> pressure(const std::string& text, const char* line);
// A counter of /proc/vmstat or memory.events: "oom_kill 3".
std::optional<uint64_t> counter(const std::string& text, const char* name);

struct Mount {
  std::string folder, type;
  bool read_only = false;
};
// Mounts that can fill up or hang, of /proc/self/mountinfo; one per device.
std::vector<Mount> mounts(const std::string& mountinfo);

struct Rpc {
  uint64_t sends = 0, receives = 0, backlog = 0, timeouts = 0;
};
// NFS mounts of /proc/self/mountstats, by folder; several connections of one mount are added up.
std::map<std::string, Rpc> rpcs(const std::string& mountstats);

struct Task {
  std::string name;
  char state = '?';
  bool kernel = false;
  uint64_t start = 0;  // ticks since boot: tells it from another of the same pid
};
std::optional<Task> task(const std::string& stat);

}  // namespace host
