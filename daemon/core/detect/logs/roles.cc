// Roles: a line that one process prints on behalf of all is no sign of a fault. The first rank of a job
// prints arguments, evaluations and progress bars. The last pipeline stage prints the loss. One process per
// host prints for its host.
//
// A template on few units accuses them if it has words of failure, or if the pool has the same roles but not
// the template. Plain lines of a speaker do not accuse it. Speakers are the units of the first and the last
// rank, and units that alone wrote several templates since the job's beginning. Plain lines of another unit
// are weaker than words of failure; the correlator also requires an abnormal end.
#include <algorithm>

#include "core/detect/logs/analysis.h"

namespace culprit::detect {
namespace {

// Templates of one unit alone since the beginning; a fault on one host adds one or two.
constexpr double kOwnTemplates = 3;

bool is_alone(const TemplateScore& s) { return s.hosts.size() == 1; }

// Whether a template began early: in the first fifth of the iterations, or without iterations in the first
// half of its file.
bool from_beginning(const View& view, const TemplateScore& s) {
  const logs::JobLog& log = *view.log;
  const auto& track = log.iterations().track();
  if (!track.empty() && s.first_ns != kNoTime)
    return s.iteration < track.front().iteration + log.iterations().span() / 5;
  const logs::LogPlace& place = log.templates()[s.id].places.front();
  return place.line * 2 < log.lines_of(place.source);
}

// The units of the first and the last rank; without known ranks, the first and the last unit.
std::vector<bool> outer_units(const View& view) {
  std::vector<bool> out(view.hosts.size(), false);
  if (out.empty()) return out;
  uint32_t first = 0, last = static_cast<uint32_t>(out.size() - 1);
  if (!view.by_rank && !view.ranks.empty()) {
    if (view.ranks.front().host != kNowhere) first = view.ranks.front().host;
    if (view.ranks.back().host != kNowhere) last = view.ranks.back().host;
  }
  out[first] = out[last] = true;
  return out;
}

std::vector<bool> find_speakers(const View& view, const Analysis& a) {
  std::vector<bool> speakers = outer_units(view);
  std::vector<double> own(view.hosts.size(), 0);
  for (const TemplateScore& s : a.templates) {
    const bool plain = words_class(view.log->templates()[s.id]) < 2;
    if (plain && is_alone(s) && from_beginning(view, s)) ++own[s.hosts[0].unit];
  }
  for (size_t u = 0; u < own.size(); ++u) speakers[u] = speakers[u] || own[u] >= kOwnTemplates;
  return speakers;
}

}  // namespace

void find_accusing(const View& view, Analysis& a) {
  const std::vector<bool> speakers = find_speakers(view, a);
  for (TemplateScore& s : a.templates) {
    const bool spoken =
        std::any_of(s.hosts.begin(), s.hosts.end(), [&](const UnitCount& c) { return speakers[c.unit]; });
    // The pool lacks the template, or has it far less often on any host. Arguments and paths differ between
    // runs, so a speaker's template counts only if it began at the end.
    if (a.has_pool && s.cross_job > 0 && (s.late || !spoken)) continue;
    const logs::TemplateStats& t = view.log->templates()[s.id];
    // If the job trained after a line at launch, the line is normal, even if it reads like an error.
    const bool survived = s.role && view.log->iterations().span() > 0 && t.known < logs::Meaning::kFault;
    if (words_class(t) == 2 && !survived) continue;
    s.accuses = !spoken;
  }
}

}  // namespace culprit::detect
