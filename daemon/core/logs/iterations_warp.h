// The distance of two iterations' sequences: what dtw_distance gives, made for the lengths that iterations.cc
// keeps. Each progress line asks it for ten pairs, which was nearly half of the time of a whole run. Pure,
// any thread.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::logs {

double warp_distance(std::span<const uint32_t> a, std::span<const uint32_t> b);

}  // namespace culprit::logs
