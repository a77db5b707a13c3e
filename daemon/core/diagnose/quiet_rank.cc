#include "core/diagnose/quiet_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::diagnose {
namespace {

using detect::Unit;
using detect::View;

constexpr size_t kLeastPeers = 2;  // with two ranks, each accusation equals the other
constexpr size_t kQuoted = 4;      // lines of peers
// As for a host that stayed behind while its peers finished (core/detect/logs/hosts.cc).
constexpr double kStrength = 1.5;
// From silence alone: the rank is right more often than not; the reason of its silence is unknown.
constexpr double kConfidence = 0.6;

FindingSubject subject_of(const View& view, const Unit& rank) {
  FindingSubject out;
  out.rank = rank.ranks[0];
  out.strength = kStrength;
  if (!view.by_rank && rank.host != detect::kNowhere) out.host = view.hosts[rank.host].name;
  return out;
}

}  // namespace

std::optional<Finding> find_quiet_rank(const View& view, const RankReports& reports) {
  const logs::JobLog& log = *view.log;
  std::set<uint32_t> peers;
  TimeNs first = kNoTime, last = kNoTime;
  for (const logs::RuleLine* line : reports.of_peers) {
    const logs::WriterStats& writer = log.writers()[line->place.writer];
    if (writer.rank) peers.insert(*writer.rank);
    const TimeNs at = line->place.time_ns;
    if (at == kNoTime) continue;
    first = first == kNoTime ? at : std::min(first, at);
    last = std::max(last, at);
  }
  std::vector<const Unit*> quiet;
  for (const Unit& rank : view.ranks)
    if (!rank.ranks.empty() && !reports.any.contains(rank.ranks[0])) quiet.push_back(&rank);
  // All other ranks must report trouble: of two silent ranks, the launcher may have stopped one.
  if (quiet.size() != 1 || peers.size() < kLeastPeers || peers.size() + 1 < view.ranks.size()) return {};
  if (quiet[0]->last_ns != kNoTime && last != kNoTime && quiet[0]->last_ns > last)
    return {};  // the rank still writes
  if (first != kNoTime && reports.first_cause_ns != kNoTime && reports.first_cause_ns < first) return {};
  Finding f;
  f.kind = FindingKind::kFault;
  f.detector = DetectorKind::kSilence;
  f.general = true;
  f.confidence = kConfidence;
  f.symptom = reports.symptom;
  f.title = fmt::format("Rank {} stopped without a message: {} lost it or wait for it", quiet[0]->ranks[0],
                        counted(peers.size(), "peer"));
  f.why.push_back(fmt::format("{} report a lost or late peer, rank {} reports nothing",
                              counted(peers.size(), "rank"), quiet[0]->ranks[0]));
  f.remedy = "Look at this rank: the kernel's log of its host for a kill, its stack if it still runs.";
  f.action = ActionKind::kCheck;
  f.subjects.push_back(subject_of(view, *quiet[0]));
  for (const logs::RuleLine* line : reports.of_peers)
    if (f.evidence.size() < kQuoted) f.evidence.push_back(detect::evidence_of(log, *line));
  f.lines = reports.of_peers.size();
  f.first_ns = quiet[0]->last_ns;
  f.last_ns = last;
  const int64_t iteration = quiet[0]->last_iteration;
  if (iteration >= 0) f.iteration = iteration;
  return f;
}

}  // namespace culprit::diagnose
