// Short names for the columns of the tables. Include only in the files of the tables.
#pragma once

#include "sim/tables.h"

namespace culprit::sim::spell {

using enum Shape;
using enum Who;
constexpr Scope kHostOnly = Scope::kHost, kEverywhere = Scope::kEverywhere;
constexpr Tone D = Tone::kDebug, I = Tone::kInfo, W = Tone::kWarning, E = Tone::kError;

}  // namespace culprit::sim::spell
