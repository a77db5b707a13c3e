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
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "app/run/earlier_run.h"
#include "base/clock.h"
#include "base/hash.h"
#include "io/descriptors.h"
#include "io/system_error.h"
#include "io/trusted_path.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNamesTried = 1000;  // names such as "train-1126-190203-2"
constexpr size_t kRunsSeen = 10'000;
constexpr size_t kMembersSeen = 100'000;
constexpr const char* kMarker = ".culprit-run";  // marks a folder that remove_old_runs() may remove
constexpr size_t kSocketPathBytes = 92;          // sun_path has 108 bytes, and a file name follows
constexpr int kRuntimeNames = 8;
constexpr int kRemovalsSeen = 10;  // how often one new folder may be removed by others
constexpr const char* kMemory = "/dev/shm";
constexpr std::chrono::nanoseconds kEarlierLookEvery = std::chrono::seconds(1);  // at an earlier run
constexpr int kLockTries = 20;
constexpr std::chrono::milliseconds kLockEvery{50};

bool is_own(const struct stat& info) {
  return S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Creates a folder for this user alone, or uses the existing one.
Status make_own(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return io::system_failure(path, errno);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return io::system_failure(path, errno);
  if (!is_own(info)) return fail(ErrorCode::kDenied, path + ": is no folder of this user alone");
  return {};
}

// Why other users could replace the content of this folder; nothing: they cannot.
Status closed_to_others(const std::string& path) {
  const auto opened = io::open_trusted_folder(path, ::geteuid());
  if (!opened) return tl::unexpected(opened.error());
  const io::Descriptor folder(*opened);
  return {};
}

// Folders above the run may belong to other users, like /home.
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

// Whether an earlier run, whose members show life, has ended. Waits until that is clear.
bool has_ended(const HeldFolder& run, TimeNs silent) {
  EarlierRun earlier(run, silent);
  for (;;) {
    const EarlierRun::State state = earlier.look(steady_now());
    if (state != EarlierRun::State::kUnclear) return state == EarlierRun::State::kEnded;
    std::this_thread::sleep_for(std::min(kEarlierLookEvery, std::chrono::nanoseconds(silent)));
  }
}

// Locks a member's file. A run that looks at the lock holds it for a moment.
int lock_own(int fd) {
  for (int tries = 0;; ++tries) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK || tries == kLockTries) return errno;
    std::this_thread::sleep_for(kLockEvery);
  }
}

std::string temporary_folder(const Lookup& variable) {
  const auto set = variable("TMPDIR");
  return set && set->starts_with('/') ? *set : "/tmp";
}

// Root of runs if the default root is not writable.
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

// All members on a host share this folder, so its name is derived from the run's name. If another user took
// the first name, the members use the next one.
std::vector<std::string> runtime_names(const std::string& run, const std::string& host) {
  const std::string name = fmt::format("culprit-{}-{}", ::geteuid(), hex64(hash64(run + "\n" + host)));
  std::vector<std::string> out{name};
  for (int n = 2; n <= kRuntimeNames; ++n) out.push_back(fmt::format("{}-{}", name, n));
  return out;
}

// Creates a folder for this user alone, or uses the existing one. Locks it against remove_unused().
Result<HeldFolder> make_in_use(const std::string& path) {
  for (int i = 0; i < kRemovalsSeen; ++i) {
    if (Status made = make_own(path); !made) return tl::unexpected(made.error());
    auto held = HeldFolder::open(path);
    if (!held && held.error().code == ErrorCode::kNotFound) continue;
    if (!held) return held;
    // Waits while another run removes the folder, which takes milliseconds.
    while (::flock(held->descriptor(), LOCK_SH) != 0 && errno == EINTR) {
    }
    if (held->is_there()) return held;
  }
  return fail(ErrorCode::kBusy, path + ": other runs remove it again and again");
}

// Removes a folder of this user that no run has locked.
void remove_unused(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !is_own(info)) return;
  const auto held = HeldFolder::open(path);
  if (!held || ::flock(held->descriptor(), LOCK_EX | LOCK_NB) != 0 || !held->is_there()) return;
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Creates or uses the first folder of these names that can belong to this user.
Result<HeldFolder> make_one_of(const std::string& base, const std::vector<std::string>& names) {
  if (const Status closed = closed_to_others(base); !closed)
    return fail(closed.error().code, base + ": " + closed.error().text);
  Result<HeldFolder> made = fail(ErrorCode::kNotFound, base + ": no name to try");
  for (size_t i = 0; i < names.size() && !made; ++i) made = make_in_use(base + "/" + names[i]);
  return made;
}

// Removes rings of killed runs whose folder is gone or below another root.
void remove_unused_rings() {
  const auto memory = HeldFolder::open(kMemory);
  if (!memory) return;
  const std::string own = fmt::format("culprit-{}-", ::geteuid());
  for (const std::string& name : memory->names(kMembersSeen)) {
    const std::string_view digits = std::string_view(name).substr(std::min(own.size(), name.size()), 16);
    if (name.starts_with(own) && digits.size() == 16 &&
        digits.find_first_not_of("0123456789abcdef") == digits.npos)
      remove_unused(memory->path() + "/" + name);
  }
}

// Removes what a killed run left in memory and in the folder of sockets.
void remove_runtime(const HeldFolder& run, const Lookup& variable) {
  const auto hosts = run.enter("job");
  if (!hosts) return;
  std::vector<std::string> bases = runtime_bases(variable);
  bases.emplace_back(kMemory);
  for (const std::string& host : hosts->names(kMembersSeen))
    for (const std::string& name : runtime_names(run.path(), host))
      for (const std::string& base : bases) remove_unused(base + "/" + name);
}

}  // namespace

std::string default_run_root(const Lookup& variable) {
  if (const auto state = variable("XDG_STATE_HOME"); state && state->starts_with('/'))
    return *state + "/culprit/run";
  if (const auto home = variable("HOME"); home && home->starts_with('/') && home->size() > 1)
    return *home + "/.local/state/culprit/run";
  return spare_run_root(variable);
}

std::string stored_run(const std::string& job, const Lookup& variable) {
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

std::string stored_runs_root(const Lookup& variable) {
  for (const std::string& root : {default_run_root(variable), spare_run_root(variable)}) {
    std::error_code error;
    fs::directory_iterator it(root, error);
    size_t seen = 0;
    for (const fs::directory_iterator end; !error && it != end && seen < kRunsSeen;
         it.increment(error), ++seen)
      if (::access((it->path() / kMarker).c_str(), F_OK) == 0) return root;
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

Result<RunFolder> RunFolder::create(const RunPlaces& places, Launch& launch) {
  RunFolder out;
  const bool named = !places.dir.empty() || !places.shared.empty();
  const std::string root = !places.shared.empty() ? places.shared
                           : !places.dir.empty()  ? places.dir
                                                  : default_run_root(places.variable);
  out.shared_ = !places.shared.empty();
  out.in_team_ = launch.in_team;
  out.host_ = launch.host;
  Status made = out.make(places, root, launch, !named);
  if (!made && !named) {
    const std::string why = made.error().text;
    const std::string other = spare_run_root(places.variable);
    if (other != root) made = out.make(places, other, launch, true);
    if (made) out.note_ = fmt::format("{}; the files of the run go to {}", why, other);
  }
  if (!made) return tl::unexpected(made.error());
  if (!out.shared_) out.shared_ = is_network_folder(out.path());
  remove_unused_rings();
  out.make_runtime(places, launch);
  if (Status placed = out.place_files(places, launch); !placed) return tl::unexpected(placed.error());
  return out;
}

// `closed`: only this user may have access to the root.
Status RunFolder::make(const RunPlaces& places, const std::string& root, Launch& launch, bool closed) {
  std::error_code error;
  const std::string path = fs::absolute(root, error).lexically_normal().string();
  if (Status above = make_above(path); !above) return above;
  auto opened = HeldFolder::open(path);
  if (!opened) return tl::unexpected(opened.error());
  root_ = std::move(*opened);
  struct stat info {};
  if (closed && (::lstat(path.c_str(), &info) != 0 || !is_own(info) || !root_.is_own()))
    return fail(ErrorCode::kDenied, path + ": is no folder of this user alone");
  exposed_ = !closed_to_others(path).has_value();
  const std::string job = launch.job;
  Status made;
  for (int n = 1; n <= (launch.continues ? 1 : kNamesTried); ++n) {
    launch.job = n == 1 ? job : fmt::format("{}-{}", job, n);
    made = make_run(places, launch);
    if (made || made.error().code != ErrorCode::kBusy) break;
  }
  if (made && launch.shows_life && launch.job != job)
    note_ = fmt::format("an earlier run has the name {}; this one is {}", job, launch.job);
  if (!made) launch.job = job;
  return made;
}

// kBusy: an earlier run has the name.
Status RunFolder::make_run(const RunPlaces& places, const Launch& launch) {
  const auto take = [](Result<HeldFolder> made, HeldFolder& out) -> Status {
    if (!made) return tl::unexpected(made.error());
    out = std::move(*made);
    return {};
  };
  job_ = launch.job;
  if (Status run = take(launch.continues ? root_.enter(job_) : root_.make(job_, !launch.in_team), run_); !run)
    return run;
  if (launch.continues && !run_.is_own())
    return fail(ErrorCode::kDenied, run_.path() + ": is no folder of this user alone");
  if (Status made = take(run_.make("members"), members_); !made) return made;
  // A run that has reported is over, even for members that never joined it.
  for (const std::string& reports : {std::string("reports"), launch.host + ".reports"})
    if (members_.has(reports))
      return fail(ErrorCode::kBusy, members_.path() + "/" + reports + ": is there already");
  const std::string name = fmt::format("{}.{}.lock", launch.host, launch.member);
  if (!launch.continues && members_.has(name))
    return fail(ErrorCode::kBusy, members_.path() + "/" + name + ": is there already");
  if (launch.shows_life && !launch.continues && has_ended(run_, places.silent_ns))
    return fail(ErrorCode::kBusy, run_.path() + ": its run was killed");
  auto lock = members_.open_file(name, O_RDWR | O_CREAT | (launch.continues ? 0 : O_EXCL));
  if (!lock) return tl::unexpected(lock.error());
  lock_ = lock->release();
  // Without locks in the file system, remove_old_runs() treats the run as ended.
  if (lock_own(lock_) == EWOULDBLOCK && launch.continues)
    return fail(ErrorCode::kInvalid, run_.path() + ": its run has not ended");
  if (Status made = take(run_.make("job"), inputs_); !made) return made;
  if (Status made = take(inputs_.make(launch.host), logs_); !made) return made;
  return run_.write(kMarker, "A run of `culprit run`.\n");
}

// Places files that are used by path where other users cannot replace them.
Status RunFolder::place_files(const RunPlaces& places, const Launch& launch) {
  files_ = exposed_ ? runtime_ : logs_.path();
  private_ = exposed_ || !places.shared.empty() ? runtime_ : run_.path() + "/private";
  std::vector<std::string> folders;
  if (exposed_ && !runtime_.empty()) {
    folders.push_back(runtime_ + "/files");
    files_ = fmt::format("{}/files/{}", runtime_, launch.member);
    folders.push_back(files_);
  }
  if (!files_.empty()) folders.push_back(files_ + "/dumps");
  if (!private_.empty()) {
    if (private_ == runtime_) private_ += "/private";
    folders.push_back(private_);
    private_ += "/" + launch.host;
    for (const char* below : {"", "/state"}) folders.push_back(private_ + below);
  }
  for (const std::string& folder : folders)
    if (Status made = make_own(folder); !made) return made;
  return {};
}

uint64_t RunFolder::collect() const { return exposed_ && !files_.empty() ? logs_.copy_from(files_) : 0; }

void RunFolder::make_runtime(const RunPlaces& places, const Launch& launch) {
  const std::vector<std::string> names = runtime_names(run_.path(), launch.host);
  owns_runtime_ = launch.local == 0;
  std::vector<std::string> troubles;
  for (const std::string& base : runtime_bases(places.variable)) {
    if (base.size() + 1 + names.back().size() > kSocketPathBytes) {
      troubles.push_back(base + ": its path is too long for a socket");
      continue;
    }
    auto made = make_one_of(base, names);
    const Status pipes = made ? make_own(made->path() + "/pipes") : tl::unexpected(made.error());
    if (pipes) {
      runtime_ = made->path();
      held_runtime_ = std::move(*made);
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
  if (auto rings = make_one_of(kMemory, names)) {
    rings_ = rings->path();
    held_rings_ = std::move(*rings);
  } else if (::access(kMemory, W_OK) == 0) {
    note_ += fmt::format("{}{}; what tracers write to memory is not seen", note_.empty() ? "" : "; ",
                         rings.error().text);
  }
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : root_(std::move(other.root_)),
      run_(std::move(other.run_)),
      inputs_(std::move(other.inputs_)),
      logs_(std::move(other.logs_)),
      members_(std::move(other.members_)),
      held_runtime_(std::move(other.held_runtime_)),
      held_rings_(std::move(other.held_rings_)),
      files_(std::move(other.files_)),
      private_(std::move(other.private_)),
      runtime_(std::exchange(other.runtime_, {})),
      rings_(std::exchange(other.rings_, {})),
      note_(std::move(other.note_)),
      no_runtime_(std::move(other.no_runtime_)),
      job_(std::move(other.job_)),
      host_(std::move(other.host_)),
      shared_(other.shared_),
      in_team_(other.in_team_),
      owns_runtime_(other.owns_runtime_),
      exposed_(other.exposed_),
      lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (exposed_ && !runtime_.empty()) fs::remove_all(files_, ignored);
  if (owns_runtime_ && !runtime_.empty()) {
    for (fs::directory_iterator it(runtime_, ignored), end; !ignored && it != end; it.increment(ignored))
      if (it->path().filename() != "files") fs::remove_all(it->path(), ignored);
    if (!rings_.empty()) fs::remove_all(rings_, ignored);
  }
  // Only the last member on this host finds the folders empty.
  if (!runtime_.empty())
    for (const std::string& path : {runtime_ + "/files", runtime_}) ::rmdir(path.c_str());
  if (lock_ >= 0) ::close(lock_);
}

void RunFolder::remove() {
  if (in_team_ && !shared_) {
    inputs_.remove_held(host_, logs_);
    if (const auto all = run_.enter("private")) all->remove(host_);
    // Other hosts may have added more, if they see the folder after all.
    const auto is_folder = [&](const std::string& name) { return inputs_.enter(name).has_value(); };
    if (std::ranges::any_of(inputs_.names(kMembersSeen), is_folder)) return;
  }
  root_.remove_held(job_, run_);
}

std::vector<std::string> remove_old_runs(const HeldFolder& root, size_t keep, const Lookup& variable) {
  struct Run {
    std::string name;
    timespec time;
  };
  std::vector<Run> runs;
  for (std::string& name : root.names(kRunsSeen)) {
    const auto run = root.enter(name);
    struct stat info {};
    if (run && run->is_own() && run->has(kMarker) &&
        ::fstatat(run->descriptor(), "members", &info, AT_SYMLINK_NOFOLLOW) == 0)
      runs.push_back({std::move(name), info.st_mtim});
  }
  std::ranges::sort(runs, [](const Run& a, const Run& b) {
    return std::tie(a.time.tv_sec, a.time.tv_nsec) > std::tie(b.time.tv_sec, b.time.tv_nsec);
  });
  std::vector<std::string> out;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto run = root.enter(runs[i].name);
    if (!run || !run->is_own() || holds_lock(*run)) continue;
    remove_runtime(*run, variable);
    if (i < keep) continue;
    root.remove_held(runs[i].name, *run);
    out.push_back(runs[i].name);
  }
  return out;
}

}  // namespace culprit::app
