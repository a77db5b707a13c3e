#include "shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace culprit::fault {

bool running = false;

namespace {

Plan plan;
uint64_t calls = 0;
bool has_fired = false;

// What a call does besides.
struct Nature {
  bool writes = false, interruptible = false, transfers = false;
};

bool counts(const Nature& nature) {
  switch (plan.calls) {
    case Calls::kAll:
      return true;
    case Calls::kWrites:
      return nature.writes;
    case Calls::kInterruptible:
      return nature.interruptible;
    case Calls::kTransfers:
      return nature.transfers;
  }
  return true;
}

enum class Outcome : uint8_t { kWorks, kFails, kShort };

Outcome next(const Nature& nature) {
  if (!running || !counts(nature)) return Outcome::kWorks;
  ++calls;
  const bool planned =
      plan.nth != 0 && calls >= plan.nth && (plan.count == 0 || calls < plan.nth + plan.count);
  if (!planned || (calls - plan.nth) % plan.each != 0) return Outcome::kWorks;
  const bool first = !has_fired;
  has_fired = true;
  if (plan.before) {
    running = false;
    plan.before();
    running = true;
    return Outcome::kWorks;
  }
  if (plan.error == 0 || (plan.ends && first && nature.writes && nature.transfers)) return Outcome::kShort;
  errno = plan.error;
  return Outcome::kFails;
}

bool fails(const Nature& nature = {}) { return next(nature) == Outcome::kFails; }

constexpr Nature kInterrupted = {.interruptible = true};
constexpr Nature kTakesRoom = {.writes = true};
constexpr Nature kReads = {.interruptible = true, .transfers = true};
constexpr Nature kWrites = {.writes = true, .interruptible = true, .transfers = true};

}  // namespace

void arm(const Plan& next_plan) {
  plan = next_plan;
  calls = 0;
  has_fired = false;
}
uint64_t counted() { return calls; }
bool fired() { return has_fired; }
bool killed() { return has_fired && plan.ends; }

}  // namespace culprit::fault

using namespace culprit::fault;

// The linker's names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

#define CALL(result, failure, name, nature, parameters, arguments) \
  result __real_##name parameters;                                 \
  result __wrap_##name parameters;                                 \
  result __wrap_##name parameters {                                \
    if (fails(nature)) return failure;                             \
    return __real_##name arguments;                                \
  }

CALL(int, -1, fstat, {}, (int fd, struct stat* out), (fd, out))
CALL(int, -1, stat, {}, (const char* path, struct stat* out), (path, out))
CALL(int, -1, fstatat, {}, (int fd, const char* path, struct stat* out, int flags), (fd, path, out, flags))
CALL(int, -1, statx, {}, (int fd, const char* path, int flags, unsigned mask, struct statx* out),
     (fd, path, flags, mask, out))
CALL(int, -1, fstatfs, {}, (int fd, struct statfs* out), (fd, out))
CALL(int, -1, statvfs, kInterrupted, (const char* path, struct statvfs* out), (path, out))
CALL(off_t, -1, lseek, {}, (int fd, off_t offset, int whence), (fd, offset, whence))
CALL(DIR*, nullptr, fdopendir, {}, (int fd), (fd))
CALL(DIR*, nullptr, opendir, {}, (const char* path), (path))
CALL(struct dirent*, nullptr, readdir, {}, (DIR * folder), (folder))
CALL(int, -1, fsync, kInterrupted, (int fd), (fd))
CALL(int, -1, fdatasync, kInterrupted, (int fd), (fd))
CALL(int, -1, ftruncate, kInterrupted, (int fd, off_t size), (fd, size))
CALL(int, -1, rename, kTakesRoom, (const char* from, const char* to), (from, to))
CALL(int, -1, unlink, {}, (const char* path), (path))
CALL(int, -1, mkdir, kTakesRoom, (const char* path, mode_t mode), (path, mode))

#define TRANSFER(name, nature, parameters, arguments, half_arguments) \
  ssize_t __real_##name parameters;                                   \
  ssize_t __wrap_##name parameters;                                   \
  ssize_t __wrap_##name parameters {                                  \
    const auto outcome = next(nature);                                \
    if (outcome == Outcome::kFails) return -1;                        \
    if (outcome == Outcome::kShort) {                                 \
      const ssize_t done = __real_##name half_arguments;              \
      if (!killed()) return done;                                     \
      errno = EIO;                                                    \
      return -1;                                                      \
    }                                                                 \
    return __real_##name arguments;                                   \
  }

TRANSFER(read, kReads, (int fd, void* out, size_t size), (fd, out, size), (fd, out, size - size / 2))
TRANSFER(pread, kReads, (int fd, void* out, size_t size, off_t at), (fd, out, size, at),
         (fd, out, size - size / 2, at))
TRANSFER(write, kWrites, (int fd, const void* from, size_t size), (fd, from, size),
         (fd, from, size - size / 2))

int __real_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (fails({.writes = (flags & O_CREAT) != 0, .interruptible = true})) return -1;
  return __real_open(path, flags, mode);
}

int __real_openat(int fd, const char* path, int flags, ...);
int __wrap_openat(int fd, const char* path, int flags, ...);
int __wrap_openat(int fd, const char* path, int flags, ...) {
  if (fails(kInterrupted)) return -1;
  return __real_openat(fd, path, flags);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...) {
  va_list more;
  va_start(more, what);
  const int argument = va_arg(more, int);
  va_end(more);
  if (what == F_DUPFD_CLOEXEC && fails()) return -1;
  return __real_fcntl(fd, what, argument);
}

// openat2() alone.
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list more;
  va_start(more, number);
  const int fd = va_arg(more, int);
  const char* const path = va_arg(more, const char*);
  open_how* const how = va_arg(more, open_how*);
  const size_t size = va_arg(more, size_t);
  va_end(more);
  if (number == SYS_openat2 && fails(kInterrupted)) return -1;
  return __real_syscall(number, fd, path, how, size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
