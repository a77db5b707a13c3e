#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace culprit {
void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "culprit: internal error: %s is false at %s:%d\n", expression, file, line);
  std::abort();
}
}  // namespace culprit
