// The gate of a collector that shares its jobs with others: a job is this collector's while it owns the job's
// partition (core/cluster/member.h), and each action is reserved in the database, with the partition's epoch,
// just before it is carried out (store/postgres/cluster_store.h).
//
// Any thread. Blocking: round() and give_back(), for some seconds at most; reserve(), for a minute.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/recover/act_gate.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/cluster/member.h"
#include "model/peer.h"
#include "store/postgres/cluster_store.h"

namespace culprit::app {

class PartitionGate final : public ActGate {
 public:
  explicit PartitionGate(const store::postgres::ClusterStoreOptions& options)
      : PartitionGate(options, std::make_unique<store::postgres::ClusterStore>(options), boot_now) {}
  // `now`: a clock that counts while the machine sleeps.
  PartitionGate(const store::postgres::ClusterStoreOptions& options,
                std::unique_ptr<store::postgres::ClusterStore> store, std::function<TimeNs()> now)
      : name_(options.name),
        address_(options.address),
        ledger_(std::make_shared<store::postgres::LedgerStore>(options.conninfo, options.name)),
        store_(std::move(store)),
        now_(std::move(now)) {}

  // ---- its service, one thread at a time

  // Begins a round if one is due; then call round().
  bool begins(bool may_take);
  void round(TimeNs wall);
  // No further rounds and actions; gives back what is held, unless an action is at work.
  Status give_back();

  struct State {
    ClusterView view;             // as last read
    std::vector<PartHold> held;   // by this member: owned or fenced
    std::vector<PartHold> owned;  // now
    bool is_fresh = false;        // the database answered lately
    std::string error;            // of the last round
    TimeNs error_since_ns = kNoTime, read_ns = kNoTime;
    uint64_t fenced = 0, reserved = 0;  // actions since the start
  };
  State state() const;
  // Those of `jobs` that other members own; none while the database does not answer. `id_of`: the scheduler's
  // id of a job.
  std::vector<peer::JobOwner> others_jobs(const std::vector<std::string>& jobs,
                                          const std::function<std::string(const std::string&)>& id_of) const;
  // The member that owns the partition of this scheduler's id, as last read; empty: none.
  std::string owner_name(const std::string& id) const;
  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  // What the rounds since the last call took and lost: sentences for the log.
  std::vector<std::string> drain_changes();

  // ---- ActGate

  bool is_open() const override;
  std::optional<RecoveryTrouble> trouble() const override;
  std::optional<uint64_t> epoch(const std::string& name) const override;
  bool shares_jobs() const override { return true; }
  std::shared_ptr<store::postgres::LedgerStore> ledger() const override { return ledger_; }
  void use_ledger(const std::string& id) override;
  // A database that restarts is awaited for a minute, as long as the partition stays this member's.
  Answer reserve(const ActionOrder& order, const Pause& pause) override;
  void finished() override;

 private:
  std::string owner_of(uint32_t part) const;  // a sentence; under mutex_
  Answer refused(const ActionOrder& order, uint32_t part);
  // Nothing: the database does not answer. `held`: the partition's epoch when the order came.
  std::optional<Answer> try_reserve(const ActionOrder& order, uint32_t part, std::optional<uint64_t> held,
                                    std::string& error);
  std::optional<uint64_t> held_epoch(uint32_t part) const;                 // owned or fenced
  void note_changes(const store::postgres::ClusterStore::Answer& answer);  // under mutex_

  const std::string name_, address_;
  const std::shared_ptr<store::postgres::LedgerStore> ledger_;
  const std::unique_ptr<store::postgres::ClusterStore> store_;
  const std::function<TimeNs()> now_;
  mutable std::mutex mutex_;  // of the rest; never held while the database is asked
  cluster::Member member_;
  cluster::Member::Work work_;
  State state_;
  std::vector<std::string> changes_;
  int at_work_ = 0;  // actions
  bool may_take_ = false, stopped_ = false;
  std::string own_ledger_;  // its id
};

}  // namespace culprit::app
