// Isolation Forest (Liu, Ting, Zhou, ICDM 2008): how easily a point is told apart by random cuts.
// Deterministic for a seed. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::detect {

struct ForestOptions {
  uint32_t trees = 100;   // the paper's
  uint32_t sample = 256;  // the paper's
  uint64_t seed = 1;
};

struct ForestResult {
  std::vector<double> score;  // by row: 0.5 ordinary, towards 1 isolated
  std::vector<std::vector<double>>
      attribution;  // by row and column: share of its isolation that the column gave
};

// `rows` are points of equal length. Attribution is filled for rows whose score is at least
// `attribute_above`.
ForestResult isolation_forest(const std::vector<std::vector<double>>& rows, const ForestOptions& options,
                              double attribute_above);

}  // namespace culprit::detect
