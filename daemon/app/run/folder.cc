#include "app/run/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNamesTried = 1000;  // "train-1126-190203-2" and so on
constexpr size_t kRunsSeen = 10'000;
constexpr const char* kMarker = "/.culprit-run";  // what remove_old_runs() may remove
constexpr size_t kSocketPathBytes = 92;           // sun_path has 108, and a name follows
constexpr int kRuntimeNames = 8;
constexpr const char* kMemory = "/dev/shm";

bool is_own(const struct stat& info) {
  return S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Makes a folder for this user alone, or takes the one that is there. `fresh`: it must not be there.
Status make_own(const std::string& path, bool fresh = false) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST || fresh) {
    if (errno == EEXIST) return fail(ErrorCode::kBusy, path + ": is there already");
    return io::system_failure(path, errno);
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return io::system_failure(path, errno);
  if (!is_own(info)) return fail(ErrorCode::kDenied, path + ": is no folder of this user alone");
  return {};
}

// The folders above the run may belong to others, as /home does.
Status make_above(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0)
    return S_ISDIR(info.st_mode) ? Status() : fail(ErrorCode::kInvalid, path + ": is no folder");
  const std::string above = fs::path(path).parent_path().string();
  if (!above.empty() && above != path)
    if (Status made = make_above(above); !made) return made;
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return io::system_failure(path, errno);
}

// Whether a process holds the lock, or it cannot be had.
bool is_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  const bool free = fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (fd >= 0) ::close(fd);
  return !free;
}

// Whether a member of the run holds its lock, or cannot be asked.
bool may_run(const fs::path& run) {
  std::error_code error;
  for (fs::directory_iterator it(run / "members", error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".lock" && is_locked(it->path().string())) return true;
  }
  return false;
}

std::string temporary_folder(const Lookup& variable) {
  const auto set = variable("TMPDIR");
  return set && set->starts_with('/') ? *set : "/tmp";
}

// Of runs where the default root cannot be written to.
std::string spare_run_root(const Lookup& variable) {
  return fmt::format("{}/culprit-run-{}", temporary_folder(variable), ::geteuid());
}

std::vector<std::string> runtime_bases(const Lookup& variable) {
  std::vector<std::string> out;
  const auto set = variable("XDG_RUNTIME_DIR");
  if (set && set->starts_with('/')) out.push_back(*set);
  out.push_back(temporary_folder(variable));
  out.emplace_back("/tmp");
  return out;
}

// All members on a host meet in this folder, so its name follows from the run's. Another user may have taken
// the first name: then they meet under the next one.
std::vector<std::string> runtime_names(const std::string& run, const std::string& host) {
  const std::string name = fmt::format("culprit-{}-{}", ::geteuid(), hex64(hash64(run + "\n" + host)));
  std::vector<std::string> out{name};
  for (int n = 2; n <= kRuntimeNames; ++n) out.push_back(fmt::format("{}-{}", name, n));
  return out;
}

// Makes the first folder of these names that can be this user's, or takes it where it is there.
Result<std::string> make_one_of(const std::string& base, const std::vector<std::string>& names) {
  Status made;
  for (const std::string& name : names) {
    const std::string path = base + "/" + name;
    made = make_own(path);
    if (made) return path;
  }
  return tl::unexpected(made.error());
}

// What a run that was killed left in memory and in the folder of sockets.
void remove_runtime(const fs::path& run, const Lookup& variable) {
  std::error_code error, ignored;
  for (fs::directory_iterator it(run / "private", error), end; !error && it != end; it.increment(error)) {
    std::vector<std::string> bases = runtime_bases(variable);
    bases.emplace_back(kMemory);
    for (const std::string& name : runtime_names(run.string(), it->path().filename().string()))
      for (const std::string& base : bases) {
        struct stat info {};
        const std::string path = base + "/" + name;
        if (::lstat(path.c_str(), &info) == 0 && is_own(info)) fs::remove_all(path, ignored);
      }
  }
}

}  // namespace

std::string default_run_root(const Lookup& variable) {
  if (const auto state = variable("XDG_STATE_HOME"); state && state->starts_with('/'))
    return *state + "/culprit/run";
  if (const auto home = variable("HOME"); home && home->starts_with('/') && home->size() > 1)
    return *home + "/.local/state/culprit/run";
  return spare_run_root(variable);
}

std::string kept_run(const std::string& job, const Lookup& variable) {
  if (!check_run_name(job).empty()) return {};
  for (const std::string& root : {default_run_root(variable), spare_run_root(variable)}) {
    struct stat run {
    }, inputs{};
    const std::string path = root + "/" + job;
    if (::lstat(path.c_str(), &run) == 0 && is_own(run) && ::lstat((path + "/job").c_str(), &inputs) == 0 &&
        is_own(inputs))
      return path + "/job";
  }
  return {};
}

std::string kept_runs_root(const Lookup& variable) {
  for (const std::string& root : {default_run_root(variable), spare_run_root(variable)}) {
    std::error_code error;
    fs::directory_iterator it(root, error);
    size_t seen = 0;
    for (const fs::directory_iterator end; !error && it != end && seen < kRunsSeen;
         it.increment(error), ++seen)
      if (::access((it->path().string() + kMarker).c_str(), F_OK) == 0) return root;
  }
  return {};
}

bool is_network_folder(const std::string& path) {
  // statfs(2): NFS, SMB, CIFS, Lustre, GPFS, BeeGFS, Ceph, AFS, PanFS, 9P.
  constexpr uint32_t kMagic[] = {0x6969,     0x517B,     0xFF534D42, 0xFE534D42, 0x0BD00BD0, 0x47504653,
                                 0x19830326, 0x00C36400, 0x5346414F, 0xAAD7AAEA, 0x01021997};
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return std::ranges::find(kMagic, static_cast<uint32_t>(info.f_type)) != std::end(kMagic);
}

Status write_run_file(const std::string& path, std::string_view text) {
  const std::string part = fmt::format("{}.{}.part", path, ::getpid());
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool whole = fd >= 0;
  for (std::string_view rest = text; whole && !rest.empty();) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    whole = n > 0;
    if (whole) rest.remove_prefix(static_cast<size_t>(n));
  }
  int error = errno;
  if (fd >= 0 && ::close(fd) != 0 && whole) whole = false, error = errno;
  if (whole && ::rename(part.c_str(), path.c_str()) == 0) return {};
  if (whole) error = errno;
  ::unlink(part.c_str());
  return io::system_failure(path, error);
}

Result<RunFolder> RunFolder::create(const RunPlaces& places, Launch& launch) {
  RunFolder out;
  const bool named = !places.dir.empty() || !places.shared.empty();
  const std::string root = !places.shared.empty() ? places.shared
                           : !places.dir.empty()  ? places.dir
                                                  : default_run_root(places.variable);
  out.shared_ = !places.shared.empty();
  out.in_team_ = launch.in_team;
  out.host_ = launch.host;
  Status made = out.make(root, launch, !named);
  if (!made && !named) {
    const std::string why = made.error().text;
    const std::string other = spare_run_root(places.variable);
    if (other != root) made = out.make(other, launch, true);
    if (made) out.note_ = fmt::format("{}; the files of the run go to {}", why, other);
  }
  if (!made) return tl::unexpected(made.error());
  if (!out.shared_) out.shared_ = is_network_folder(out.path_);
  out.make_runtime(places, launch);
  return out;
}

// `closed`: the root must be this user's alone.
Status RunFolder::make(const std::string& root, Launch& launch, bool closed) {
  std::error_code error;
  root_ = fs::absolute(root, error).lexically_normal().string();
  if (Status above = make_above(root_); !above) return above;
  struct stat info {};
  if (closed && (::lstat(root_.c_str(), &info) != 0 || !is_own(info)))
    return fail(ErrorCode::kDenied, root_ + ": is no folder of this user alone");
  const std::string job = launch.job;
  Status made;
  for (int n = 1; n <= kNamesTried; ++n) {
    launch.job = n == 1 ? job : fmt::format("{}-{}", job, n);
    path_ = root_ + "/" + launch.job;
    made = make_run(launch);
    if (made || made.error().code != ErrorCode::kBusy) break;
  }
  if (!made) launch.job = job;
  return made;
}

// kBusy: an earlier run has the name.
Status RunFolder::make_run(const Launch& launch) {
  if (Status run = make_own(path_, !launch.in_team); !run) return run;
  if (Status made = make_own(members()); !made) return made;
  // A run that has reported is over, also for members that it did not have.
  for (const std::string& reports : {members() + "/reports", members() + "/" + launch.host + ".reports"})
    if (::access(reports.c_str(), F_OK) == 0) return fail(ErrorCode::kBusy, reports + ": is there already");
  const std::string lock = fmt::format("{}/{}.{}.lock", members(), launch.host, launch.member);
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0 && errno == EEXIST) return fail(ErrorCode::kBusy, lock + ": is there already");
  if (lock_ < 0) return io::system_failure(lock, errno);
  // Where a file system has no locks, the run counts as ended for remove_old_runs().
  (void)::flock(lock_, LOCK_EX | LOCK_NB);
  host_folder_ = inputs() + "/" + launch.host;
  private_ = path_ + "/private/" + launch.host;
  for (const std::string& folder :
       {inputs(), logs(), dumps(), path_ + "/private", private_, private_ + "/state"})
    if (Status inner = make_own(folder); !inner) return inner;
  return write_run_file(path_ + kMarker, "A run of `culprit run`.\n");
}

void RunFolder::make_runtime(const RunPlaces& places, const Launch& launch) {
  const std::vector<std::string> names = runtime_names(path_, launch.host);
  owns_runtime_ = launch.local == 0;
  std::vector<std::string> troubles;
  for (const std::string& base : runtime_bases(places.variable)) {
    if (base.size() + 1 + names.back().size() > kSocketPathBytes) {
      troubles.push_back(base + ": its path is too long for a socket");
      continue;
    }
    const auto path = make_one_of(base, names);
    const Status pipes = path ? make_own(*path + "/pipes") : tl::unexpected(path.error());
    if (pipes) {
      runtime_ = *path;
      break;
    }
    const std::string& text = pipes.error().text;
    const std::string trouble = base + text.substr(std::min(text.rfind(": "), text.size()));
    if (std::ranges::find(troubles, trouble) == troubles.end()) troubles.push_back(trouble);
  }
  if (runtime_.empty())
    no_runtime_ = fmt::format(
        "there is no folder for its sockets ({}); set XDG_RUNTIME_DIR or TMPDIR to a writable folder of "
        "yours",
        fmt::join(troubles, "; "));
  if (auto rings = make_one_of(kMemory, names))
    rings_ = *rings;
  else if (::access(kMemory, W_OK) == 0)
    note_ += fmt::format("{}{}; what tracers write to memory is not seen", note_.empty() ? "" : "; ",
                         rings.error().text);
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : root_(std::move(other.root_)),
      path_(std::move(other.path_)),
      host_folder_(std::move(other.host_folder_)),
      private_(std::move(other.private_)),
      runtime_(std::exchange(other.runtime_, {})),
      rings_(std::exchange(other.rings_, {})),
      note_(std::move(other.note_)),
      no_runtime_(std::move(other.no_runtime_)),
      host_(std::move(other.host_)),
      shared_(other.shared_),
      in_team_(other.in_team_),
      owns_runtime_(other.owns_runtime_),
      lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (owns_runtime_)
    for (const std::string& path : {runtime_, rings_})
      if (!path.empty()) fs::remove_all(path, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::remove() {
  std::error_code ignored;
  if (in_team_ && !shared_) {
    fs::remove_all(host_folder_, ignored);
    fs::remove_all(private_, ignored);
    // Of other hosts there may be more, where they see the folder after all.
    if (!fs::is_empty(path_ + "/private", ignored)) return;
  }
  fs::remove_all(path_, ignored);
}

std::vector<std::string> remove_old_runs(const std::string& root, size_t keep, const Lookup& variable) {
  struct Run {
    fs::path path;
    fs::file_time_type time;
  };
  std::vector<Run> runs;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    struct stat info {};
    if (runs.size() >= kRunsSeen || ::lstat(it->path().c_str(), &info) != 0 || !is_own(info)) continue;
    std::error_code none;
    if (::access((it->path().string() + kMarker).c_str(), F_OK) != 0) continue;
    const auto time = fs::last_write_time(it->path() / "members", none);
    if (!none) runs.push_back({it->path(), time});
  }
  std::ranges::sort(runs, [](const Run& a, const Run& b) { return a.time > b.time; });
  std::vector<std::string> out;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (may_run(runs[i].path)) continue;
    remove_runtime(runs[i].path, variable);
    if (i < keep) continue;
    fs::remove_all(runs[i].path, error);
    out.push_back(runs[i].path.filename().string());
  }
  return out;
}

}  // namespace culprit::app
