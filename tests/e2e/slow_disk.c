/* A slow disk: writes to files below SLOW_DISK take as long as at SLOW_DISK_RATE bytes a second, and each
 * sync SLOW_DISK_SYNC_US more. Preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_slow(int fd) {
  const char* folder = getenv("SLOW_DISK");
  char link[64], path[4096];
  if (!folder) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

static unsigned long number(const char* name) {
  const char* text = getenv(name);
  return text ? strtoul(text, NULL, 10) : 0;
}

ssize_t write(int fd, const void* buffer, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "write");
  const ssize_t n = real(fd, buffer, size);
  const unsigned long rate = number("SLOW_DISK_RATE");
  if (n > 0 && rate > 0 && is_slow(fd)) usleep((useconds_t)((double)n * 1e6 / (double)rate));
  return n;
}

static int slow_sync(const char* name, int fd) {
  int (*real)(int);
  *(void**)&real = dlsym(RTLD_NEXT, name);
  if (is_slow(fd)) usleep((useconds_t)number("SLOW_DISK_SYNC_US"));
  return real(fd);
}

int fsync(int fd) { return slow_sync("fsync", fd); }
int fdatasync(int fd) { return slow_sync("fdatasync", fd); }
