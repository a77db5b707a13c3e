// The Lease of the collectors of one Kubernetes cluster: renewed with each view, asked before each action. In
// observe mode nothing is written, so no lease is taken.
//
// Any thread. Blocking: renew().
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "app/config/config.h"
#include "app/daemon/recover/act_gate.h"
#include "base/clock.h"
#include "base/status.h"
#include "respond/executor.h"
#include "respond/kubernetes/lease.h"

namespace culprit::app {

class ClusterLease final : public ActGate {
 public:
  ClusterLease(respond::kubernetes::LeaseName name, respond::kubernetes::ApiCall call)
      : name_(name), lease_(std::move(name), std::move(call)) {}

  void set_mode(ActMode mode) { acts_ = mode != ActMode::kObserve; }
  // Takes or renews it. An error names the holder (kBusy), or why it could not be read.
  Status renew(respond::Pace& pace);
  // Whether an action may begin at `now` (monotonic).
  bool permits(TimeNs now) const { return !acts_ || now < held_until_ns_; }

  bool is_open() const override { return permits(steady_now()); }
  // The view of the scheduler says it: it renews the lease.
  std::optional<RecoveryTrouble> trouble() const override { return std::nullopt; }
  std::optional<uint64_t> epoch(const std::string&) const override {
    return is_open() ? std::optional<uint64_t>(0) : std::nullopt;
  }
  bool shares_jobs() const override { return false; }
  Answer reserve(const ActionOrder&, const Pause&) override {
    if (is_open()) return {};
    return {ActionState::kFailed, "this collector does not hold the Lease"};
  }

 private:
  const respond::kubernetes::LeaseName name_;
  std::mutex mutex_;
  respond::kubernetes::Lease lease_;  // under mutex_
  std::atomic<bool> acts_ = false;
  std::atomic<TimeNs> held_until_ns_ = kNoTime;
};

}  // namespace culprit::app
