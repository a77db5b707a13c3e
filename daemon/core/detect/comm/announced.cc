#include "core/detect/comm/announced.h"

#include <algorithm>

namespace culprit::comm {
namespace {

// Delay between a line's writing and its reading: some tenths of a second.
constexpr TimeNs kLate = kNsPerSecond / 2;
// As in core/detect/logs/stall: a process that died in a phase never reports its end.
constexpr TimeNs kLongest = 3600 * kNsPerSecond;

}  // namespace

void Announced::add(uint32_t rank, const std::string& name, bool begins, TimeNs now) {
  if (now == kNoTime || (phases_.size() >= kRanks && !phases_.contains(rank))) return;
  std::deque<Phase>& phases = phases_[rank];
  if (begins) {
    phases.push_back({name, now - kLate, now + kLongest, true});
    if (phases.size() > kPhases) phases.pop_front();
    return;
  }
  const auto at =
      std::find_if(phases.rbegin(), phases.rend(), [&](const Phase& p) { return p.open && p.name == name; });
  if (at == phases.rend()) return;
  at->end = now;
  at->open = false;
}

bool Announced::covers(uint32_t rank, TimeNs from, TimeNs to) const {
  const auto at = phases_.find(rank);
  return at != phases_.end() && std::any_of(at->second.begin(), at->second.end(),
                                            [&](const Phase& p) { return p.begin < to && from < p.end; });
}

}  // namespace culprit::comm
