// One collector of several acts: the one that holds a Lease of the cluster. Each write carries the version
// that was read, so of two only one succeeds. Another's lease counts as expired once it has not changed for
// its duration on this host's own clock: clocks of hosts differ.
//
// Blocking; one thread at a time. Call hold() every third of the duration; without an answer the lease counts
// as lost once its duration has passed since the last successful renewal.
#pragma once

#include <string>

#include "respond/kubernetes/api.h"
#include "respond/kubernetes/objects.h"

namespace culprit::respond::kubernetes {

struct LeaseName {
  std::string space = "culprit";  // namespace
  std::string name = "culprit-controller";
  std::string holder;  // unique among the collectors
  TimeNs duration_ns = 15 * kNsPerSecond;
};

class Lease {
 public:
  Lease(LeaseName name, ApiCall call) : name_(std::move(name)), call_(std::move(call)) {}

  struct State {
    bool held = false;
    std::string holder;   // as read
    std::string trouble;  // why it could not be read or renewed; empty: none
  };
  // Takes or renews the lease, if it is free, expired or ours.
  State hold(Pace& pace);

 private:
  std::string body(const Json* known, bool taken, TimeNs wall) const;
  State answered(const ApiAnswer& answer, Pace& pace, TimeNs asked);
  State troubled(std::string why, TimeNs now) const;

  const LeaseName name_;
  const ApiCall call_;
  TimeNs renewed_ns_ = kNoTime;  // monotonic, of our last renewal, when it was asked for
  std::string seen_;             // holder, renewal and version of another's lease
  TimeNs seen_since_ns_ = kNoTime;
};

}  // namespace culprit::respond::kubernetes
