// Named places where a test kills the process as `kill -9` would, to prove what survives. The main program
// arms one crash point before it starts threads; any thread may reach it. An unarmed crash point costs one
// load.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit {

// `what` is "NAME" or "NAME:N": the process kills itself at the N-th pass (from 1) of crash_point(NAME).
Status arm_crash_point(std::string_view what);

namespace detail {
extern bool crash_point_armed;
void pass_crash_point(std::string_view name);
}  // namespace detail

inline void crash_point(std::string_view name) {
  if (__builtin_expect(detail::crash_point_armed, 0)) detail::pass_crash_point(name);
}

}  // namespace culprit
