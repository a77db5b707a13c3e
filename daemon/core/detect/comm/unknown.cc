#include "core/detect/comm/unknown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// Ratio of the median step time to the best, above which the job lost time.
constexpr double kBelowBest = 1.05;
// The first and last stage also have an embedding or a head, up to half of their work. Middle stages have
// equal work.
constexpr double kEndStage = 1.6, kMiddleStage = 1.2;
constexpr double kUnknownWorth = 0.05;  // share of a step
constexpr size_t kStepsLeast = 4;       // minimum number of steps for a comparison

// The ranks of one pipeline stage, over all steps.
struct Stage {
  std::vector<float> self;  // self time, ms
  std::vector<uint32_t> hosts;
  uint32_t first = 0, last = 0;  // ranks
};

std::string slower_than_best(const std::deque<StepResult>& steps) {
  std::vector<double> times;
  for (const StepResult& s : steps) times.push_back(s.step_ms);
  const double best = quantile(times, 0.1), middle = lower_median(times);
  if (middle <= kBelowBest * best) return "";
  return fmt::format(
      "why steps take {:.3g} ms where the best take {:.3g} ms: no rank, host or link stands out, and what "
      "slows all ranks alike shows only in comparison with the trace of a fast run",
      middle, best);
}

std::string slow_stage(const Cluster& cluster, const std::deque<StepResult>& steps) {
  std::map<uint32_t, Stage> stages;
  std::vector<double> times;
  for (const StepResult& s : steps) {
    times.push_back(s.step_ms);
    for (const RankStep& r : s.ranks) {
      Stage& stage = stages[cluster.stage(r.rank)];
      const uint32_t rank = cluster.ranks()[r.rank].rank;
      if (stage.self.empty()) stage.first = stage.last = rank;
      stage.first = std::min(stage.first, rank);
      stage.last = std::max(stage.last, rank);
      stage.self.push_back(r.self);
      const uint32_t host = cluster.ranks()[r.rank].host;
      if (std::find(stage.hosts.begin(), stage.hosts.end(), host) == stage.hosts.end())
        stage.hosts.push_back(host);
    }
  }
  if (stages.size() < 3) return "";
  std::vector<float> all;
  for (auto& [number, stage] : stages) all.push_back(lower_median(stage.self));
  std::vector<float> sorted = all;
  const float usual = lower_median(sorted);
  const auto worst = std::max_element(all.begin(), all.end());
  const auto at = std::next(stages.begin(), worst - all.begin());
  const bool end = at == stages.begin() || std::next(at) == stages.end();
  if (*worst < (end ? kEndStage : kMiddleStage) * usual ||
      *worst - usual < kUnknownWorth * lower_median(times))
    return "";
  const Stage& stage = at->second;
  const bool alone = stage.hosts.size() == 1 && stage.hosts[0] != kNone && cluster.hosts().size() > 1;
  return fmt::format(
      "why ranks {} to {}, a stage of the pipeline, work {:.2f} times as long as the other stages: {}",
      stage.first, stage.last, *worst / usual,
      alone
          ? fmt::format("all of them run on {}, so that its share of the layers and a slow host look alike; "
                        "run the stage on another host",
                        cluster.hosts()[stage.hosts[0]])
          : "its share of the layers may be larger by design");
}

// A group whose ranks are all slower in most steps: its stage may have more work, or its hosts may be slow.
std::string slow_group(const Cluster& cluster, const std::deque<StepResult>& steps) {
  std::map<uint32_t, std::vector<float>> ratios;
  for (const StepResult& s : steps)
    if (s.slow_group != kNone) ratios[s.slow_group].push_back(s.slow_group_ratio);
  for (auto& [comm, list] : ratios) {
    const float ratio = lower_median(list);
    if (2 * list.size() < steps.size() || ratio < kMiddleStage) continue;
    std::vector<uint32_t> ranks;
    for (const uint32_t r : cluster.comms()[comm].members) ranks.push_back(cluster.ranks()[r].rank);
    return fmt::format(
        "why {} ranks, {} to {}, work {:.2f} times as long as others with the same operations: all of their "
        "group do, so a larger share of the model and slow hosts look alike",
        ranks.size(), *std::ranges::min_element(ranks), *std::ranges::max_element(ranks), ratio);
  }
  return "";
}

}  // namespace

std::vector<std::string> find_unknowns(const Cluster& cluster, const std::deque<StepResult>& steps) {
  std::vector<std::string> out;
  if (steps.size() < kStepsLeast) return out;
  for (const std::string& sentence :
       {slower_than_best(steps), slow_stage(cluster, steps), slow_group(cluster, steps)})
    if (!sentence.empty()) out.push_back(sentence);
  return out;
}

}  // namespace culprit::comm
