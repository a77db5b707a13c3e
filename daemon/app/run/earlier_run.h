// Whether a run in a folder is still active, judged from its files: locks of its members, and, for members of
// `culprit run --nodes`, their signs of life (agreement.h). Locks of another host may be invisible, as on a
// network file system without them; a sign of life says nothing about the seconds since. So a run has ended
// only if both agree. Times of files come from the file system, which is one clock for all hosts. Blocking;
// one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "app/run/held_folder.h"
#include "base/time.h"

namespace culprit::app {

// Whether a member of the run holds its lock; true also if the lock cannot be checked.
bool holds_lock(const HeldFolder& run);

// Watches a run whose members show life every few seconds. `run` is borrowed.
class EarlierRun {
 public:
  enum class State : uint8_t { kActive, kEnded, kUnclear };
  // A run without a sign of life for `silent` while it is watched has ended.
  EarlierRun(const HeldFolder& run, TimeNs silent) : run_(run), silent_(silent) {}
  // `now`: by the steady clock. Call about once a second until the state is clear. kActive also for a run
  // that no member has entered yet.
  State look(TimeNs now);

 private:
  using Sign = std::pair<int64_t, uint64_t>;  // time and inode of the newest sign of life
  Sign newest_sign() const;
  // Time since the newest sign; nothing: unknown.
  std::optional<TimeNs> age_of(const Sign& sign) const;

  const HeldFolder& run_;
  const TimeNs silent_;
  TimeNs since_ = kNoTime;
  Sign first_{};
};

}  // namespace culprit::app
