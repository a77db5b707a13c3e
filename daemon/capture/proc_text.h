// Parsers of /proc texts: what a process does and what it waits for. Pure functions, any thread. Users
// control parts of the texts (process names, paths, environments); no text fails an assertion.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::capture {

// Fields of /proc/PID/stat and /proc/PID/task/TID/stat.
struct ProcStat {
  std::string name;  // as the process calls itself, without controls
  char state = '?';  // R, S, D, T (stopped), t (traced), Z, X, I
  uint32_t parent = 0;
  uint64_t start_ticks = 0;  // ticks since boot; with the pid, identifies a process
};
// "20 (a) b) c) S 10 …": the name is in brackets and may contain any characters.
std::optional<ProcStat> parse_stat(std::string_view text);

// Of /proc/PID/status.
struct ProcStatus {
  uint32_t uid = 0, gid = 0;  // effective
  uint32_t tracer = 0;        // 0: none
  uint64_t caught = 0;        // bit n - 1: the process has a handler for signal n
  uint64_t pending = 0;       // bit n - 1: signal n is pending for the process, not for one thread
};
std::optional<ProcStatus> parse_status(std::string_view text);

// Of /proc/PID/task/TID/syscall.
struct ProcSyscall {
  bool running = false;
  int64_t number = -1;  // -1: in the kernel without a system call, as in a page fault
  std::array<uint64_t, 6> arguments{};
};
std::optional<ProcSyscall> parse_syscall(std::string_view text);

// How a system call names its file, on this machine's architecture.
enum class FileArgument : uint8_t { kNone, kDescriptor, kPath, kPathAt };
FileArgument file_argument(int64_t number);

// Parses "[<0>] folio_wait_bit_common+0x13d/0x350" lines: function names, innermost first.
std::vector<std::string> parse_kernel_stack(std::string_view text);

struct Mount {
  uint64_t id = 0;
  std::string point, type, source;
};
// Parses /proc/PID/mountinfo; at most `most` mounts.
std::vector<Mount> parse_mounts(std::string_view text, size_t most = 4096);
// The mount that contains an absolute path; null: none.
const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);
const Mount* mount_of(const std::vector<Mount>& mounts, uint64_t id);
// Of /proc/PID/fdinfo/N.
std::optional<uint64_t> parse_mount_id(std::string_view text);
// Whether a server outside the kernel serves this file system type: FUSE, NFS, Lustre and similar.
bool is_served(std::string_view fs_type);
// Whether the kernel function `wchan` waits for such a file server: "request_wait_answer",
// "nfs_wait_bit_killable".
bool waits_for_server(std::string_view wchan);

// What a launcher says in the environment.
struct RankEnvironment {
  std::optional<uint32_t> rank;
  size_t source = 0;          // index of the variable that gave the rank; a lower one is more specific
  bool elastic = false;       // of a worker of torchrun
  std::string recorder_pipe;  // TORCH_NCCL_DEBUG_INFO_PIPE_FILE; empty: not armed
};
RankEnvironment parse_environment(std::string_view text);
// Whether a process assigned the rank of its child, as a torchrun that is itself a Slurm task does. False
// for a rank whose child only inherited the rank, such as a data-loader worker.
bool gave_rank(const RankEnvironment& parent, const RankEnvironment& child);

// Parses /proc/PID/cgroup: the version 2 group, and the version 1 freezer group. Empty: none.
struct Cgroups {
  std::string unified, freezer;
};
Cgroups parse_cgroups(std::string_view text);

}  // namespace culprit::capture
