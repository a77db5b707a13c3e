#include "capture/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "capture/clock.h"
#include "capture/process.h"
#include "io/process_end.h"
#include "io/system_error.h"

namespace culprit::capture {
namespace {

constexpr const char* kFolders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
constexpr std::array<std::string_view, 3> kTools = {"py-spy", "eu-stack", "gdb"};
constexpr rlim_t kToolBytes = rlim_t{2} << 30;  // gdb with the symbols of a large program takes 1 GiB
// Time for a killed program to exit; one in an uninterruptible call does not.
constexpr TimeNs kEndWithin = kNsPerSecond;

// Whether only root or this user can change the file at this path.
bool is_trusted(std::string path) {
  const uid_t own = ::geteuid();
  for (bool first = true;; first = false) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0 || (found.st_uid != 0 && found.st_uid != own)) return false;
    const bool others = (found.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (others && (first || !(found.st_mode & S_ISVTX))) return false;
    if (path == "/") return true;
    path.resize(std::max<size_t>(1, path.rfind('/')));
  }
}

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  bool read() { return ::syscall(SYS_capget, &header, data) == 0; }
  bool write() { return ::syscall(SYS_capset, &header, data) == 0; }
};

bool is_permitted(int capability) {
  Capabilities now;
  return now.read() && (now.data[capability / 32].permitted & (1U << (capability % 32)));
}

bool keep_only(int capability) {
  Capabilities next;
  const uint32_t bit = 1U << (capability % 32);
  next.data[capability / 32] = {bit, bit, bit};
  return next.write() && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0;
}

bool become(const ToolRun& run) {
  if (run.rights == ToolRights::kOwn) return true;
  const bool traces = run.rights == ToolRights::kTracer;
  if (traces && ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return false;
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  const gid_t group = run.gid;
  if (::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 ||
      ::setresuid(run.uid, run.uid, run.uid) != 0)
    return false;
  if (traces) return keep_only(CAP_SYS_PTRACE);
  Capabilities none;
  return none.write();
}

// For cores and disks, behind the job.
void give_way() {
  constexpr int kNice = 10, kWho = 1, kIdle = 3 << 13;
  ::setpriority(PRIO_PROCESS, 0, kNice);
  ::syscall(SYS_ioprio_set, kWho, 0, kIdle);
}

[[noreturn]] void exec_tool(const ToolRun& run, int output) {
  ::setpgid(0, 0);
  if (!run.stops) give_way();
  // Gives the tool no descriptor of ours, and no terminal.
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0);
  const rlimit none{0, 0}, bytes{kToolBytes, kToolBytes};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_AS, &bytes);
  if (!become(run)) ::_exit(126);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir("/") != 0) ::_exit(126);
  std::vector<char*> arguments;
  for (const std::string& argument : run.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", home[] = "HOME=/nonexistent", locale[] = "LC_ALL=C";
  char* environment[] = {path, home, locale, nullptr};
  ::execve(arguments[0], arguments.data(), environment);
  ::_exit(127);
}

// The exit status; nothing: it does not end.
std::optional<int> reap(pid_t pid, TimeNs until) {
  int status = 0;
  if (!io::ends_within(pid, until - mono())) return std::nullopt;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string_view to_string(Tool tool) { return kTools[static_cast<size_t>(tool)]; }

std::optional<Tool> tool_of(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  for (size_t i = 0; i < kTools.size(); ++i)
    if (kTools[i] == file) return static_cast<Tool>(i);
  return std::nullopt;
}

Result<std::string> find_tool(const std::string& name_or_path) {
  std::vector<std::string> places;
  if (name_or_path.starts_with('/'))
    places.push_back(name_or_path);
  else
    for (const char* folder : kFolders) places.push_back(fmt::format("{}/{}", folder, name_or_path));
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) != 0) continue;
    char real[PATH_MAX];
    if (!::realpath(place.c_str(), real)) continue;
    if (!is_trusted(real)) return fail(ErrorCode::kDenied, place + ": users other than root may change it");
    return std::string(real);
  }
  return fail(ErrorCode::kNotFound, name_or_path + " is not installed");
}

std::vector<std::string> arguments_of(Tool tool, const std::string& program, uint32_t pid) {
  const std::string number = std::to_string(pid);
  switch (tool) {
    case Tool::kPySpy:
      return {program, "dump", "--json", "--nonblocking", "--pid", number};
    case Tool::kEuStack:
      return {program, "-m", "-n", "100", "-p", number};
    case Tool::kGdb:
      break;
  }
  // gdb must neither execute files from the process's folders or a home, nor download anything.
  return {program, "-batch",
          "-nx",   "-nh",
          "-iex",  "set auto-load off",
          "-iex",  "set debuginfod enabled off",
          "-iex",  "set confirm off",
          "-ex",   "thread apply all backtrace 100",
          "-p",    number};
}

std::optional<std::string> read_output(int output, size_t most, TimeNs until) {
  std::string out;
  std::array<char, 65536> buffer;
  for (;;) {
    const TimeNs left = until - mono();
    if (left <= 0) return std::nullopt;
    pollfd wait{output, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left / kNsPerMs) + 1) <= 0) continue;
    const ssize_t n = ::read(output, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer.data(), static_cast<size_t>(n));
    if (out.size() > most) return out;
  }
}

Result<std::string> run_tool(const ToolRun& run, bool* clean) {
  int pipe[2], go[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return io::system_failure("a pipe", errno);
  if (::pipe2(go, O_CLOEXEC) != 0) {
    ::close(pipe[0]);
    ::close(pipe[1]);
    return io::system_failure("a pipe", errno);
  }
  const TimeNs until = mono() + run.within_ns;
  const pid_t pid = ::fork();
  if (pid < 0) {
    for (const int fd : {pipe[0], pipe[1], go[0], go[1]}) ::close(fd);
    return io::system_failure("a process", errno);
  }
  if (pid == 0) {
    ::close(go[1]);
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) ::_exit(126);
    exec_tool(run, pipe[1]);
  }
  ::setpgid(pid, pid);
  if (run.started) run.started(pid);
  (void)!::write(go[1], "g", 1);
  ::close(go[0]);
  ::close(go[1]);
  ::close(pipe[1]);
  auto output = read_output(pipe[0], run.output_most, until);
  ::close(pipe[0]);
  // A program may run on after closing its output.
  const auto status = output ? reap(pid, until) : std::nullopt;
  ::kill(-pid, SIGKILL);
  if (!status && !reap(pid, mono() + kEndWithin))
    return fail(ErrorCode::kLimit, "it cannot be ended: it is in an uninterruptible call");
  if (clean) *clean = output && status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
  if (!output || !status)
    return fail(ErrorCode::kLimit, fmt::format("it took longer than {} s", run.within_ns / kNsPerSecond));
  if (output->size() > run.output_most) return fail(ErrorCode::kLimit, "it printed too much");
  if (output->empty()) {
    if (WIFSIGNALED(*status))
      return fail(ErrorCode::kIo, fmt::format("it died of signal {}", WTERMSIG(*status)));
    return fail(ErrorCode::kIo, fmt::format("it ended with {} and printed nothing", WEXITSTATUS(*status)));
  }
  return std::move(*output);
}

bool give_up_capability(int capability) {
  Capabilities next;
  if (!next.read()) return false;
  const uint32_t rest = ~(1U << (capability % 32));
  auto& of = next.data[capability / 32];
  of = {of.effective & rest, of.permitted & rest, of.inheritable & rest};
  return next.write();
}

bool give_up_capabilities() {
  Capabilities none;
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && none.write();
}

Result<ToolRights> rights_for(Tool tool, uint32_t uid, const TraceRules& rules) {
  if (uid == rules.own_uid && rules.same_mounts) return ToolRights::kOwn;
  const bool root = uid == 0;
  if (uid != rules.own_uid && !rules.may_change_user)
    return fail(ErrorCode::kDenied, "the process is of another user");
  if (!root && rules.yama == 0) return ToolRights::kUser;
  // gdb and eu-stack read files that the process's user wrote; an exploited bug in these tools must not
  // give a user rights.
  if (tool == Tool::kPySpy) return ToolRights::kTracer;
  return fail(ErrorCode::kDenied,
              root ? "it is not used on root's processes in other containers"
                   : fmt::format("it would need a capability (kernel.yama.ptrace_scope = {})", rules.yama));
}

TraceRules trace_rules(uint32_t pid) {
  TraceRules out;
  out.own_uid = ::geteuid();
  out.may_change_user = is_permitted(CAP_SETUID) && is_permitted(CAP_SETGID);
  out.yama = std::atoi(read_some("/proc/sys/kernel/yama/ptrace_scope", 16).c_str());
  struct stat own {
  }, other{};
  const std::string path = fmt::format("/proc/{}/ns/mnt", pid);
  out.same_mounts = ::stat("/proc/self/ns/mnt", &own) == 0 && ::stat(path.c_str(), &other) == 0 &&
                    own.st_ino == other.st_ino;
  return out;
}

}  // namespace culprit::capture
