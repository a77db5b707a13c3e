// Isolation Forest (Liu, Ting, Zhou, ICDM 2008): how easily random cuts isolate a point. Deterministic for a
// given seed. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::detect {

struct ForestOptions {
  uint32_t trees = 100;   // as in the paper
  uint32_t sample = 256;  // as in the paper
  uint64_t seed = 1;
};

struct ForestResult {
  std::vector<double> score;                     // by row: 0.5 ordinary, near 1 isolated
  std::vector<std::vector<double>> attribution;  // by row and column: the column's share in isolating the row
};

// `rows` are points of equal length. `attribution` is filled for rows whose score is at least
// `attribute_above`.
ForestResult isolation_forest(const std::vector<std::vector<double>>& rows, const ForestOptions& options,
                              double attribute_above);

}  // namespace culprit::detect
