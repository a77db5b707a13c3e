#include "capture/announced.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <signal.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"
#include "capture/clock.h"
#include "io/system_error.h"

namespace culprit::capture {
namespace {

constexpr size_t kHeadBytes = 4096, kStackBytes = 1 << 20;
constexpr size_t kFilesSeen = 65'536;
constexpr TimeNs kLookEvery = 20 * kNsPerMs;
constexpr TimeNs kQuiet = 150 * kNsPerMs;  // the process writes a thread at a time

class Fd {
 public:
  explicit Fd(int number) : number_(number) {}
  ~Fd() {
    if (number_ >= 0) ::close(number_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// A regular file of this user; -1 else.
int open_own(uint32_t uid, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat found {};
  if (fd >= 0 && (::fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != uid)) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::string read_from(int fd, off_t at, size_t most) {
  std::string out(most, '\0');
  const ssize_t size = ::pread(fd, out.data(), out.size(), at);
  out.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return out;
}

// The pid in the innermost pid namespace of the process.
uint32_t inner_pid(uint32_t pid) {
  const std::string status = read_some(fmt::format("/proc/{}/status", pid));
  for (const std::string_view line : split(status, '\n')) {
    if (!line.starts_with("NSpid:")) continue;
    const std::string_view last = line.substr(line.rfind('\t') + 1);
    return static_cast<uint32_t>(std::strtoul(std::string(last).c_str(), nullptr, 10));
  }
  return pid;
}

// Pid of the process that holds the lock of the file; 0: no visible process.
uint32_t lock_holder(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK || lock.l_pid <= 0) return 0;
  return static_cast<uint32_t>(lock.l_pid);
}

}  // namespace

std::optional<StackFileHead> parse_stack_file_head(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded(line);
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return std::nullopt;
  std::string_view kind;
  uint64_t pid = 0, rank = 0;
  int64_t signal = 0;
  if (object.at_key("kind").get(kind) != simdjson::SUCCESS || kind != "stacks") return std::nullopt;
  if (object.at_key("pid").get(pid) != simdjson::SUCCESS || pid == 0 || pid > INT32_MAX) return std::nullopt;
  if (object.at_key("signal").get(signal) != simdjson::SUCCESS) return std::nullopt;
  StackFileHead out;
  out.pid = static_cast<uint32_t>(pid);
  out.signal = signal > 0 && signal <= 64 ? static_cast<int>(signal) : 0;
  if (object.at_key("rank").get(rank) == simdjson::SUCCESS && rank < UINT32_MAX)
    out.rank = static_cast<uint32_t>(rank);
  return out;
}

bool may_signal(const ProcStatus& status, int signal) {
  return signal > SIGRTMIN && signal <= SIGRTMAX && (status.caught & (uint64_t{1} << (signal - 1))) != 0;
}

std::optional<StackFile> find_stack_file(const std::string& rings, uint32_t pid, const ProcStatus& status) {
  DIR* dir = rings.empty() ? nullptr : ::opendir(rings.c_str());
  if (!dir) return std::nullopt;
  const std::string begin = std::to_string(inner_pid(pid)) + "-";
  std::optional<StackFile> found;
  size_t seen = 0;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (++seen > kFilesSeen) break;
    if (!name.starts_with(begin) || !name.ends_with(".stacks")) continue;
    StackFile file{rings + "/" + std::string(name), {}};
    const Fd fd(open_own(status.uid, file.path));
    if (fd.get() < 0) continue;
    // Processes in different pid namespaces may have the same pid; the lock identifies the owner of the
    // file.
    const uint32_t holder = lock_holder(fd.get());
    if (holder != 0 && holder != pid) continue;
    const std::string text = read_from(fd.get(), 0, kHeadBytes);
    const auto head = parse_stack_file_head(std::string_view(text).substr(0, text.find('\n')));
    // An unlocked file may belong to a process that has exited.
    if (!head || (found && holder == 0)) continue;
    file.head = *head;
    found = std::move(file);
  }
  ::closedir(dir);
  return found;
}

Result<std::string> ask_for_stacks(const StackFile& file, uint32_t pid, const ProcStat& stat,
                                   TimeNs within_ns) {
  const ProcessReader reader;
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto status = parse_status(read_some(fmt::format("/proc/{}/status", pid)));
  const auto now = reader.stat(pid);
  if (handle.get() < 0 || !status || !now || now->start_ticks != stat.start_ticks)
    return fail(ErrorCode::kNotFound, "the process has exited");
  if (!may_signal(*status, file.head.signal))
    return fail(ErrorCode::kDenied, fmt::format("it does not catch signal {}", file.head.signal));
  const Fd fd(open_own(status->uid, file.path));
  struct stat before {};
  if (fd.get() < 0 || ::fstat(fd.get(), &before) != 0) return io::system_failure(file.path, errno);
  // Signals by pidfd: the pid may belong to another process by now.
  if (::syscall(SYS_pidfd_send_signal, handle.get(), file.head.signal, nullptr, 0) != 0)
    return io::system_failure("the signal for its stacks", errno);
  const TimeNs until = mono() + within_ns;
  off_t size = before.st_size;
  TimeNs grew_ns = mono();
  for (;;) {
    pause_for(kLookEvery);
    struct stat after {};
    if (::fstat(fd.get(), &after) != 0 || after.st_size < before.st_size)
      return fail(ErrorCode::kIo, "its file was cut");
    if (after.st_size != size) size = after.st_size, grew_ns = mono();
    const bool whole = size > before.st_size && mono() - grew_ns >= kQuiet;
    if (!whole && mono() < until) continue;
    if (size == before.st_size) return fail(ErrorCode::kLimit, "it did not answer the signal for its stacks");
    return read_from(fd.get(), before.st_size, kStackBytes);
  }
}

Status ask_recorder(uint32_t pid, const ProcStatus& status, const RankEnvironment& environment) {
  if (environment.recorder_pipe.empty() || !environment.rank)
    return fail(ErrorCode::kNotFound, "no pipe of the Flight Recorder");
  const std::string path = fmt::format("{}{}.pipe", environment.recorder_pipe, *environment.rank);
  const Fd root(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
  if (root.get() < 0) return io::system_failure("the root folder of the process", errno);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd place(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how)));
  struct stat found {};
  if (place.get() < 0 || ::fstat(place.get(), &found) != 0) return io::system_failure(path, errno);
  if (!S_ISFIFO(found.st_mode)) return fail(ErrorCode::kInvalid, path + ": it is no pipe");
  if (found.st_uid != status.uid) return fail(ErrorCode::kDenied, path + ": it is of another user");
  // Without a reader this fails at once.
  const Fd pipe(
      ::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (pipe.get() < 0) return io::system_failure(path, errno);
  ::signal(SIGPIPE, SIG_IGN);
  if (::write(pipe.get(), "1", 1) != 1) return io::system_failure(path, errno);
  return {};
}

}  // namespace culprit::capture
