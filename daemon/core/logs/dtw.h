// Dynamic time warping between sequences of symbols (Sakoe and Chiba 1978), cost 0 for equal symbols and 1
// for others, within a band of a tenth of the longer one. Runs of equal symbols are one symbol to the caller.
// Pure.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::logs {

// The distance divided by the longer length: 0 (alike) .. 1. Stops early and gives `give_up` where it can
// only be larger than that.
double dtw_distance(std::span<const uint32_t> a, std::span<const uint32_t> b, double give_up = 1.0);

}  // namespace culprit::logs
