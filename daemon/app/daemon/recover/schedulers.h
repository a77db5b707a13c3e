// The parts of respond/ that the configuration selects for the controller.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/daemon/recover/act_gate.h"
#include "base/status.h"
#include "model/recovery_ledger.h"
#include "respond/executor.h"
#include "respond/scheduler_view.h"

namespace culprit::app {

struct SchedulerParts {
  std::unique_ptr<respond::Backend> backend;  // null: nothing is carried out
  // Blocking, one thread at a time; empty: no view.
  std::function<Result<respond::SchedulerView>()> look = {};
  TimeNs look_every_ns = 2 * kNsPerSecond;
  // The jobs of the collector itself are the view: an own launcher shows none. `look` is empty.
  bool own_jobs = false;
  // An attempt of the ledger, before the first look. May be empty.
  std::function<void(const AttemptRecord& row)> load = {};
  // Whether this collector may act. Null: it may.
  std::shared_ptr<ActGate> gate = nullptr;
  // Whether the ledger can be written, so that the view may keep the pool of spares; any thread. May be null.
  std::shared_ptr<std::atomic<bool>> may_keep_pool = {};
  // At the start and after each reload; any thread. May be empty.
  std::function<void(const Config::Act& act)> reload = {};
  // In observe mode: asks the scheduler for the same and stores nothing. Null: the scheduler cannot.
  std::unique_ptr<respond::Backend> rehearsal = nullptr;
  Status sound = {};  // an error: the configuration selects what cannot work
};
// `gate`: of a collector that shares its jobs with others; null: it does not.
SchedulerParts scheduler_parts(const Config& config, std::shared_ptr<ActGate> gate = nullptr);

// Asks the gate just before each order. `gate` null: the same backend.
std::unique_ptr<respond::Backend> gated(std::unique_ptr<respond::Backend> backend,
                                        std::shared_ptr<ActGate> gate);

// A shell command that shows why the scheduler gives no view.
std::string scheduler_remedy(const Config& config);

// The scheduler's id, or one of a job's other names there, by culprit's id of a job; empty: the scheduler has
// no such id. Slurm: digits. Kubernetes: "NAMESPACE_NAME" is "NAMESPACE/NAME"; "pod-UID" stays. Own
// launchers: the id itself.
std::string scheduled_id(Scheduler scheduler, const std::string& job);

}  // namespace culprit::app
