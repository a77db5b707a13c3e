// Temporal: iterations that differ from those before them. core/logs/iterations finds them per writer; this
// file keeps the significant ones.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/detect/logs/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kMayIndicate = 0.3;  // minimum template score for an odd iteration to be reported

// Whether an odd iteration is significant: it has a new event that may indicate the failure, or only a
// different order of events.
bool tells(const View& view, const logs::OddIteration& odd, const std::vector<double>& score) {
  for (const uint32_t symbol : odd.fresh) {
    if (symbol >= view.log->miner().size()) continue;  // a progress line of another track
    if (score[view.log->miner().resolve(symbol)] >= kMayIndicate) return true;
  }
  return odd.fresh.empty();
}

}  // namespace

void find_odd_iterations(const View& view, Analysis& a) {
  struct Sum {
    double sigma = 0;
    std::vector<uint32_t> hosts;
  };
  std::map<int64_t, Sum> by_iteration;
  // If the same new events recur in other iterations (an evaluation, a checkpoint), they are normal for this
  // job.
  std::map<std::vector<uint32_t>, std::vector<int64_t>> customs;
  const auto& odd = view.log->iterations().odd();
  for (const logs::OddIteration& o : odd) {
    auto& list = customs[o.fresh];
    if (list.empty() || list.back() != o.iteration) list.push_back(o.iteration);
  }
  std::vector<double> score(view.log->miner().size(), 0);
  for (const TemplateScore& t : a.templates) score[t.id] = t.score;
  for (const logs::OddIteration& o : odd) {
    if (!tells(view, o, score)) continue;
    auto& list = customs[o.fresh];
    std::sort(list.begin(), list.end());
    const size_t times = static_cast<size_t>(std::unique(list.begin(), list.end()) - list.begin());
    if (times > 2) continue;
    Sum& sum = by_iteration[o.iteration];
    sum.sigma = std::max(sum.sigma, o.sigma);
    const uint32_t host = view.host_of_writer[o.writer];
    if (host != kNowhere && std::find(sum.hosts.begin(), sum.hosts.end(), host) == sum.hosts.end())
      sum.hosts.push_back(host);
  }
  for (auto& [iteration, sum] : by_iteration) {
    std::sort(sum.hosts.begin(), sum.hosts.end());
    Finding f;
    f.detector = DetectorKind::kTemporal;
    f.kind = FindingKind::kIteration;
    f.iteration = iteration;
    f.confidence = 1 - std::exp(-sum.sigma / 6);
    for (uint32_t h : sum.hosts) f.subjects.push_back(finding_about(view, h, f.detector, 0).subjects[0]);
    a.findings.push_back(std::move(f));
  }
}

}  // namespace culprit::detect
