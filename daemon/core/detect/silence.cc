// Silence: hosts that stopped writing, or fell behind in iterations, before their peers.
//
// A host's silence is judged by its own rhythm: of n gaps the longest being G, the chance that the next is
// longer is 1/(n+1), and that it is k times longer falls off with k. Only what few hosts do is told: a job
// that ends or is cut off ends for all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr TimeNs kShortest =
    20 * kNsPerSecond;             // a job's last phases keep its hosts busy for different times
constexpr double kMuchLonger = 3;  // times its longest gap before
constexpr uint64_t kGaps = 8;      // a rhythm needs that many
constexpr double kFewHosts = 0.34;

struct SilentHost {
  uint32_t host = kNowhere;
  double weight = 0;
  TimeNs last_ns = kNoTime, silent_ns = 0;
};

TimeNs reference_end(const View& view) {
  std::vector<TimeNs> ends;
  for (const Unit& h : view.hosts)
    if (h.last_ns != kNoTime) ends.push_back(h.last_ns);
  if (ends.empty()) return kNoTime;
  const auto middle = ends.begin() + static_cast<long>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  return *middle;
}

}  // namespace

void find_silent(const View& view, Analysis& a) {
  // Of two that differ only the one that stopped together with the job's progress is odd.
  if (view.hosts.size() < (a.fate.progress_stopped ? 2 : 3)) return;
  const TimeNs end = reference_end(view);
  if (end == kNoTime) return;
  std::vector<SilentHost> found;
  for (uint32_t h = 0; h < view.hosts.size(); ++h) {
    const Unit& host = view.hosts[h];
    if (host.last_ns == kNoTime || host.rhythm.gaps < kGaps) continue;
    const TimeNs silent = end - host.last_ns;
    const double times = static_cast<double>(silent) /
                         static_cast<double>(std::max<TimeNs>(host.rhythm.longest_ns, kNsPerSecond));
    if (silent < std::max(kShortest, 2 * a.fate.step_ns) || times < kMuchLonger) continue;
    const double weight =
        std::min(3.0, std::log(times) * std::log1p(static_cast<double>(host.rhythm.gaps)) / 4);
    found.push_back({h, weight, host.last_ns, silent});
  }
  if (static_cast<double>(found.size()) > std::max(1.0, kFewHosts * static_cast<double>(view.hosts.size())))
    return;
  std::sort(found.begin(), found.end(),
            [](const SilentHost& x, const SilentHost& y) { return x.last_ns < y.last_ns; });
  for (size_t i = 0; i < found.size(); ++i) {
    const SilentHost& s = found[i];
    // The first to fall silent leads.
    Finding f = finding_about(view, s.host, "silence", s.weight / static_cast<double>(i + 1));
    f.first_ns = s.last_ns;
    f.last_ns = end;
    f.why.push_back(fmt::format("it fell silent {} before its peers", format_duration(s.silent_ns)));
    a.findings.push_back(std::move(f));
  }
}

}  // namespace culprit::detect
