// Ranks that differ from all other ranks of the job; hosts are compared separately. Lines of only one process
// on a host point at its device or the process, not at the host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/contrast.h"

namespace culprit::detect {
namespace {

constexpr size_t kRanks = 4;         // with fewer ranks no outlier can be identified
constexpr double kRankWeight = 0.5;  // the host's own finding already counts these lines

struct OddRank {
  double score = 0;  // score of its best template
  std::vector<logs::ClusterId> templates;
};

// The only outlier, or kNowhere if there are several: then it is a role, or a fault of their host.
uint32_t only_one(const std::vector<UnitCount>& counts, const Contrast& c, double chance) {
  size_t beyond = 0;
  for (const double z : c.z) beyond += z > chance;
  return beyond == 1 && !counts.empty() && c.top > chance ? c.top_unit : kNowhere;
}

bool is_alone_on_its_host(const View& view, uint32_t rank) {
  const uint32_t host = view.ranks[rank].host;
  return host != kNowhere && view.hosts[host].ranks.size() < 2;
}

// Whether a rank prints for others: the first and the last rank of the job, and the first of each host.
bool is_speaker(const View& view, uint32_t rank) {
  if (rank == 0 || rank + 1 == view.ranks.size()) return true;
  const uint32_t host = view.ranks[rank].host;
  return host != kNowhere && !view.hosts[host].ranks.empty() &&
         view.hosts[host].ranks.front() == view.ranks[rank].ranks[0];
}

Finding finding_about_rank(const View& view, uint32_t rank, const OddRank& odd) {
  const Unit& unit = view.ranks[rank];
  Finding f;
  f.detector = DetectorKind::kSpatial;
  FindingSubject subject;
  if (unit.host != kNowhere) subject.host = view.hosts[unit.host].name;
  subject.rank = unit.ranks[0];
  if (!unit.devices.empty()) subject.device = unit.devices[0];
  subject.strength = kRankWeight * odd.score;
  f.subjects.push_back(std::move(subject));
  for (const logs::ClusterId id : odd.templates) {
    f.why.push_back(fmt::format("only {} of {} logged: {}", unit.name, counted(view.ranks.size(), "rank"),
                                shorten(view.log->miner().text(id), 160)));
    for (const logs::LogSample& s : view.log->templates()[id].samples)
      if (view.rank_of_writer[s.place.writer] == rank)
        f.evidence.push_back(evidence_at(*view.log, s.place, s.text));
  }
  for (const Evidence& e : f.evidence)
    if (e.time_ns != kNoTime && (f.first_ns == kNoTime || e.time_ns < f.first_ns)) f.first_ns = e.time_ns;
  return f;
}

}  // namespace

void find_odd_ranks(const View& view, Analysis& a) {
  if (view.by_rank || view.ranks.size() < kRanks) return;
  const std::vector<double> exposure(view.ranks.size(), 1.0);
  const double chance = chance_of(a.templates.size() * view.ranks.size());
  std::map<uint32_t, OddRank> found;
  for (const TemplateScore& s : a.templates) {
    if (s.score < kIndicating) break;  // sorted
    const logs::TemplateStats& t = view.log->templates()[s.id];
    if (s.role || t.shape.of_others) continue;
    const std::vector<UnitCount> counts = count_by(t, view.rank_of_writer);
    const uint32_t rank =
        counts.size() == 1 ? counts[0].unit : only_one(counts, contrast(counts, exposure), chance);
    if (rank == kNowhere || is_alone_on_its_host(view, rank)) continue;
    const bool proven = words_class(t) == 2 || (a.has_pool && s.cross_job > 0);
    // Plain lines of a speaker are no evidence against its rank.
    const bool plain = !s.accuses && words_class(t) == 0;
    if (!proven && (plain || is_speaker(view, rank))) continue;
    OddRank& odd = found[rank];
    odd.score = std::max(odd.score, s.score);
    if (odd.templates.size() < kTemplatesReported) odd.templates.push_back(s.id);
  }
  for (const auto& [rank, odd] : found) a.findings.push_back(finding_about_rank(view, rank, odd));
}

}  // namespace culprit::detect
