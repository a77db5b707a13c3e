// Short names for the columns of the tables. Included by the tables' own files only.
#pragma once

#include "sim/tables.h"

namespace culprit::sim::spell {

using enum Shape;
using enum Who;
constexpr Tone D = Tone::kDebug, I = Tone::kInfo, W = Tone::kWarning, E = Tone::kError;

}  // namespace culprit::sim::spell
