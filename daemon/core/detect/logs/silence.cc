// Silence: hosts and ranks that stopped writing before their peers.
//
// Each unit's own rhythm decides. After n gaps, the chance that the next gap exceeds the longest is 1/(n+1).
// The chance that it is k times longer decreases with k. Silence is evidence only if few units are silent:
// the end of a job or a cut-off log affects all units. Ranks are checked too, because a launcher may continue
// to write on a host whose ranks exited.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "core/detect/logs/analysis.h"

namespace culprit::detect {
namespace {

constexpr TimeNs kShortest =
    20 * kNsPerSecond;             // in the last phases of a job, hosts are busy for different times
constexpr double kMuchLonger = 3;  // times its longest earlier gap
constexpr uint64_t kGaps = 8;      // minimum number of gaps for a rhythm
constexpr double kFew = 0.34;      // largest share of silent units
// Iterations of peers after the last line of a unit that took part in them. A synchronous job cannot go on
// without one of its ranks, so the log ends there and not the unit; one or two steps may be under way. Some
// jobs are not synchronous: such a unit is suspect, but has no verdict.
constexpr int64_t kGoesOn = 5;
constexpr double kMayBeCut = 0.5;  // weight

struct Silent {
  uint32_t unit = kNowhere;
  double weight = 0;
  TimeNs last_ns = kNoTime, silent_ns = 0;
};

// The median of the units' last times.
TimeNs reference_end(const std::vector<Unit>& units) {
  std::vector<TimeNs> ends;
  for (const Unit& u : units)
    if (u.last_ns != kNoTime) ends.push_back(u.last_ns);
  if (ends.empty()) return kNoTime;
  const auto middle = ends.begin() + static_cast<long>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  return *middle;
}

// Whether most units that report iterations went on without this one, which reported them too.
bool goes_on_without(const std::vector<Unit>& units, const Unit& unit) {
  if (unit.last_iteration < 0) return false;
  size_t telling = 0, ahead = 0;
  for (const Unit& u : units) {
    if (&u == &unit || u.last_iteration < 0) continue;
    ++telling;
    ahead += u.last_iteration - unit.last_iteration >= kGoesOn;
  }
  return ahead * 2 > telling;
}

// In the order in which they fell silent; empty if more than kFew did.
std::vector<Silent> find_silent_units(const std::vector<Unit>& units, TimeNs step_ns) {
  std::vector<Silent> found;
  const TimeNs end = reference_end(units);
  if (end == kNoTime) return found;
  for (uint32_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    if (unit.last_ns == kNoTime || unit.rhythm.gaps < kGaps) continue;
    const TimeNs silent = end - unit.last_ns;
    const double times = static_cast<double>(silent) /
                         static_cast<double>(std::max<TimeNs>(unit.rhythm.longest_ns, kNsPerSecond));
    if (silent < std::max(kShortest, 2 * step_ns) || times < kMuchLonger) continue;
    const double weight =
        std::min(3.0, std::log(times) * std::log1p(static_cast<double>(unit.rhythm.gaps)) / 4);
    found.push_back({u, weight, unit.last_ns, silent});
  }
  if (static_cast<double>(found.size()) > std::max(1.0, kFew * static_cast<double>(units.size()))) return {};
  std::sort(found.begin(), found.end(),
            [](const Silent& x, const Silent& y) { return x.last_ns < y.last_ns; });
  return found;
}

// `order`: number of units that fell silent earlier. Earlier units get more weight.
Finding finding_of_silence(const View& view, uint32_t host, const Silent& silent, size_t order) {
  Finding f =
      finding_about(view, host, DetectorKind::kSilence, silent.weight / static_cast<double>(order + 1));
  f.first_ns = silent.last_ns;
  f.last_ns = silent.last_ns + silent.silent_ns;
  return f;
}

// Adds silent ranks whose host continues to write.
void add_silent_ranks(const View& view, const std::vector<bool>& host_silent, Analysis& a) {
  std::map<uint32_t, std::vector<Silent>> of_host;
  std::vector<uint32_t> order;
  const std::vector<Silent> found = find_silent_units(view.ranks, a.outcome.step_ns);
  std::map<uint32_t, size_t> silent_on;  // ranks, by host
  for (const Silent& s : found) ++silent_on[view.ranks[s.unit].host];
  for (const Silent& s : found) {
    const uint32_t host = view.ranks[s.unit].host;
    if (host == kNowhere || host_silent[host]) continue;
    // If all ranks of a host stop while its launcher writes on, its log is not cut.
    if (silent_on[host] < view.hosts[host].ranks.size() && goes_on_without(view.ranks, view.ranks[s.unit]))
      continue;
    if (of_host[host].empty()) order.push_back(host);
    of_host[host].push_back(s);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const std::vector<Silent>& ranks = of_host[order[i]];
    Finding f = finding_of_silence(view, order[i], ranks.front(), i);
    const size_t all = view.hosts[order[i]].ranks.size();
    const FindingSubject host{f.subjects[0].host, {}, {}, {}, 0};
    for (const Silent& s : ranks) {
      f.subjects.push_back(host);
      f.subjects.back().rank = view.ranks[s.unit].ranks[0];
    }
    f.why.push_back(fmt::format("{} of its {} fell silent {} before their peers", ranks.size(),
                                counted(all, "rank"), format_duration(ranks.front().silent_ns)));
    a.findings.push_back(std::move(f));
  }
}

}  // namespace

void find_silent(const View& view, Analysis& a) {
  std::vector<bool> host_silent(view.hosts.size(), false);
  // With two hosts, neither is an outlier, unless one stopped together with the job's progress.
  if (view.hosts.size() >= (a.outcome.progress_stopped ? 2u : 3u)) {
    const std::vector<Silent> found = find_silent_units(view.hosts, a.outcome.step_ns);
    for (size_t i = 0; i < found.size(); ++i) {
      host_silent[found[i].unit] = true;
      const std::string before = format_duration(found[i].silent_ns);
      if (goes_on_without(view.hosts, view.hosts[found[i].unit])) {
        Finding f = finding_about(view, found[i].unit, DetectorKind::kSpatial, kMayBeCut);
        f.first_ns = f.last_ns = found[i].last_ns;
        f.why.push_back(
            fmt::format("its log ends {} before the others, which went on: it may be cut", before));
        a.findings.push_back(std::move(f));
        continue;
      }
      Finding f = finding_of_silence(view, found[i].unit, found[i], i);
      f.why.push_back(fmt::format("it fell silent {} before its peers", before));
      a.findings.push_back(std::move(f));
    }
  }
  if (!view.by_rank && view.ranks.size() >= 4) add_silent_ranks(view, host_silent, a);
}

}  // namespace culprit::detect
