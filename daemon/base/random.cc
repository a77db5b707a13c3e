#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace culprit {

bool fill_random(void* out, size_t size) {
  char* at = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t n = ::getrandom(at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

uint64_t random_number() {
  uint64_t out = 0;
  while (out == 0) CULPRIT_CHECK(fill_random(&out, sizeof out));
  return out;
}

double random_share() { return static_cast<double>(random_number() >> 32) / 2147483648.0 - 1; }

}  // namespace culprit
