#include "app/jobs/process_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kFileMost = 256 << 10;  // per file of /proc; environments may be long
constexpr int kParents = 16;             // launchers are within a few generations
constexpr size_t kWritersMost = 65'536;  // files open for writing: many times the number that a host's jobs
                                         // have
// Precision of the comparison of file times and process times: ticks of 10 ms, and the kernel's coarse time.
constexpr TimeNs kTicksApart = 2 * kNsPerSecond;

// Reads a file of /proc up to the limit. `denied`: it exists but is not readable.
std::string read_some(const std::string& path, bool* denied = nullptr) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) {
    if (denied) *denied = errno == EACCES || errno == EPERM;
    return out;
  }
  std::array<char, 4096> buffer;
  ssize_t n = 0;
  while (out.size() < kFileMost && (n = ::read(fd, buffer.data(), buffer.size())) > 0)
    out.append(buffer.data(), static_cast<size_t>(n));
  if (denied) *denied = n < 0 && (errno == EACCES || errno == EPERM);
  ::close(fd);
  return out;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// Remaining entries and time of a scan.
class Budget {
 public:
  explicit Budget(const ProcessLook& look)
      : look_(look), end_ns_(look.timer ? look.timer() + look.most_ns : 0) {}
  bool spend() {
    if (spent_) return false;
    spent_ = ++entries_ > limits::kProcEntries || (look_.timer && look_.timer() > end_ns_);
    return !spent_;
  }
  bool spent() const { return spent_; }

 private:
  const ProcessLook& look_;
  TimeNs end_ns_;
  size_t entries_ = 0;
  bool spent_ = false;
};

// Numeric names in a folder: processes or descriptors. False if the folder is not readable.
bool numbers_in(const std::string& folder, Budget& budget, std::vector<uint32_t>& out) {
  out.clear();
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return errno != EACCES && errno != EPERM;
  while (const dirent* entry = ::readdir(dir)) {
    if (!budget.spend()) break;
    if (const auto n = number<uint32_t>(entry->d_name)) out.push_back(*n);
  }
  ::closedir(dir);
  return true;
}

// Whether a text is a valid job name. Job names are used in file names, events and pages.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c == '[' || c == ']' || c == '+';
  });
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<std::string> job_of_environment(std::string_view environment) {
  for (const std::string_view entry : split(environment, '\0')) {
    constexpr std::string_view kSlurm = "SLURM_JOB_ID=";
    if (entry.starts_with(kSlurm) && is_name(entry.substr(kSlurm.size())))
      return std::string(entry.substr(kSlurm.size()));
  }
  return std::nullopt;
}

// "kubepods-burstable-pod1234_56.slice" and "pod1234-56" are pod 1234-56.
std::optional<std::string> pod_of(std::string_view part) {
  if (part.ends_with(".slice")) part.remove_suffix(6);
  const size_t at = part.rfind("pod");
  if (at == std::string_view::npos || (at > 0 && part[at - 1] != '-')) return std::nullopt;
  std::string uid(part.substr(at + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  // Form of Kubernetes: 36 characters with four hyphens; static pods have 32 digits.
  const bool hex = std::all_of(uid.begin(), uid.end(), [](char c) { return c == '-' || is_hex({&c, 1}); });
  return hex && uid.size() >= 32 && uid.size() <= 36 ? std::optional("pod-" + uid) : std::nullopt;
}

// "docker-<64 digits>.scope", "libpod-…", and Docker's own layout "docker/<64 digits>".
std::optional<std::string> container_of(std::string_view above, std::string_view part) {
  if (part.ends_with(".scope")) part.remove_suffix(6);
  std::string_view kind = above == "docker" || above == "libpod" ? above : std::string_view();
  for (const std::string_view known : {"docker", "libpod"})
    if (part.size() > known.size() && part.starts_with(known) && part[known.size()] == '-')
      kind = known, part.remove_prefix(known.size() + 1);
  constexpr size_t kId = 64, kShort = 12;  // as in `docker ps`
  if (kind.empty() || part.size() != kId || !is_hex(part)) return std::nullopt;
  return std::string(kind) + "-" + std::string(part.substr(0, kShort));
}

// Job of a process by its control group. `certain`: a job manager created the group for one job. Otherwise
// the group is a container or a unit of one run; other facts (Slurm in a container) may override it.
// `delegated`: below a user's own manager (user@1000.service), where that user creates groups with any name.
struct GroupJob {
  std::string job;
  bool certain = false, delegated = false;
};

// From lines such as "0::/system.slice/slurmstepd.scope/job_123/step_0/user".
std::optional<GroupJob> job_of_cgroup(std::string_view text) {
  std::optional<GroupJob> out;
  for (std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    const size_t second = colon == line.npos ? colon : line.find(':', colon + 1);
    if (second == line.npos) continue;
    const auto parts = split(line.substr(second + 1), '/');
    bool slurm = false, pods = false, delegated = false;
    std::string_view above;
    for (const std::string_view part : parts) {
      delegated = delegated || part.starts_with("user@");
      slurm = !delegated && (slurm || part.starts_with("slurm"));
      pods = !delegated && (pods || part.starts_with("kubepods"));
      if (slurm && part.starts_with("job_") && number<uint32_t>(part.substr(4)))
        return GroupJob{std::string(part.substr(4)), true};
      if (pods)
        if (auto pod = pod_of(part)) return GroupJob{std::move(*pod), true};
      if (!out)
        if (auto container = container_of(above, part))
          out = GroupJob{std::move(*container), false, delegated};
      above = part;
    }
    // systemd-run: a unit created for one run.
    const bool attempts = parts.size() > 1 && parts.back().starts_with("culprit-");  // of `culprit run`
    const std::string_view last = attempts        ? parts[parts.size() - 2]
                                  : parts.empty() ? std::string_view()
                                                  : parts.back();
    const bool unit = last.ends_with(".service") || last.ends_with(".scope");
    if (!out && last.starts_with("run-") && unit && is_name(last))
      out = GroupJob{std::string(last.substr(0, last.rfind('.'))), false, delegated};
  }
  return out;
}

// The job claimed by a process's own files; the caller considers the ancestors.
struct ProcessClaim {
  std::optional<std::string> certain;  // from a job manager's group, or from the environment
  std::optional<std::string> group;    // from a container or a unit
  bool barred = false, by_environment = false;
  bool by_user = false;  // the group is below the user's own manager
};

ProcessClaim reported_by(const std::string& folder) {
  ProcessClaim out;
  auto group = job_of_cgroup(read_some(folder + "/cgroup"));
  if (group && group->certain) {
    out.certain = std::move(group->job);
    return out;
  }
  out.by_user = group && group->delegated;
  if (group) out.group = std::move(group->job);
  out.certain = job_of_environment(read_some(folder + "/environ", &out.barred));
  out.by_environment = out.certain.has_value();
  return out;
}

struct Stat {
  uint32_t parent = 0;
  uint64_t start_ticks = 0;
  bool zombie = false;
};

// Example: "20 (a) b) c) S 10 ...". The second field is a name in brackets and may contain any character.
std::optional<Stat> stat_of(const std::string& folder) {
  const std::string text = read_some(folder + "/stat");
  const size_t close = text.rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split(trim(std::string_view(text).substr(close + 1)), ' ');
  Stat out;
  out.zombie = !fields.empty() && (fields[0] == "Z" || fields[0] == "X");
  if (fields.size() > 1) out.parent = number<uint32_t>(fields[1]).value_or(0);
  if (fields.size() > 19) out.start_ticks = number<uint64_t>(fields[19]).value_or(0);
  return out;
}

// Whether the descriptor was opened for writing: "flags:\t0100001", octal, its lowest two bits.
bool is_for_writing(const std::string& fdinfo) {
  const size_t at = fdinfo.find("flags:");
  if (at == std::string::npos) return true;  // unknown: assume so
  const std::string_view line = std::string_view(fdinfo).substr(at + 6);
  const std::string_view digits = trim(line.substr(0, line.find('\n')));
  return !digits.empty() && (digits.back() - '0') % 4 != 0;
}

void look_at_files(const std::string& folder, uint32_t pid, Budget& budget, ProcessView& out) {
  std::vector<uint32_t> descriptors;
  if (!numbers_in(folder + "/fd", budget, descriptors)) {
    out.processes[pid].barred = true;
    return;
  }
  for (const uint32_t fd : descriptors) {
    struct stat link;
    struct statx found {};
    const std::string name = std::to_string(fd);
    const std::string path = folder + "/fd/" + name;
    // The link's own mode shows how the file was opened; a stat of the target costs more.
    if (::lstat(path.c_str(), &link) != 0 || !(link.st_mode & S_IWUSR)) continue;
    // Avoids requests to a file server: a dead server would block the scan.
    constexpr int kFlags = AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    if (::statx(AT_FDCWD, path.c_str(), kFlags, STATX_TYPE | STATX_INO, &found) != 0) continue;
    if (!S_ISREG(found.stx_mode)) continue;
    if (out.writers.size() >= kWritersMost) return;
    if (is_for_writing(read_some(folder + "/fdinfo/" + name)))
      out.writers.emplace(std::pair(makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino), pid);
  }
}

// From "btime 1763700000" in /proc/stat.
TimeNs boot_time(const std::string& proc) {
  const std::string text = read_some(proc + "/stat");
  const size_t at = text.find("btime ");
  if (at == std::string::npos) return kNoTime;
  const std::string_view rest = std::string_view(text).substr(at + 6);
  const auto seconds = number<int64_t>(rest.substr(0, rest.find('\n')));
  return seconds ? *seconds * kNsPerSecond : kNoTime;
}

// Whether a job's name occurs as a word: "slurm-4711.out" contains 4711, "14711" does not.
bool holds_word(std::string_view text, std::string_view word) {
  const auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// Each process gets its own job, else that of the nearest ancestor, up to kParents generations.
void inherit_jobs(ProcessView& view, const std::unordered_map<uint32_t, ProcessClaim>& reported) {
  for (auto& [pid, process] : view.processes) {
    std::optional<std::string> group;
    bool by_user = false;
    uint32_t at = pid;
    for (int i = 0; i < kParents && at > 1 && process.job.empty(); ++i) {
      const auto known = reported.find(at);
      const auto there = view.processes.find(at);
      if (known == reported.end() || there == view.processes.end()) break;
      if (known->second.certain) {
        process.job = *known->second.certain;
        process.by_environment = known->second.by_environment;
      }
      if (!group && known->second.group) group = known->second.group, by_user = known->second.by_user;
      at = there->second.parent;
    }
    if (process.job.empty() && group) {
      process.job = *group;
      process.by_user = by_user;
    }
  }
}

}  // namespace

std::map<std::string, ProcessView::Job> ProcessView::jobs() const {
  const long ticks = std::max(1L, ::sysconf(_SC_CLK_TCK));
  std::map<std::string, Job> out;
  for (const auto& [pid, process] : processes) {
    if (process.job.empty()) continue;
    Job& job = out[process.job];
    const TimeNs since = static_cast<TimeNs>(process.start_ticks) * (kNsPerSecond / ticks);
    const TimeNs began = boot_ns == kNoTime ? kNoTime : boot_ns + since;
    if (job.uids.empty() || began < job.began_ns) job.began_ns = began;
    job.uids.insert(process.uid);
    job.barred = job.barred || process.barred;
  }
  return out;
}

ProcessView look_at_processes(const ProcessLook& look) {
  ProcessView out;
  out.began_ns = look.now;
  out.boot_ns = boot_time(look.proc);
  Budget budget(look);
  std::vector<uint32_t> pids;
  (void)numbers_in(look.proc, budget, pids);
  std::unordered_map<uint32_t, ProcessClaim> reported;
  for (const uint32_t pid : pids) {
    if (!budget.spend()) break;
    const std::string folder = look.proc + "/" + std::to_string(pid);
    struct stat owner;
    const auto stat = stat_of(folder);
    if ((stat && stat->zombie) || ::stat(folder.c_str(), &owner) != 0) continue;
    ProcessView::Process& process = out.processes[pid];
    process.uid = owner.st_uid;
    if (stat) process.parent = stat->parent, process.start_ticks = stat->start_ticks;
    ProcessClaim& own = reported[pid] = reported_by(folder);
    process.barred = own.barred;
    look_at_files(folder, pid, budget, out);
  }
  out.cut = budget.spent();
  if (look.names_jobs) inherit_jobs(out, reported);
  return out;
}

// Each network namespace has separate files below /proc/PID/net.
std::optional<uint64_t> network_namespace(const std::string& proc, const std::string& pid) {
  struct stat info {};
  if (::stat((proc + "/" + pid + "/net/tcp").c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid) {
  std::optional<std::string> group;
  for (int i = 0; i < kParents && pid > 1; ++i) {
    const std::string folder = proc + "/" + std::to_string(pid);
    ProcessClaim reported = reported_by(folder);
    if (reported.certain) return reported.certain;
    if (!group) group = std::move(reported.group);
    const auto stat = stat_of(folder);
    pid = stat ? stat->parent : 0;
  }
  return group;
}

// A Slurm task may be a launcher of several ranks with a larger rank count: the largest number wins.
uint32_t world_of_process(const std::string& proc, uint32_t pid) {
  constexpr std::string_view kNames[] = {
      "WORLD_SIZE=", "OMPI_COMM_WORLD_SIZE=", "PMI_SIZE=", "SLURM_STEP_NUM_TASKS=", "SLURM_NTASKS="};
  const std::string environment = read_some(proc + "/" + std::to_string(pid) + "/environ");
  uint32_t out = 0;
  for (const std::string_view entry : split(environment, '\0'))
    for (const std::string_view name : kNames)
      if (entry.starts_with(name))
        out = std::max(out, number<uint32_t>(entry.substr(name.size())).value_or(0));
  return out;
}

std::optional<FileFacts> facts_of_file(const std::string& path) {
  struct statx found {};
  if (::statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &found) != 0)
    return std::nullopt;
  const auto time = [](const statx_timestamp& t) { return t.tv_sec * kNsPerSecond + t.tv_nsec; };
  FileFacts out;
  out.device = makedev(found.stx_dev_major, found.stx_dev_minor);
  out.inode = found.stx_ino;
  out.uid = found.stx_uid;
  out.modified_ns = time(found.stx_mtime);
  out.born_ns = found.stx_mask & STATX_BTIME ? time(found.stx_btime) : out.modified_ns;
  return out;
}

std::optional<std::string> job_of_file(const ProcessView& view, const std::string& path,
                                       const FileFacts& file) {
  if (const auto writer = view.writers.find({file.device, file.inode}); writer != view.writers.end()) {
    const std::string& job = view.processes.at(writer->second).job;
    return job.empty() ? std::nullopt : std::optional(job);
  }
  // Root's files prove nothing: launchers and services of all jobs write as root.
  if (file.uid == 0) return std::nullopt;
  std::optional<std::string> only;
  size_t running = 0;
  for (const auto& [name, job] : view.jobs()) {
    // A job does not write the file if all its open files are readable and none is this file.
    if (!job.barred || !job.uids.contains(file.uid)) continue;
    if (holds_word(path, name)) return name;
    // A file last written before the job began belongs to another job.
    if (job.began_ns == kNoTime || file.modified_ns + kTicksApart < job.began_ns) continue;
    ++running;
    only = name;
  }
  return running == 1 ? only : std::nullopt;
}

}  // namespace culprit::app
