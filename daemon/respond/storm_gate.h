// Decides for one receiver which new issues are sent on their own. Beyond `most` within a minute a storm is
// on: further ones are held until no more than `most` came in the last minute, and are then released at most
// `most` a minute. Pure: time is an argument; a clock that is set back opens no gate early.
#pragma once

#include <cstddef>
#include <deque>

#include "base/time.h"

namespace culprit::respond {

class StormGate {
 public:
  static constexpr TimeNs kWithin = 60 * kNsPerSecond;
  explicit StormGate(size_t most) : most_(most) {}

  // A new issue came. True: it is sent now. `held`: whether others wait already.
  bool admit(TimeNs now, bool held);
  // How many of those that wait may be sent now; call sent() for each.
  size_t room(TimeNs now);
  void sent(TimeNs now) { sent_.push_back(now); }
  bool calm(TimeNs now);

 private:
  void forget_old(TimeNs now);

  size_t most_;
  std::deque<TimeNs> came_;  // the newest, at most one more than `most`
  std::deque<TimeNs> sent_;
};

}  // namespace culprit::respond
