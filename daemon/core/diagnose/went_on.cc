#include "core/diagnose/went_on.h"

#include <algorithm>

namespace culprit::diagnose {
namespace {

// Ranks whose lines do not name them share a writer. After one rank stops, the others print at most the step
// that was under way.
constexpr int64_t kStepsOfOthers = 1;

}  // namespace

bool has_levels(const logs::JobLog& log) {
  return std::ranges::any_of(log.templates(), [](const auto& t) { return t.level >= logs::Level::kWarning; });
}

bool went_on_after(const logs::JobLog& log, const logs::RuleLine& line, bool levels) {
  if (line.death || line.kernel || line.event) return false;
  const int64_t own = log.iterations().iteration_of(line.own_step);
  const bool shared = !log.writers()[line.place.writer].rank;
  const int64_t others = shared ? kStepsOfOthers : 0;
  // Without a step before the line in its source, its place among the steps is unknown.
  if (own >= 0 && log.iterations().last_of(line.place.writer) > own + others) return true;
  if (!levels) return false;
  const logs::Level level = log.templates()[log.miner().resolve(line.cluster)].level;
  return level == logs::Level::kInfo || level == logs::Level::kDebug;
}

bool ends_by_exception(const logs::RuleLine* line) {
  return line->death && line->exception && line->service == logs::Service::kNone;
}

}  // namespace culprit::diagnose
