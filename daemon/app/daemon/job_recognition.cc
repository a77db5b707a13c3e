#include "app/daemon/job_recognition.h"

#include <dirent.h>
#include <fcntl.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"
#include "core/logs/placement.h"

namespace culprit::app {
namespace {

constexpr size_t kFileMost = 256 << 10;  // of /proc that is read: an environment may be long
constexpr int kParents = 16;             // launchers stand within a few generations
constexpr size_t kJobsSeen = 4096;

// A file of /proc as far as it can be read; empty where it cannot.
std::string read_some(const std::string& path) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return out;
  std::array<char, 4096> buffer;
  while (out.size() < kFileMost) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(fd);
  return out;
}

std::optional<uint32_t> number(std::string_view text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// Names in a folder that are numbers: processes, descriptors.
std::vector<uint32_t> numbers_in(const std::string& folder, size_t& budget) {
  std::vector<uint32_t> out;
  DIR* dir = ::opendir(folder.c_str());
  if (!dir) return out;
  while (budget > 0) {
    const dirent* entry = ::readdir(dir);
    if (!entry) break;
    --budget;
    if (const auto n = number(entry->d_name)) out.push_back(*n);
  }
  ::closedir(dir);
  return out;
}

// A job's name goes into file names, events and pages: what else a process claims is none.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.' || c == '[' || c == ']' || c == '+';
  });
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
  // As Kubernetes writes one: 36 characters with four hyphens; static pods have 32 digits.
  const bool hex = std::all_of(uid.begin(), uid.end(), [](char c) {
    return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return hex && uid.size() >= 32 && uid.size() <= 36 ? std::optional("pod-" + uid) : std::nullopt;
}

// Lines "0::/system.slice/slurmstepd.scope/job_123/step_0/user".
std::optional<std::string> job_of_cgroup(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    const size_t second = colon == line.npos ? colon : line.find(':', colon + 1);
    if (second == line.npos) continue;
    const auto parts = split(line.substr(second + 1), '/');
    bool slurm = false, pods = false;
    for (const std::string_view part : parts) {
      slurm = slurm || part.starts_with("slurm");
      pods = pods || part.starts_with("kubepods");
      if (slurm && part.starts_with("job_") && number(part.substr(4))) return std::string(part.substr(4));
      if (pods)
        if (auto pod = pod_of(part)) return pod;
    }
    // systemd-run: a unit that was made for one run.
    const std::string_view last = parts.empty() ? std::string_view() : parts.back();
    if (last.starts_with("run-") && (last.ends_with(".service") || last.ends_with(".scope")) && is_name(last))
      return std::string(last.substr(0, last.rfind('.')));
  }
  return std::nullopt;
}

// The fourth field of stat; the second is a name in brackets that may hold anything.
uint32_t parent_of(const std::string& proc, uint32_t pid) {
  const std::string stat = read_some(proc + "/" + std::to_string(pid) + "/stat");
  const size_t close = stat.rfind(')');
  if (close == std::string::npos) return 0;
  const auto fields = split(trim(std::string_view(stat).substr(close + 1)), ' ');
  return fields.size() > 1 ? number(fields[1]).value_or(0) : 0;
}

// Whether the descriptor was opened for writing: "flags:\t0100001", octal, its lowest two bits.
bool is_for_writing(const std::string& fdinfo) {
  const size_t at = fdinfo.find("flags:");
  if (at == std::string::npos) return true;  // cannot be told
  const std::string_view line = std::string_view(fdinfo).substr(at + 6);
  const std::string_view digits = trim(line.substr(0, line.find('\n')));
  return !digits.empty() && (digits.back() - '0') % 4 != 0;
}

}  // namespace

std::optional<std::string> job_of_process(const std::string& proc, uint32_t pid) {
  for (int i = 0; i < kParents && pid > 1; ++i) {
    const std::string folder = proc + "/" + std::to_string(pid);
    if (auto job = job_of_environment(read_some(folder + "/environ"))) return job;
    if (auto job = job_of_cgroup(read_some(folder + "/cgroup"))) return job;
    pid = parent_of(proc, pid);
  }
  return std::nullopt;
}

std::optional<uint32_t> writer_of(const std::string& proc, const std::string& path) {
  struct stat wanted;
  if (::stat(path.c_str(), &wanted) != 0) return std::nullopt;
  size_t budget = limits::kProcEntries;
  for (const uint32_t pid : numbers_in(proc, budget)) {
    const std::string folder = proc + "/" + std::to_string(pid);
    for (const uint32_t fd : numbers_in(folder + "/fd", budget)) {
      struct stat found;
      const std::string name = std::to_string(fd);
      if (::stat((folder + "/fd/" + name).c_str(), &found) != 0 || found.st_ino != wanted.st_ino ||
          found.st_dev != wanted.st_dev)
        continue;
      if (is_for_writing(read_some(folder + "/fdinfo/" + name))) return pid;
    }
  }
  return std::nullopt;
}

struct JobRecognition::Impl {
  JobRules rules;
  std::unique_ptr<re2::RE2> pattern;
  int group = 0;

  std::optional<std::string> of_path(const std::string& path) const {
    if (!pattern) return std::nullopt;
    std::vector<re2::StringPiece> groups(static_cast<size_t>(group) + 1);
    if (!pattern->Match(path, 0, path.size(), re2::RE2::UNANCHORED, groups.data(), group + 1))
      return std::nullopt;
    const re2::StringPiece& found = groups[static_cast<size_t>(group)];
    return found.empty() ? std::nullopt : std::optional(to_utf8({found.data(), found.size()}));
  }
};

JobRecognition::JobRecognition(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JobRecognition::JobRecognition(JobRecognition&&) noexcept = default;
JobRecognition& JobRecognition::operator=(JobRecognition&&) noexcept = default;
JobRecognition::~JobRecognition() = default;

Result<JobRecognition> JobRecognition::create(JobRules rules) {
  auto impl = std::make_unique<Impl>();
  if (!rules.job_pattern.empty()) {
    const std::string shown = shorten(rules.job_pattern, 200);
    re2::RE2::Options options;
    options.set_log_errors(false);
    impl->pattern = std::make_unique<re2::RE2>(logs::with_named_groups(rules.job_pattern), options);
    if (!impl->pattern->ok())
      return fail(ErrorCode::kInvalid, "job_pattern '" + shown + "': " + impl->pattern->error());
    const auto& groups = impl->pattern->NamedCapturingGroups();
    const auto found = groups.find("job");
    if (found == groups.end())
      return fail(ErrorCode::kInvalid,
                  "job_pattern '" + shown + "': no group is named 'job', as in (?P<job>...)");
    impl->group = found->second;
  }
  impl->rules = std::move(rules);
  return JobRecognition(std::move(impl));
}

std::string JobRecognition::of_file(const std::string& path) const {
  if (!impl_->rules.job.empty()) return impl_->rules.job;
  if (auto job = impl_->of_path(path)) return *job;
  // A pattern that does not match says that the file is of no job that it knows; the process may tell.
  if (const auto pid = writer_of(impl_->rules.proc, path))
    if (auto job = job_of_process(impl_->rules.proc, *pid)) return *job;
  return kDefaultJob;
}

std::string JobRecognition::of_process(uint32_t pid, std::string_view told) const {
  if (!impl_->rules.job.empty()) return impl_->rules.job;
  if (auto job = job_of_process(impl_->rules.proc, pid)) return *job;
  const std::string name = to_utf8(told.substr(0, told.find('\0')));
  return name.empty() ? kDefaultJob : name;
}

struct JobAliveness::Seen {
  std::set<std::string> now, ever;
};

std::optional<bool> JobAliveness::alive(const std::string& job, int64_t now_ns) {
  if (!seen_) seen_ = std::make_shared<Seen>();
  const bool fresh = looked_ns_ && now_ns >= *looked_ns_ && now_ns - *looked_ns_ < kNsPerSecond;
  if (!fresh) {
    looked_ns_ = now_ns;
    seen_->now.clear();
    size_t budget = limits::kProcEntries;
    for (const uint32_t pid : numbers_in(proc_, budget))
      if (auto found = job_of_process(proc_, pid)) {
        seen_->now.insert(*found);
        if (seen_->ever.size() < kJobsSeen) seen_->ever.insert(std::move(*found));
      }
  }
  if (seen_->now.contains(job)) return true;
  return seen_->ever.contains(job) ? std::optional(false) : std::nullopt;
}

}  // namespace culprit::app
