// The agent's choice among collectors: those of its list in turn while none answers, and the one that owns
// its jobs where collectors share them (peer::JobOwners). A value; time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/peer.h"

namespace culprit::forward {

class Route {
 public:
  // After this time an owner that could not be reached is tried again.
  static constexpr TimeNs kAwayNs = 60 * kNsPerSecond;

  // `to`: "HOST:PORT", at least one. `tls`: connections prove who answers; others go to loopback only.
  Route(std::vector<std::string> to, bool tls) : to_(std::move(to)), at_(to_.front()), tls_(tls) {}

  const std::string& at() const { return at_; }  // of the current or next connection
  // An attempt failed, or a connection was lost early: the next one goes to another collector of the list.
  void failed(TimeNs now);
  // The collector at at() says which of `jobs` others own. Returns the collector that owns most of them, if
  // it is another one. On a tie the agent stays. An answer of an earlier epoch than one before is ignored.
  std::optional<std::string> owner(const std::vector<std::string>& jobs,
                                   const std::vector<peer::JobOwner>& others, TimeNs now);
  void move(std::string to) { at_ = std::move(to); }

 private:
  struct Known {
    std::string address;
    uint64_t epoch = 0;
    TimeNs away_until_ns = 0;
  };
  bool may_follow(const std::string& to) const;

  const std::vector<std::string> to_;
  size_t next_ = 0;  // of to_: the last one tried
  std::string at_;
  const bool tls_;
  std::map<std::string, Known> known_;  // by running job
};

}  // namespace culprit::forward
