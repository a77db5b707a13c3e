#include "plughost/host/allocation.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CULPRIT_OWN_MALLOC
#endif

namespace culprit::plughost {
namespace {

thread_local bool in_plugin = false;
long first_failing = 0;  // 0: none
long allocations = 0;    // of the plugin's code, in the main thread

// Whether this allocation is to fail.
[[maybe_unused]] bool fails() {
  if (__builtin_expect(first_failing == 0 || !in_plugin, 1)) return false;
  return ++allocations >= first_failing;
}

}  // namespace

CodeOfPlugin arm_failing_allocations(const char* number) {
  if (!number) return nullptr;
  first_failing = std::strtol(number, nullptr, 10);
  return [](bool runs) {
    const bool before = in_plugin;
    in_plugin = runs;
    return before;
  };
}

}  // namespace culprit::plughost

#ifdef CULPRIT_OWN_MALLOC
// The C library's own names stay reachable; free() is not replaced.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);

void* malloc(size_t size) {
  if (!culprit::plughost::fails()) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

void* calloc(size_t count, size_t size) {
  if (!culprit::plughost::fails()) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

void* realloc(void* old, size_t size) {
  if (!culprit::plughost::fails()) return __libc_realloc(old, size);
  errno = ENOMEM;
  return nullptr;
}
}
#endif
