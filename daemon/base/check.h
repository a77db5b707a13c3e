// Assertions on our own logic, never on input. CULPRIT_CHECK is on in production, CULPRIT_DCHECK in debug
// builds.
#pragma once

namespace culprit {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}

#define CULPRIT_CHECK(condition) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : ::culprit::check_failed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define CULPRIT_DCHECK(condition) ((void)0)
#else
#define CULPRIT_DCHECK(condition) CULPRIT_CHECK(condition)
#endif
