// Decides for one receiver which new issues are sent individually. More than `most` issues within a minute
// are a storm: further issues are held. Owners share the limit. One owner's storm holds only that owner's
// issues; another owner within its even share is sent at once. Held issues are released once the last minute
// had at most `most` issues, or at most the owner's share: at most `most` a minute, or that share.
//
// Owned by AlertBook; one thread. Pure: time is an argument; setting the clock back opens no gate early.
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

  // Registers a new issue of the owner. True: send it now.
  bool admit(const std::string& owner, TimeNs now);
  // Number of the owner's held issues that may be sent now; call sent() for each.
  size_t room(const std::string& owner, TimeNs now);
  void sent(const std::string& owner, TimeNs now) { owners_[owner].sent.push_back(now); }
  // Sets the held count of each owner to 0; call hold() for each issue that is still held.
  void forget_held();
  void hold(const std::string& owner) { ++owners_[owner].held; }

 private:
  struct Owner {
    std::deque<TimeNs> came;  // times of the newest issues, at most `most` + 1
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
  std::map<std::string, Owner> owners_;  // owners with recent or held issues
};

}  // namespace culprit::alert
