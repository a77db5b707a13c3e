#include "io/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "io/descriptors.h"
#include "io/process_end.h"
#include "io/system_error.h"

namespace culprit::io {
namespace {

constexpr TimeNs kKilledEnds = kNsPerSecond;
// Descriptors are first copied to numbers from here on, above the program's, so that none is overwritten
// before its copy.
constexpr int kFirstCopy = 16;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void open_null(int number) {
    keep(posix_spawn_file_actions_addopen(&actions_, number, "/dev/null",
                                          number == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0));
  }
  void copy(int descriptor, int number) {
    const int copied = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstCopy);
    if (copied < 0) return keep(errno);
    copies_.emplace_back(copied);
    keep(posix_spawn_file_actions_adddup2(&actions_, copied, number));
  }
  void close_from(int number) { keep(posix_spawn_file_actions_addclosefrom_np(&actions_, number)); }
  int error() const { return error_; }  // the first error
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void keep(int error) {
    if (error_ == 0) error_ = error;
  }
  posix_spawn_file_actions_t actions_;
  std::vector<Descriptor> copies_;
  int error_ = 0;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Pointers into the texts; execve() does not change these.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

uint64_t nanoseconds_of(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec * kNsPerSecond + time.tv_usec * kNsPerUs);
}

}  // namespace

Result<Child> Child::start(const ChildProgram& program) {
  SpawnActions actions;
  CULPRIT_CHECK(program.descriptors.size() <= kFirstCopy);  // the copies lie above all of them
  const int given = std::max(3, static_cast<int>(program.descriptors.size()));
  for (int number = 0; number < given; ++number) {
    const auto at = static_cast<size_t>(number);
    const int descriptor = at < program.descriptors.size() ? program.descriptors[at] : ChildProgram::kNull;
    if (descriptor == ChildProgram::kNull)
      actions.open_null(number);
    else
      actions.copy(descriptor, number);
  }
  actions.close_from(given);
  if (actions.error() != 0) return system_failure(program.path, actions.error());
  const SpawnAttributes attributes;
  Child out;
  out.kill_ = program.kill;
  const int error =
      posix_spawn(&out.pid_, program.path.c_str(), actions.get(), attributes.get(),
                  pointers_to(program.arguments).data(), pointers_to(program.environment).data());
  if (error != 0) return system_failure(program.path, error);
  out.state_ = State::kRuns;
  return out;
}

Child::~Child() { (void)end(kKilledEnds); }

void Child::swap(Child& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(state_, other.state_);
  std::swap(kill_, other.kill_);
}

bool Child::has_ended() const {
  return state_ == State::kEnded || (state_ == State::kRuns && ends_within(pid_, 0));
}

std::optional<ChildEnd> Child::wait(TimeNs within_ns) {
  if (state_ != State::kRuns || !ends_within(pid_, within_ns)) return std::nullopt;
  int status = 0;
  rusage usage{};
  pid_t got = 0;
  do got = ::wait4(pid_, &status, 0, &usage);
  while (got < 0 && errno == EINTR);
  state_ = State::kEnded;
  if (got != pid_) return ChildEnd{-1, 0, 0};
  ChildEnd out;
  out.cpu_ns = nanoseconds_of(usage.ru_utime) + nanoseconds_of(usage.ru_stime);
  if (WIFSIGNALED(status))
    out.signal = WTERMSIG(status);
  else
    out.code = WEXITSTATUS(status);
  return out;
}

void Child::kill() const {
  if (state_ == State::kRuns) ::kill(kill_ == ChildKill::kGroup ? -pid_ : pid_, SIGKILL);
}

bool Child::end(TimeNs within_ns) {
  if (state_ != State::kRuns) return state_ != State::kLeft;
  kill();
  if (wait(within_ns)) return true;
  state_ = State::kLeft;
  return false;
}

}  // namespace culprit::io
