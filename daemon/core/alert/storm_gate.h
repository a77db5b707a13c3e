// Decides for one receiver which new issues are sent on their own. Beyond `most` within a minute a storm is
// on: further ones are held. Owners share what may be sent: the storm of one holds the issues of that owner,
// and another one with no more than its even share is heard at once. Held ones are released once no more than
// `most` came in the last minute, or no more than its share of their owner, and then so many a minute.
//
// Pure: time is an argument; a clock that is set back opens no gate early.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "base/time.h"

namespace culprit::alert {

class StormGate {
 public:
  static constexpr TimeNs kWithin = 60 * kNsPerSecond;
  explicit StormGate(size_t most) : most_(most) {}

  // A new issue of the owner came. True: it is sent now.
  bool admit(const std::string& owner, TimeNs now);
  // How many held ones of the owner may be sent now; call sent() for each.
  size_t room(const std::string& owner, TimeNs now);
  void sent(const std::string& owner, TimeNs now) { owners_[owner].sent.push_back(now); }
  // What waits: the count begins at 0 again, and each one is named.
  void forget_held();
  void hold(const std::string& owner) { ++owners_[owner].held; }

 private:
  struct Owner {
    std::deque<TimeNs> came;  // the newest, at most one more than `most`
    std::deque<TimeNs> sent;
    size_t held = 0;
  };
  struct Sum {
    size_t came = 0, sent = 0, held = 0, holders = 0;
  };
  void forget_old(TimeNs now);
  Sum sum() const;
  size_t share() const;

  size_t most_;
  std::map<std::string, Owner> owners_;  // with something in the last minute, or held
};

}  // namespace culprit::alert
