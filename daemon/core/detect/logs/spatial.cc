// Spatial: which hosts differ from their peers, and by which templates.
//
// A robust z compares counts (core/detect/logs/contrast): a template's own spread over the hosts (1.4826 MAD)
// widens the limit if hosts differ anyway. With few hosts this z decides alone. From 16 hosts on, an
// isolation forest over all templates adds evidence. ranks.cc compares ranks with a known host in the same
// way. The lines of one rank may not stand out on its host.
#include <algorithm>
#include <cmath>

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/contrast.h"
#include "core/detect/logs/forest.h"

namespace culprit::detect {
namespace {

// L4 used it from about ten nodes on; with fewer hosts it isolates nothing.
constexpr size_t kForestHosts = 16;
constexpr size_t kForestCells = 8 << 20;  // hosts times templates: 64 MB
constexpr double kIsolated = 0.6;         // Liu et al.: well above 0.5 is an anomaly
constexpr double kSpatialMax = 5.0;
constexpr double kCompanyMax = 2.0;  // bonus for several templates that stand out on the same host

struct Column {
  TemplateScore* score = nullptr;
  Contrast contrast;
};

// Number of ranks of each host relative to the median: more ranks write more lines.
std::vector<double> exposures(const View& view) {
  std::vector<double> ranks;
  for (const Unit& h : view.hosts) ranks.push_back(static_cast<double>(std::max<size_t>(1, h.ranks.size())));
  std::vector<double> sorted = ranks;
  const auto middle = sorted.begin() + static_cast<long>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  for (double& r : ranks) r /= *middle;
  return ranks;
}

// Hosts also differ in harmless ways: a template that stands out less than others is weak evidence.
void add_outliers(std::vector<Column>& columns, size_t units) {
  const double chance = chance_of(columns.size() * units);
  std::vector<double> sorted;
  std::vector<std::vector<TemplateScore*>> on_host(units);
  for (const Column& c : columns) {
    sorted.push_back(c.contrast.top);
    if (c.contrast.top > chance && c.contrast.top_unit != kNowhere)
      on_host[c.contrast.top_unit].push_back(c.score);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const Column& c : columns) {
    const double top = c.contrast.top;
    if (top <= chance) continue;
    const auto above =
        static_cast<double>(sorted.end() - std::lower_bound(sorted.begin(), sorted.end(), top));
    const double by_rank = std::log((static_cast<double>(columns.size()) + 1) / above);
    c.score->spatial = std::min({kSpatialMax, top - chance, by_rank});
  }
  // Several templates that single out the same host confirm each other.
  for (const auto& list : on_host)
    for (TemplateScore* s : list)
      s->spatial += std::min(kCompanyMax, std::log(static_cast<double>(list.size())));
}

void add_isolated(std::vector<Column>& columns, size_t units) {
  // Over the limit, templates without outliers are skipped.
  const size_t most = std::max<size_t>(1, kForestCells / units);
  if (columns.size() > most) {
    std::stable_sort(columns.begin(), columns.end(),
                     [](const Column& x, const Column& y) { return x.contrast.top > y.contrast.top; });
    columns.resize(most);
  }
  std::vector<std::vector<double>> rows(units, std::vector<double>(columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& c = columns[i];
    for (std::vector<double>& row : rows) row[i] = c.contrast.absent;
    for (size_t k = 0; k < c.contrast.z.size(); ++k) rows[c.score->hosts[k].unit][i] = c.contrast.z[k];
  }
  const ForestResult forest = isolation_forest(rows, {}, kIsolated);
  for (size_t h = 0; h < units; ++h) {
    for (size_t i = 0; i < forest.attribution[h].size(); ++i) {
      if (rows[h][i] <= 1) continue;  // silence.cc reports missing lines
      const double share = forest.attribution[h][i] * static_cast<double>(columns.size());
      TemplateScore& s = *columns[i].score;
      if (share > 1)
        s.spatial = std::max(s.spatial, std::min(1.0, std::log(share) * (forest.score[h] - 0.5) * 2));
    }
  }
}

}  // namespace

void add_spatial(const View& view, Analysis& a) {
  if (view.hosts.size() < 3) return;
  std::vector<Column> columns;
  const std::vector<double> exposure = exposures(view);
  for (TemplateScore& s : a.templates)
    if (!s.hosts.empty() && !s.role) columns.push_back({&s, contrast(s.hosts, exposure)});
  if (columns.empty()) return;
  add_outliers(columns, view.hosts.size());
  if (view.hosts.size() >= kForestHosts) add_isolated(columns, view.hosts.size());
}

}  // namespace culprit::detect
