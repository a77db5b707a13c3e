// Calls that fail, preloaded into a daemon: while the file that CULPRIT_FAIL_PLAN names is there and has
// a line "CALL ERRNO NTH COUNT PREFIX", the NTH call of that name and COUNT - 1 after it (COUNT 0: all) fail
// with ERRNO where they are about a path that begins with PREFIX; with ERRNO 0 they hang until the plan goes.
// CALL is write, pread, open, fsync, rename, unlink, ftruncate or any. The plan is read again whenever it
// changes, and what fails is counted in the file PLAN.failed, by a byte each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct timespec plan_time;
static char plan_call[16], plan_prefix[512];
static int plan_errno;
static unsigned long plan_nth, plan_count, calls;

// System calls made directly: the names below are ours.
static void read_plan(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0) {
    plan_call[0] = 0;
    return;
  }
  if (plan_call[0] && status.st_mtim.tv_sec == plan_time.tv_sec &&
      status.st_mtim.tv_nsec == plan_time.tv_nsec)
    return;
  char text[1024] = "";
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const long got = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  text[got > 0 ? got : 0] = 0;
  plan_time = status.st_mtim;
  calls = 0;
  if (sscanf(text, "%15s %d %lu %lu %511s", plan_call, &plan_errno, &plan_nth, &plan_count, plan_prefix) != 5)
    plan_call[0] = 0;
}

static int about(int fd, const char* path) {
  char link[64], name[1024];
  if (!path) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, name, sizeof name - 1);
    if (size < 0) return 0;
    name[size] = 0;
    path = name;
  }
  return strncmp(path, plan_prefix, strlen(plan_prefix)) == 0;
}

static void count_one(const char* plan, const char* call) {
  char failed[1024];
  snprintf(failed, sizeof failed, "%s.failed", plan);
  const long out = syscall(SYS_openat, AT_FDCWD, failed, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) return;
  syscall(SYS_write, out, call, (size_t)1);
  syscall(SYS_close, out);
}

// 0, or the errno that the call fails with.
static int fails(const char* call, int fd, const char* path) {
  const char* plan = getenv("CULPRIT_FAIL_PLAN");
  if (!plan) return 0;
  const int before = errno;
  int code = 0, hit = 0;
  pthread_mutex_lock(&mutex);
  read_plan(plan);
  if (plan_call[0] && (strcmp(plan_call, call) == 0 || strcmp(plan_call, "any") == 0) && about(fd, path)) {
    ++calls;
    hit = calls >= plan_nth && (plan_count == 0 || calls < plan_nth + plan_count);
    if (hit) code = plan_errno;
  }
  if (hit) count_one(plan, call);
  pthread_mutex_unlock(&mutex);
  while (hit && code == 0 && access(plan, F_OK) == 0) usleep(20000);
  errno = before;
  return code;
}

// `name` is a call of the C library, `kind` the plan's word for it.
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALL(result, name, kind, about_fd, about_path, parameters, arguments) \
  result name parameters {                                                    \
    const int code = fails(kind, about_fd, about_path);                       \
    if (code) {                                                               \
      errno = code;                                                           \
      return -1;                                                              \
    }                                                                         \
    return REAL(name) arguments;                                              \
  }

CALL(ssize_t, write, "write", fd, NULL, (int fd, const void* p, size_t n), (fd, p, n))
CALL(ssize_t, pwrite, "write", fd, NULL, (int fd, const void* p, size_t n, off_t at), (fd, p, n, at))
CALL(ssize_t, pwrite64, "write", fd, NULL, (int fd, const void* p, size_t n, off64_t at), (fd, p, n, at))
CALL(ssize_t, pread, "pread", fd, NULL, (int fd, void* p, size_t n, off_t at), (fd, p, n, at))
CALL(ssize_t, pread64, "pread", fd, NULL, (int fd, void* p, size_t n, off64_t at), (fd, p, n, at))
CALL(int, fsync, "fsync", fd, NULL, (int fd), (fd))
CALL(int, fdatasync, "fsync", fd, NULL, (int fd), (fd))
CALL(int, ftruncate, "ftruncate", fd, NULL, (int fd, off_t size), (fd, size))
CALL(int, ftruncate64, "ftruncate", fd, NULL, (int fd, off64_t size), (fd, size))
CALL(int, rename, "rename", -1, from, (const char* from, const char* to), (from, to))
CALL(int, unlink, "unlink", -1, path, (const char* path), (path))

#define OPEN(name)                             \
  int name(const char* path, int flags, ...) { \
    va_list more;                              \
    va_start(more, flags);                     \
    const mode_t mode = va_arg(more, mode_t);  \
    va_end(more);                              \
    const int code = fails("open", -1, path);  \
    if (code) {                                \
      errno = code;                            \
      return -1;                               \
    }                                          \
    return REAL(name)(path, flags, mode);      \
  }

OPEN(open)
OPEN(open64)
