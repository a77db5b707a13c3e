// Parsers of texts of /proc: what a process does and what it waits for. Pure functions, any thread. The texts
// hold what users chose (names of processes, paths, environments); no text fails an assertion.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::capture {

// Of /proc/PID/stat and /proc/PID/task/TID/stat.
struct ProcStat {
  std::string name;  // as the process calls itself, without controls
  char state = '?';  // R, S, D, T (stopped), t (traced), Z, X, I
  uint32_t parent = 0;
  uint64_t start_ticks = 0;  // since boot; identifies a process together with its pid
};
// "20 (a) b) c) S 10 …": the name stands in brackets and may hold any characters.
std::optional<ProcStat> parse_stat(std::string_view text);

// Of /proc/PID/status.
struct ProcStatus {
  uint32_t uid = 0, gid = 0;  // effective
  uint32_t tracer = 0;        // 0: none
  uint64_t caught = 0;        // bit n - 1: the process has a handler for signal n
  uint64_t pending = 0;       // bit n - 1: signal n, sent to the process and not to a thread, waits
};
std::optional<ProcStatus> parse_status(std::string_view text);

// Of /proc/PID/task/TID/syscall.
struct ProcSyscall {
  bool running = false;
  int64_t number = -1;  // -1: in the kernel without a call, as for a page fault
  std::array<uint64_t, 6> arguments{};
};
std::optional<ProcSyscall> parse_syscall(std::string_view text);

// How a call names the file that it works on, for this machine's architecture.
enum class FileArgument : uint8_t { kNone, kDescriptor, kPath, kPathAt };
FileArgument file_argument(int64_t number);

// "[<0>] folio_wait_bit_common+0x13d/0x350": the functions, innermost first.
std::vector<std::string> parse_kernel_stack(std::string_view text);

struct Mount {
  uint64_t id = 0;
  std::string point, type, source;
};
// Of /proc/PID/mountinfo. At most `most` mounts.
std::vector<Mount> parse_mounts(std::string_view text, size_t most = 4096);
// The mount that holds an absolute path; null: none.
const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);
const Mount* mount_of(const std::vector<Mount>& mounts, uint64_t id);
// Of /proc/PID/fdinfo/N.
std::optional<uint64_t> parse_mount_id(std::string_view text);
// Whether a server outside of the kernel answers for files of this type: FUSE, NFS, Lustre and their like.
bool is_served(std::string_view fs_type);
// Whether the kernel waits there for such a server: "request_wait_answer", "nfs_wait_bit_killable".
bool waits_for_server(std::string_view wchan);

// What a launcher says in the environment.
struct RankEnvironment {
  std::optional<uint32_t> rank;
  size_t source = 0;          // which variable gave it; a lower one is more specific
  bool elastic = false;       // of a worker of torchrun
  std::string recorder_pipe;  // TORCH_NCCL_DEBUG_INFO_PIPE_FILE; empty: not armed
};
RankEnvironment parse_environment(std::string_view text);
// Whether a process gave the rank to its child, as torchrun does that is itself a task of Slurm. A rank that
// only passes its own on, to a data loader, did not.
bool gave_rank(const RankEnvironment& parent, const RankEnvironment& child);

// Of /proc/PID/cgroup: the group of version 2, and that of version 1's freezer. Empty: none.
struct Cgroups {
  std::string unified, freezer;
};
Cgroups parse_cgroups(std::string_view text);

}  // namespace culprit::capture
