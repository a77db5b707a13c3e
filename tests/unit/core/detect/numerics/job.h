// A job's metrics as in a sound training of data-parallel replicas, for tests to change in places. Norms and
// losses vary between ranks and steps; values that replicas share are equal.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/detect/numerics/detector.h"

namespace numbers {

using namespace culprit;
using numerics::Detector;
using numerics::NumericFindings;

struct Row {
  uint32_t rank = 0;
  int64_t step = 0;
  TimeNs time_ns = 0;
  std::map<std::string, double> values;
  std::map<std::string, uint64_t> digests;

  void give(Detector& detector) const {
    std::vector<MetricValue> v;
    for (const auto& [name, value] : values) v.push_back({name, value});
    std::vector<MetricDigest> d;
    for (const auto& [name, value] : digests) d.push_back({name, value});
    const std::string host = "node-" + std::to_string(rank / 2);
    detector.add({host, rank, step, time_ns, v, d});
  }
};

using Rows = std::vector<Row>;
using Change = std::function<void(Row&)>;

struct Job {
  uint32_t ranks = 4;
  int64_t steps = 100;
  int64_t first = 0;
  unsigned seed = 1;
  uint32_t stages = 1;  // of a pipeline: rank r is in stage r / (ranks / stages)
};

// Sums the gradients of a step from `begin` on.
inline void reduce(Rows& all, size_t begin, const Job& job) {
  const uint32_t peers = job.ranks / job.stages;
  for (uint32_t rank = 0; rank < job.ranks; rank += peers) {
    double sum = 0;
    for (uint32_t i = rank; i < rank + peers; ++i) {
      auto& values = all[begin + i].values;
      sum += values["grad_norm"] * values["grad_cos"];
    }
    for (uint32_t i = rank; i < rank + peers; ++i) all[begin + i].values["grad_norm_reduced"] = sum / peers;
  }
}

// `before`: changed before the reduction, so that the sum is right.
inline Rows rows(const Job& job, const Change& change = {}, bool before = false) {
  std::minstd_rand random(job.seed);
  std::normal_distribution<double> normal;
  const auto around = [&](double value, double share) { return value * std::exp(share * normal(random)); };
  const uint32_t peers = job.ranks / job.stages;
  Rows all;
  for (int64_t step = job.first; step < job.first + job.steps; ++step) {
    const auto at = static_cast<double>(step);
    const size_t begin = all.size();
    for (uint32_t rank = 0; rank < job.ranks; ++rank) {
      const uint32_t stage = rank / peers;
      Row row{.rank = rank, .step = step, .time_ns = 1'000'000'000 * (step + 1), .values = {}, .digests = {}};
      row.values = {{"loss", around(3 + 2 / (1 + at / 20), 0.03)},
                    {"grad_norm", around(2, 0.2)},
                    {"grad_cos", 0.5 + 0.05 * normal(random)},
                    {"param_norm", 40 + at / 7 + 100 * stage},
                    {"update_norm", 0.1 + 1e-5 * at},
                    {"lr", 1e-3 - 1e-6 * at},
                    {"tokens", 4096}};
      for (const char* part : {"grad_norm", "q_norm", "k_norm", "act_max"}) {
        for (uint32_t layer = 2 * stage; layer < 2 * stage + 2; ++layer) {
          row.values[std::string(part) + "/layer." + std::to_string(layer)] = around(1 + layer, 0.05);
        }
      }
      if (step % 10 == 0) row.digests["param"] = 77'000'000ull + static_cast<uint64_t>(step) * 31 + stage;
      all.push_back(std::move(row));
    }
    reduce(all, begin, job);
  }
  if (change) {
    for (Row& row : all) change(row);
    for (size_t begin = 0; before && begin < all.size(); begin += job.ranks) reduce(all, begin, job);
  }
  return all;
}

inline NumericFindings findings_of(const Rows& all) {
  Detector detector;
  for (const Row& row : all) row.give(detector);
  return detector.findings();
}

}  // namespace numbers
