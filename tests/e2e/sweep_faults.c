/* A host with a fault, for `culprit sweep`: of large receives one in SWEEP_FLIP has a bit changed, and each
 * waits SWEEP_PAUSE_US, as on a slow link. Preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kLarge = 16384 };

static unsigned number(const char* name) {
  const char* text = getenv(name);
  return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

ssize_t recv(int fd, void* buffer, size_t size, int flags) {
  static ssize_t (*real)(int, void*, size_t, int);
  static unsigned flip, pause_us, count;
  if (!real) {
    *(void**)&real = dlsym(RTLD_NEXT, "recv");
    flip = number("SWEEP_FLIP");
    pause_us = number("SWEEP_PAUSE_US");
  }
  if (size > kLarge && pause_us > 0) usleep(pause_us);
  const ssize_t n = real(fd, buffer, size, flags);
  if (n > kLarge / 4 && flip > 0 && ++count % flip == 0) ((char*)buffer)[n / 2] ^= 4;
  return n;
}

/* As compiled with _FORTIFY_SOURCE. */
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags);
ssize_t __recv_chk(int fd, void* buffer, size_t size, size_t room, int flags) {
  (void)room;
  return recv(fd, buffer, size, flags);
}
