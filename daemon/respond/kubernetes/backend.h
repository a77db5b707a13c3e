// Isolates and returns nodes, ends and follows the pods of jobs, at a Kubernetes API server; least rights are
// in packaging/kubernetes/controller.yaml.
//
// Culprit owns one taint key, one condition and its events, and nothing else of a node. The API server
// replaces the whole list of taints, so each write carries all that are there and the version that was read;
// a conflict reads again. A cordon is one bit without an owner: never written. Workload objects are never
// written: their controllers start pods again, away from tainted nodes.
//
//   kIsolate, kReturn of a GPU: a DeviceTaintRule `culprit-DECISION`, where the server has them and a driver
//   publishes the device; otherwise kFailed, and the caller may isolate the host.
//   kIsolate, kReturn: taint `culprit.dev/isolated=DECISION`, condition CulpritFault, an event.
//   kEndTasks: deletes the pods of the job's attempt, each by its UID. For a plain Job all of them: survivors
//   would wait at the old rendezvous. A JobSet restarts as a whole if its agents end the tasks instead.
//   kRunAgain: checks that each excluded node is closed to the job, deletes pods that were made there before
//   it was, and waits until the pods that the workload's controller starts run elsewhere. kVerify: reads
//   where they run.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "respond/executor.h"
#include "respond/kubernetes/api.h"

namespace culprit::respond::kubernetes {

class StandbyPool;

inline constexpr std::string_view kTaintKey = "culprit.dev/isolated";
inline constexpr std::string_view kConditionType = "CulpritFault";
inline constexpr std::string_view kReturnedReason = "Returned";  // of the condition, after a return

struct KubernetesOptions {
  ApiCall call;
  bool no_execute = false;  // the taint evicts all pods that do not tolerate it, also those of other jobs
  bool observe = false;     // ?dryRun=All: the server answers as if, and stores nothing
  TimeNs start_ns = 10 * kNsPerSecond;  // until new pods run, before the job is reported as pending
  TimeNs round_ns = kNsPerSecond / 4;
  std::string host;                          // of this daemon, in events
  std::shared_ptr<StandbyPool> spares = {};  // null: pods that find no node wait
  TimeNs next_spare_ns = 3 * kNsPerSecond;   // pods that still wait get the next one
};

class KubernetesBackend final : public Backend {
 public:
  explicit KubernetesBackend(KubernetesOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "kubernetes"; }
  bool can(OrderKind) const override { return true; }
  ActionResult carry_out(const ActionOrder& order, Pace& pace) const override;

 private:
  const KubernetesOptions options_;
};

}  // namespace culprit::respond::kubernetes
