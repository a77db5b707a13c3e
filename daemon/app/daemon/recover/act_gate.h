// Whether this collector may act. Of several collectors one acts for a job. One of two sources names it:
// a Lease of Kubernetes (cluster_lease.h: one collector for all jobs), or partitions of a database
// (partition_gate.h: a collector for each job).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/daemon/recover/recovery_trouble.h"
#include "base/clock.h"
#include "model/recovery.h"
#include "store/postgres/ledger_store.h"

namespace culprit::app {

// Any thread. Borrowed by backends, whose threads may outlive the service: hold it by shared_ptr.
class ActGate {
 public:
  virtual ~ActGate() = default;

  // Whether anything may be decided now: this collector knows what is its own.
  virtual bool is_open() const = 0;
  // While it is not open, or if it needs a person.
  virtual std::optional<RecoveryTrouble> trouble() const = 0;
  // By the scheduler's id of a job, or a host's name for what is about no job. Nothing: another collector, or
  // none, acts for it now. The number grows with each owner.
  virtual std::optional<uint64_t> epoch(const std::string& name) const = 0;
  // Where the jobs are this collector's partly. Without: all, or none.
  virtual bool shares_jobs() const = 0;
  // The ledger of all members; null: there is none.
  virtual std::shared_ptr<store::postgres::LedgerStore> ledger() const { return nullptr; }

  // The id of the controller's own ledger, before the first order.
  virtual void use_ledger(const std::string& /*id*/) {}

  struct Answer {
    ActionState state = ActionState::kReserved;  // kReserved: carry it out; else the order's result
    std::string detail;                          // one sentence without a full stop
  };
  // Just before an order is carried out. Each call may block for some seconds; between two tries at a source
  // that does not answer it calls `pause`, which returns false when the daemon ends.
  using Pause = std::function<bool(TimeNs)>;
  virtual Answer reserve(const ActionOrder& order, const Pause& pause) = 0;
  // After an order that reserve() permitted.
  virtual void finished() {}
};

// Whether this collector acts for a job, by the scheduler's id, or for a host. `gate` null: for each.
inline bool acts_for(const ActGate* gate, const std::string& name) {
  return gate == nullptr || !gate->shares_jobs() || gate->epoch(name).has_value();
}

}  // namespace culprit::app
