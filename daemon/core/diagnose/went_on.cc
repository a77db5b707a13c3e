#include "core/diagnose/went_on.h"

namespace culprit::diagnose {

bool went_on_after(const logs::JobLog& log, const logs::RuleLine& line) {
  if (line.death || line.kernel || line.event) return false;
  const int64_t own = log.iterations().iteration_of(line.own_step);
  const bool comparable = own >= 0 || line.own_step.iteration < 0;
  if (comparable && log.iterations().last_of(line.place.writer) > own) return true;
  const logs::Level level = log.templates()[log.miner().resolve(line.cluster)].level;
  return level == logs::Level::kInfo || level == logs::Level::kDebug;
}

bool ends_by_exception(const logs::RuleLine* line) {
  return line->death && line->exception && line->service == logs::Service::kNone;
}

}  // namespace culprit::diagnose
