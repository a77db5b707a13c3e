// Cost of one step of a large job's metrics in the detector: bench_numerics [RANKS METRICS STEPS GROUPS]
// Prints the seconds per step on one core (ingesting and judging), and the bytes of memory per rank and
// metric.
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/detect/numerics/detector.h"

using namespace culprit;

namespace {

// Names as in a model of many layers; the first ones are equal on all ranks.
std::vector<std::string> names(size_t metrics) {
  std::vector<std::string> all = {"loss",       "grad_norm",   "grad_cos", "grad_norm_reduced",
                                  "param_norm", "update_norm", "lr",       "tokens"};
  const char* const parts[] = {"grad_norm", "q_norm", "k_norm", "attn_entropy", "act_max"};
  for (size_t layer = 0; all.size() < metrics; ++layer) {
    for (const char* part : parts) all.push_back(std::string(part) + "/layer." + std::to_string(layer));
  }
  all.resize(metrics);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t ranks = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10'000;
  const size_t metrics = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100;
  const size_t steps = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 40;
  const size_t groups = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 1;  // of peers
  const auto all = names(metrics);
  std::minstd_rand random(7);
  std::normal_distribution<double> normal(0, 0.1);
  std::vector<double> noise(100'003);
  for (double& value : noise) value = std::exp(normal(random));
  std::vector<MetricValue> values(all.size());
  const size_t before = mallinfo2().uordblks;
  numerics::Detector detector;
  double last = 0, worst = 0, total = 0;
  size_t at = 0;
  for (size_t step = 0; step < steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (size_t m = 0; m < all.size(); ++m) {
        const bool shared = m >= 3 && m < 8;
        const double scale = all[m] == "update_norm" ? 1e-4 : 1.0;  // of a stable training
        values[m] = {all[m], shared ? scale * (1.0 + static_cast<double>(step * m * groups + rank % groups))
                                    : noise[at++ % noise.size()]};
      }
      detector.add({.host = {},
                    .rank = static_cast<uint32_t>(rank),
                    .step = static_cast<int64_t>(step),
                    .time_ns = kNoTime,
                    .values = values,
                    .digests = {}});
    }
    last = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    total += last;
    worst = std::max(worst, last);
  }
  const size_t held = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  const auto begin = std::chrono::steady_clock::now();
  const auto reported = detector.findings();
  const double telling = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "ranks %zu metrics %zu: %.3f s a step on the average, %.3f s the last, %.3f s the slowest; "
      "%.0f bytes by rank and metric; reported in %.3f s, %zu faults\n",
      ranks, metrics, total / static_cast<double>(steps), last, worst,
      static_cast<double>(held) / static_cast<double>(ranks * metrics), telling, reported.faults.size());
  return reported.faults.empty() ? 0 : 1;
}
