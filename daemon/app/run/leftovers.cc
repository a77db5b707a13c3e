#include "app/run/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "app/run/attempt_group.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "capture/proc_text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLeftoverLookEvery{10};
constexpr TimeNs kOrphanPatience = 2 * kNsPerSecond;
constexpr TimeNs kRemoveWithin = kNsPerSecond;
constexpr size_t kEnvironmentMost = 4 << 20;

std::atomic<pid_t> g_guardian = -1;   // a child that outlives the attempts
std::optional<AttemptGroup> g_group;  // of the run; written before its first process and after its last

std::string text_of(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string out;
  char part[65536];
  while (out.size() < most && (file.read(part, sizeof part) || file.gcount() > 0))
    out.append(part, static_cast<size_t>(file.gcount()));
  return out;
}

std::optional<capture::ProcStat> stat_of(pid_t pid) {
  return capture::parse_stat(text_of(fmt::format("/proc/{}/stat", pid), 4096));
}

std::string start_of(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat ? std::to_string(stat->start_ticks) : "";
}

void for_each_own_process(const std::function<void(pid_t)>& call) {
  std::error_code error;
  const uid_t own = ::geteuid();
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || rest != name.data() + name.size() || pid == ::getpid()) continue;
    struct stat info {};
    if (::stat(it->path().c_str(), &info) == 0 && info.st_uid == own) call(pid);
  }
}

// The value of the mark's variable in a process's initial environment.
std::string mark_of(pid_t pid) {
  const std::string wanted = std::string(kMarkVariable) + "=";
  const std::string text = text_of(fmt::format("/proc/{}/environ", pid), kEnvironmentMost);
  for (const std::string_view entry : split(text, '\0'))
    if (entry.starts_with(wanted)) return std::string(entry.substr(wanted.size()));
  return "";
}

// Two processes with one number are different ones in different namespaces.
std::string pid_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? std::to_string(info.st_ino) : "0";
}

bool owner_lives(std::string_view mark) {
  const std::vector<std::string_view> parts = split(mark, '-');
  pid_t pid = 0;
  if (parts.size() != 4 || parts[2] != pid_namespace()) return true;  // not ours to judge
  const auto [rest, bad] = std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), pid);
  if (bad != std::errc() || rest != parts[0].data() + parts[0].size() || pid <= 0) return true;
  return start_of(pid) == parts[1];
}

// Reaps zombies as the parent of the run's processes: no other process does once the run has ended, where
// process 1 does not.
void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// Waits until no marked process is left, or the time is over.
std::vector<MarkedProcess> wait_for(std::string_view mark, TimeNs within) {
  const TimeNs until = steady_now() + within;
  for (;;) {
    std::vector<MarkedProcess> left = marked_processes(mark);
    reap();  // after the look, which takes a process that just became a zombie for ended
    if (left.empty() || steady_now() >= until) return left;
    std::this_thread::sleep_for(kLeftoverLookEvery);
  }
}

// A group is busy until its killed processes are reaped.
void remove_group(const AttemptGroup& group) {
  const TimeNs until = steady_now() + kRemoveWithin;
  while (!group.remove() && steady_now() < until) std::this_thread::sleep_for(kLeftoverLookEvery);
}

}  // namespace

RunGroup::RunGroup(const std::string& mark) {
  if (!g_group) g_group = AttemptGroup::create(own_group(), mark);
  made_ = g_group.has_value();
}

RunGroup::~RunGroup() {
  if (!made_) return;
  remove_group(*g_group);
  g_group.reset();
}

void RunGroup::enter() const {
  if (made_) (void)g_group->enter();
}

std::string make_mark() {
  return fmt::format("{}-{}-{}-{:016x}", ::getpid(), start_of(::getpid()), pid_namespace(), random_number());
}

std::vector<MarkedProcess> marked_processes(std::string_view mark) {
  std::map<pid_t, capture::ProcStat> all;
  for_each_own_process([&](pid_t pid) {
    if (auto stat = stat_of(pid)) all.emplace(pid, std::move(*stat));
  });
  const auto descends = [&](pid_t pid) {
    // A process that ends meanwhile gives its children to this one, and breaks the chain until the next look.
    for (size_t steps = 0; steps < all.size(); ++steps) {
      if (pid == g_guardian) return false;
      const auto known = all.find(pid);
      if (known == all.end()) return false;
      pid = static_cast<pid_t>(known->second.parent);
      if (pid == ::getpid()) return true;
    }
    return false;
  };
  const std::set<pid_t> grouped = g_group ? g_group->processes() : std::set<pid_t>();
  for (const pid_t pid : grouped)  // also of another user, as after sudo
    if (auto stat = all.contains(pid) ? std::nullopt : stat_of(pid)) all.emplace(pid, std::move(*stat));
  std::vector<MarkedProcess> out;
  for (const auto& [pid, stat] : all) {
    if (stat.state == 'Z' || stat.state == 'X') continue;
    if (grouped.contains(pid) || descends(pid) || mark_of(pid) == mark)
      out.push_back({pid, stat.name, stat.state});
  }
  return out;
}

std::vector<MarkedProcess> end_marked(std::string_view mark, TimeNs patience, TimeNs kill_within,
                                      size_t& ended) {
  std::vector<MarkedProcess> left = marked_processes(mark);
  reap();
  ended = left.size();
  if (left.empty()) return left;
  for (const MarkedProcess& one : left) ::kill(one.pid, SIGTERM);
  left = wait_for(mark, patience);
  const TimeNs until = steady_now() + kill_within;
  // A process may start others while it is being ended: each check kills all that exist.
  while (!left.empty() && steady_now() < until) {
    if (g_group) (void)g_group->kill();
    for (const MarkedProcess& one : left) ::kill(one.pid, SIGKILL);
    left = wait_for(mark, 10 * kNsPerMs);
  }
  return left;
}

size_t end_orphans() {
  std::set<std::string> marks;
  for_each_own_process([&](pid_t pid) {
    if (std::string mark = mark_of(pid); !mark.empty() && !owner_lives(mark)) marks.insert(std::move(mark));
  });
  size_t all = 0;
  for (const std::string& mark : marks) {
    size_t ended = 0;
    (void)end_marked(mark, kOrphanPatience, kOrphanPatience, ended);
    all += ended;
  }
  const std::string own = own_group();
  for (const std::string& mark : AttemptGroup::marks_in(own)) {
    if (owner_lives(mark)) continue;
    const AttemptGroup left = AttemptGroup::left_by(own, mark);
    all += left.processes().size();
    (void)left.kill();
    remove_group(left);
  }
  return all;
}

size_t remove_shared_memory(TimeNs since) {
  constexpr std::string_view kMadeBy[] = {"nccl-", "torch_", "psm_", "sem.mp-", "sem.loky-", "loky-"};
  std::set<std::string> old;
  std::error_code error;
  for (fs::directory_iterator it("/dev/shm", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) != 0 || info.st_uid != ::geteuid() || !S_ISREG(info.st_mode))
      continue;
    const TimeNs changed = info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec;
    const auto made_by = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (changed >= since && std::ranges::any_of(kMadeBy, made_by)) old.insert(it->path().string());
  }
  if (old.empty()) return 0;
  for_each_own_process([&](pid_t pid) {
    const std::string maps = text_of(fmt::format("/proc/{}/maps", pid), 64 << 20);
    std::erase_if(old, [&](const std::string& path) { return maps.find(path) != maps.npos; });
    std::error_code none;
    for (fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), none), end; !none && it != end;
         it.increment(none)) {
      std::error_code unread;
      old.erase(fs::read_symlink(it->path(), unread).string());
    }
  });
  size_t removed = 0;
  for (const std::string& path : old) removed += ::unlink(path.c_str()) == 0;
  return removed;
}

Guardian::Guardian(std::string mark, TimeNs beat_within) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = ::fork();
  if (pid_ != 0) {
    g_guardian = pid_;
    ::close(ends[0]);
    pipe_ = ends[1];
    return;
  }
  ::setsid();  // a signal to the run's group does not end the guardian
  if (ends[0] != 3) ::dup3(ends[0], 3, O_CLOEXEC);
  ::close_range(4, UINT_MAX, 0);
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  const int beat_ms = beat_within == kNoTime ? -1 : static_cast<int>(beat_within / kNsPerMs);
  int wait_ms = -1;  // until the first beat
  pollfd in{3, POLLIN, 0};
  for (;;) {
    char byte = 0;
    const int ready = ::poll(&in, 1, wait_ms);
    const ssize_t n = ready > 0 ? ::read(3, &byte, 1) : -1;
    if (n > 0 && byte == 'q') _exit(0);
    if (n > 0) wait_ms = beat_ms;
    if (ready != 0 && n != 0) continue;
    size_t ended = 0;
    (void)end_marked(mark, 5 * kNsPerSecond, 10 * kNsPerSecond, ended);
    if (n == 0 && g_group) remove_group(*g_group);
    if (n == 0) _exit(0);
    wait_ms = -1;
  }
}

void Guardian::beat() const {
  if (pipe_ >= 0) (void)!::write(pipe_, "b", 1);
}

Guardian::~Guardian() {
  if (pipe_ >= 0) {
    (void)!::write(pipe_, "q", 1);
    ::close(pipe_);
  }
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

}  // namespace culprit::app
