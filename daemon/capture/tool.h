// Runs a program that inspects a process (py-spy, eu-stack or gdb) with a time limit, and kills it with all
// its children. The program gets a fixed environment, none of our descriptors, and at most the rights of
// the inspected process, because a user controls its input. Blocking; one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::capture {

enum class Tool : uint8_t { kPySpy, kEuStack, kGdb };
std::string_view to_string(Tool tool);  // "py-spy", "eu-stack", "gdb"
std::optional<Tool> tool_of(std::string_view name);

// Finds the program in a fixed list of folders, or at an absolute path. Only root or our user may be able
// to change it.
Result<std::string> find_tool(const std::string& name_or_path);
// Its command line.
std::vector<std::string> arguments_of(Tool tool, const std::string& program, uint32_t pid);

// Whose rights the tool gets.
enum class ToolRights : uint8_t {
  kOwn,     // ours: the process is of our own user
  kUser,    // the process's user and group, without any capability
  kTracer,  // the same, with CAP_SYS_PTRACE
};
struct ToolRun {
  std::vector<std::string> arguments;
  ToolRights rights = ToolRights::kOwn;
  uint32_t uid = 0, gid = 0;
  TimeNs within_ns = 5 * kNsPerSecond;
  bool stops = true;  // the tool stops the process; it then runs at the job's priority, else at the lowest
  size_t output_most = 8 << 20;
  std::function<void(pid_t)> started = {};  // called with its process before it runs
};
// Returns the tool's standard output. An error says why there is none: "it took longer than 5 s". `clean`,
// if given: the tool exited by itself with success.
Result<std::string> run_tool(const ToolRun& run, bool* clean = nullptr);

// Reads a descriptor until its end, until `until` (monotonic), or beyond `most` bytes. Nothing: out of
// time.
std::optional<std::string> read_output(int output, size_t most, TimeNs until);

// Permanently drops a capability of the calling process, or all. False: the kernel refused.
bool give_up_capability(int capability);
bool give_up_capabilities();

// How a tool may inspect a process of this user. An error says why it may not.
struct TraceRules {
  uint32_t own_uid = 0;
  bool may_change_user = false;  // CAP_SETUID
  int yama = 0;                  // /proc/sys/kernel/yama/ptrace_scope; 0: none
  bool same_mounts = true;       // the process is in our mount namespace
};
Result<ToolRights> rights_for(Tool tool, uint32_t uid, const TraceRules& rules);
TraceRules trace_rules(uint32_t pid);

}  // namespace culprit::capture
