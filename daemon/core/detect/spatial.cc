// Spatial: which hosts differ from their peers, and by which templates.
//
// Counts are Poisson-like, so they are compared as 2 sqrt(n + 3/8) (Anscombe 1948), whose spread is 1
// whatever the mean; a template's own spread over the hosts (1.4826 MAD) widens that where hosts differ
// anyway. With few hosts this robust z decides; from 16 hosts on an isolation forest over all templates
// together has the word beside it.
#include <algorithm>
#include <cmath>

#include "core/detect/analysis.h"
#include "core/detect/forest.h"

namespace culprit::detect {
namespace {

constexpr size_t kForestHosts = 16;  // L4 ran it from some ten nodes on; below it cannot isolate anything
constexpr double kIsolated = 0.6;    // Liu et al.: well above 0.5 is an anomaly
constexpr double kSpatialMax = 5.0;
constexpr double kMayIndicate = 0.3;  // a template's score from which an odd iteration is told
constexpr double kCompanyMax = 2.0;   // for templates that stand out on the same host

double stable(double count) { return 2 * std::sqrt(count + 0.375); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Column {
  size_t score = 0;       // index into Analysis::templates
  std::vector<double> z;  // by host
};

// Of a host, its ranks as against the usual number: more ranks write more lines.
std::vector<double> exposures(const View& view) {
  std::vector<double> ranks;
  for (const Unit& h : view.hosts) ranks.push_back(static_cast<double>(std::max<size_t>(1, h.ranks.size())));
  const double usual = median(ranks);
  for (double& r : ranks) r /= usual;
  return ranks;
}

Column column_of(const TemplateScore& s, size_t index, const std::vector<double>& exposure) {
  std::vector<double> y(exposure.size(), stable(0));
  for (const UnitCount& c : s.hosts) y[c.unit] = stable(static_cast<double>(c.count) / exposure[c.unit]);
  const double middle = median(y);
  std::vector<double> away;
  for (double v : y) away.push_back(std::abs(v - middle));
  const double spread = std::max(1.0, 1.4826 * median(away));
  Column out{index, {}};
  for (double v : y) out.z.push_back((v - middle) / spread);
  return out;
}

}  // namespace

void add_spatial(const View& view, Analysis& a) {
  if (view.hosts.size() < 3) return;
  std::vector<Column> columns;
  const std::vector<double> exposure = exposures(view);
  for (size_t i = 0; i < a.templates.size(); ++i) {
    if (a.templates[i].hosts.empty() || a.templates[i].role) continue;
    columns.push_back(column_of(a.templates[i], i, exposure));
  }
  if (columns.empty()) return;
  // The largest of so many standard normal values is expected there: only what is beyond counts.
  const double chance = std::sqrt(2 * std::log(static_cast<double>(columns.size() * view.hosts.size() + 1)));
  std::vector<std::vector<size_t>> on_host(view.hosts.size());
  std::vector<double> tops;
  for (const Column& c : columns) {
    const auto top = std::max_element(c.z.begin(), c.z.end());
    tops.push_back(*top);
    if (*top > chance) on_host[static_cast<size_t>(top - c.z.begin())].push_back(c.score);
  }
  // Hosts differ in harmless ways too: what stands out less than other templates do says little.
  std::vector<double> sorted = tops;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < columns.size(); ++i) {
    if (tops[i] <= chance) continue;
    const auto above =
        static_cast<double>(sorted.end() - std::lower_bound(sorted.begin(), sorted.end(), tops[i]));
    const double by_rank = std::log((static_cast<double>(columns.size()) + 1) / above);
    a.templates[columns[i].score].spatial = std::min({kSpatialMax, tops[i] - chance, by_rank});
  }
  // Several templates that single out the same host bear each other out.
  for (const std::vector<size_t>& list : on_host)
    for (size_t t : list)
      a.templates[t].spatial += std::min(kCompanyMax, std::log(static_cast<double>(list.size())));
  if (view.hosts.size() < kForestHosts) return;
  std::vector<std::vector<double>> rows(view.hosts.size());
  for (const Column& c : columns)
    for (size_t h = 0; h < rows.size(); ++h) rows[h].push_back(c.z[h]);
  const ForestResult forest = isolation_forest(rows, {}, kIsolated);
  for (size_t h = 0; h < rows.size(); ++h) {
    for (size_t i = 0; i < forest.attribution[h].size(); ++i) {
      if (columns[i].z[h] <= 1) continue;  // what it lacks is told by silence
      const double share = forest.attribution[h][i] * static_cast<double>(columns.size());
      TemplateScore& s = a.templates[columns[i].score];
      if (share > 1)
        s.spatial = std::max(s.spatial, std::min(1.0, std::log(share) * (forest.score[h] - 0.5) * 2));
    }
  }
}

// Whether an odd iteration has something to it: a new event that may indicate the failure, or none but in
// another order.
static bool tells(const View& view, const logs::OddIteration& odd, const std::vector<double>& score) {
  for (const uint32_t symbol : odd.fresh) {
    if (symbol >= view.log->miner().size()) continue;  // a progress line of another track
    if (score[view.log->miner().resolve(symbol)] >= kMayIndicate) return true;
  }
  return odd.fresh.empty();
}

void find_odd_iterations(const View& view, Analysis& a) {
  struct Sum {
    double sigma = 0;
    std::vector<uint32_t> hosts;
  };
  std::map<int64_t, Sum> by_iteration;
  // What is fresh in one iteration and comes again in others (an evaluation, a checkpoint) is the job's
  // custom.
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
    f.detector = "temporal";
    f.kind = FindingKind::kIteration;
    f.iteration = iteration;
    f.confidence = 1 - std::exp(-sum.sigma / 6);
    for (uint32_t h : sum.hosts) f.subjects.push_back(finding_about(view, h, f.detector, 0).subjects[0]);
    a.findings.push_back(std::move(f));
  }
}

}  // namespace culprit::detect
