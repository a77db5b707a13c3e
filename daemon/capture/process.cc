#include "capture/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include "base/text.h"

namespace culprit::capture {
namespace {

// Limit of threads per process; NCCL, CUDA and OpenMP create some hundreds on a large host.
constexpr size_t kThreadsSeen = 512;
// Limit of children: data-loader workers and their descendants.
constexpr size_t kChildren = 128;
constexpr size_t kChildrenAsked = 16;  // for their environment, the nearest first
constexpr size_t kMountBytes = 4 << 20;
constexpr size_t kEnvironmentBytes = 1 << 20;
constexpr size_t kPathBytes = 1024;

std::string plain(std::string_view text) {
  std::string out = to_utf8(text.substr(0, kPathBytes));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return out;
}

std::optional<uint32_t> pid_of(std::string_view name) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
  if (name.empty() || error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return n;
}

std::vector<uint32_t> numbers_in(const std::string& folder, size_t most, uint64_t& more) {
  std::vector<uint32_t> out;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const auto n = pid_of(entry->d_name);
    if (!n) continue;
    if (out.size() < most)
      out.push_back(*n);
    else
      ++more;
  }
  ::closedir(dir);
  std::sort(out.begin(), out.end());
  return out;
}

std::string link_of(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : std::string();
}

// Reads a text from the process's memory. The text is an argument of a system call in which the process is
// blocked.
std::string text_at(uint32_t pid, uint64_t address) {
  std::array<char, kPathBytes> buffer;
  // Pages end where nothing may be read any more.
  constexpr uint64_t kPage = 4096;
  const size_t first = std::min<uint64_t>(buffer.size(), kPage - address % kPage);
  iovec local{buffer.data(), buffer.size()};
  iovec remote[2] = {{reinterpret_cast<void*>(address), first},  // NOLINT: an address of another process
                     {reinterpret_cast<void*>(address + first), buffer.size() - first}};
  const ssize_t size = ::process_vm_readv(static_cast<pid_t>(pid), &local, 1, remote, 2, 0);
  if (size <= 0) return {};
  const std::string_view text(buffer.data(), static_cast<size_t>(size));
  return std::string(text.substr(0, text.find('\0')));
}

uint64_t switches_of(std::string_view status) {
  uint64_t sum = 0;
  for (const std::string_view line : split(status, '\n')) {
    const size_t at = line.find("ctxt_switches:");
    if (at == line.npos) continue;
    const std::string_view digits = trim(line.substr(at + 14));
    uint64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    sum += n;
  }
  return sum;
}

}  // namespace

std::string read_some(const std::string& path, size_t most) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return out;
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (out.size() < most && (n = ::read(fd, buffer.data(), buffer.size())) > 0)
    out.append(buffer.data(), std::min(static_cast<size_t>(n), most - out.size()));
  ::close(fd);
  return out;
}

bool is_wrapper(std::string_view name) {
  constexpr std::string_view kNames[] = {"sh",   "bash",      "dash", "zsh",  "ksh",     "env",    "timeout",
                                         "tini", "dumb-init", "srun", "sudo", "numactl", "culprit"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool ThreadView::blocked() const { return state == 'D' || waits_for_server(wchan); }

bool ProcessLook::has_state(char state) const {
  return std::any_of(threads.begin(), threads.end(), [&](const ThreadView& thread) {
    return thread.state == state && (threads.empty() || thread.pid == threads.front().pid);
  });
}

bool ProcessLook::any_blocked() const {
  return std::any_of(threads.begin(), threads.end(),
                     [](const ThreadView& thread) { return thread.blocked(); });
}

const ThreadView* ProcessLook::stuck() const {
  const ThreadView* best = nullptr;
  for (const ThreadView& thread : threads)
    if (thread.stuck && (!best || (thread.file && !best->file))) best = &thread;
  return best;
}

std::optional<ProcStat> ProcessReader::stat(uint32_t pid) const {
  return parse_stat(read_some(folder(pid) + "/stat"));
}

std::optional<ProcessLook> ProcessReader::look(uint32_t pid) const {
  ProcessLook out;
  const auto stat = this->stat(pid);
  if (!stat) return std::nullopt;
  out.stat = *stat;
  if (const auto status = parse_status(read_some(folder(pid) + "/status"))) out.status = *status;
  if (out.stat.state == 'Z' || out.stat.state == 'X') return out;
  out.frozen = is_frozen(pid);
  add_threads(pid, out);
  // Children of all generations, nearest first.
  std::vector<uint32_t> generation = {pid};
  std::vector<uint32_t> children;
  while (!generation.empty() && children.size() < kChildren) {
    std::vector<uint32_t> next;
    for (const uint32_t parent : generation) {
      uint64_t more = 0;
      for (const uint32_t tid : numbers_in(folder(parent) + "/task", kThreadsSeen, more)) {
        const std::string list = read_some(folder(parent) + "/task/" + std::to_string(tid) + "/children");
        for (const std::string_view word : split(list, ' '))
          if (const auto child = pid_of(trim(word)); child && children.size() < kChildren) {
            children.push_back(*child);
            next.push_back(*child);
            add_threads(*child, out);
          }
      }
    }
    generation = std::move(next);
  }
  out.children = children.size();
  out.environment = environment(pid);
  // Skips torchrun's workers and processes without a rank: they start no ranks.
  const RankEnvironment& own = out.environment;
  if (own.rank && !own.elastic)
    for (size_t i = 0; i < std::min(children.size(), kChildrenAsked) && !out.is_launcher; ++i)
      out.is_launcher = gave_rank(own, environment(children[i]));
  return out;
}

RankEnvironment ProcessReader::environment(uint32_t pid) const {
  return parse_environment(read_some(folder(pid) + "/environ", kEnvironmentBytes));
}

void ProcessReader::add_threads(uint32_t pid, ProcessLook& out) const {
  uint64_t more = 0;
  std::vector<uint32_t> tids = numbers_in(folder(pid) + "/task", kThreadsSeen, more);
  // The main thread's tid equals the pid.
  std::stable_partition(tids.begin(), tids.end(), [pid](uint32_t tid) { return tid == pid; });
  for (const uint32_t tid : tids) {
    if (out.threads.size() >= kThreadsSeen) {
      ++more;
      continue;
    }
    if (auto view = thread(pid, tid)) out.threads.push_back(std::move(*view));
  }
  out.more_threads += more;
}

std::optional<ThreadView> ProcessReader::thread(uint32_t pid, uint32_t tid) const {
  const std::string at = folder(pid) + "/task/" + std::to_string(tid);
  const auto stat = parse_stat(read_some(at + "/stat"));
  if (!stat) return std::nullopt;
  ThreadView out;
  out.pid = pid;
  out.tid = tid;
  out.name = stat->name;
  out.state = stat->state;
  const std::string wchan = read_some(at + "/wchan", 256);
  if (wchan != "0") out.wchan = plain(trim(wchan));
  out.call = parse_syscall(read_some(at + "/syscall", 512));
  if (!out.blocked()) return out;
  out.switches = switches_of(read_some(at + "/status"));
  out.kernel = parse_kernel_stack(read_some(at + "/stack"));
  if (out.call) out.file = file_of(pid, *out.call);
  return out;
}

std::optional<WaitingFile> ProcessReader::file_of(uint32_t pid, const ProcSyscall& call) const {
  const FileArgument how = file_argument(call.number);
  if (how == FileArgument::kNone) return std::nullopt;
  const std::vector<Mount> mounts = parse_mounts(read_some(folder(pid) + "/mountinfo", kMountBytes));
  WaitingFile out;
  const Mount* mount = nullptr;
  if (how == FileArgument::kDescriptor) {
    const std::string fd = std::to_string(static_cast<uint32_t>(call.arguments[0]));
    // The kernel supplies the text of the link without a request to the file system.
    out.path = plain(link_of(folder(pid) + "/fd/" + fd));
    const auto id = parse_mount_id(read_some(folder(pid) + "/fdinfo/" + fd));
    if (id) mount = mount_of(mounts, *id);
  } else {
    const bool at = how == FileArgument::kPathAt;
    std::string path = text_at(pid, call.arguments[at ? 1 : 0]);
    if (path.empty()) return std::nullopt;
    if (path[0] != '/') {
      const auto fd = static_cast<int32_t>(call.arguments[0]);
      const std::string base = at && fd != AT_FDCWD ? "/fd/" + std::to_string(fd) : "/cwd";
      path = link_of(folder(pid) + base) + "/" + path;
    }
    out.path = plain(path);
    mount = mount_of(mounts, path);
  }
  if (mount) {
    out.mount = plain(mount->point);
    out.fs_type = plain(mount->type);
    out.served = is_served(mount->type);
  }
  return out.path.empty() ? std::nullopt : std::optional(std::move(out));
}

bool ProcessReader::is_frozen(uint32_t pid) const {
  const Cgroups groups = parse_cgroups(read_some(folder(pid) + "/cgroup"));
  const auto says = [](const std::string& text, std::string_view word) {
    return text.find(word) != text.npos;
  };
  if (!groups.unified.empty()) {
    for (const char* hierarchy : {"", "/unified"})
      if (says(read_some(groups_ + hierarchy + groups.unified + "/cgroup.events"), "frozen 1")) return true;
  }
  return !groups.freezer.empty() &&
         says(read_some(groups_ + "/freezer" + groups.freezer + "/freezer.state"), "FROZEN");
}

void ProcessReader::mark_stuck(const ProcessLook& before, ProcessLook& now) {
  for (ThreadView& thread : now.threads)
    thread.stuck = thread.blocked() &&
                   std::any_of(before.threads.begin(), before.threads.end(), [&](const ThreadView& old) {
                     return old.tid == thread.tid && old.blocked() && old.switches == thread.switches;
                   });
}

}  // namespace culprit::capture
