// The operation in which ranks wait for the accused ranks, according to the dumps. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/detect/flight/rules.h"

namespace culprit::flight {

struct AwaitedCall {
  std::string op;
  int64_t seq = -1;
  std::string team;  // its description, else its name
};

// Prefers an operation that the accused ranks have not entered, then the one with the most waiting ranks.
// Empty: no rank waits in a collective.
std::optional<AwaitedCall> awaited_call(const FlightView& view, const FlightAccusations& accused);

}  // namespace culprit::flight
