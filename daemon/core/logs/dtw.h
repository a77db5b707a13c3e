// Dynamic time warping between sequences of symbols (Sakoe and Chiba 1978). Cost 0 for equal symbols and 1
// for others, within a band of a tenth of the longer sequence. Callers pass a run of equal symbols as one
// symbol. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::logs {

// The distance divided by the longer length: 0 (equal) to 1. Stops early and returns `give_up` if the
// distance must be larger.
double dtw_distance(std::span<const uint32_t> a, std::span<const uint32_t> b, double give_up = 1.0);

}  // namespace culprit::logs
