// The tables that several collectors share in PostgreSQL (docs/formats.md, section 14): members, partitions
// with their owner, epoch and the end of the lease, and the actions that were reserved. Only the
// database's clock counts. Each statement is a transaction of its own; there are no session locks, prepared
// statements with names or notifications, so a pooler may be between.
//
// Any thread; calls wait for each other, and each ends within its time limit. Only round() connects: other
// calls fail at once without a connection.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/cluster.h"
#include "store/postgres/libpq.h"

namespace culprit::store::postgres {

struct ClusterStoreOptions {
  std::string conninfo;
  std::string name, address;  // of this member
  TimeNs lease_ns = 15 * kNsPerSecond;
  TimeNs round_ns = 4 * kNsPerSecond;   // limit of a round, below the time between two
  TimeNs action_ns = 3 * kNsPerSecond;  // limit of another call
  TimeNs left_ns = 10 * kNsPerSecond;   // of the leases that are given back: a restart keeps them
  std::string http = {};                // of this member
};

// An action, before it is carried out.
struct ReservedAction {
  std::string what;  // the same action of any member has the same: kind, target, job and attempt
  std::string op, job, kind, target, decision;
  PartHold with;            // the partition of the action, and this member's epoch of it
  std::string undoes;       // op of an isolation that this action returns; it needs no partition
  bool continues = false;   // what another member with this op began, and left half done
  std::string ledger = {};  // id of this member's ledger: what a lost one knew, it does not know
};

class ClusterStore {
 public:
  explicit ClusterStore(ClusterStoreOptions options) : options_(std::move(options)) {}
  virtual ~ClusterStore() = default;  // a simulation has tables of its own

  struct Asked {
    bool adopt = false;
    std::vector<PartHold> renew;
    bool take = false;
    std::optional<PartHold> give = {};
    bool may_take = true;  // for other members: this one takes its share
  };
  struct Answer {
    std::vector<PartHold> adopted;
    std::vector<uint32_t> renewed;
    std::optional<PartHold> taken;
    ClusterView view;
  };
  // Connects and makes the tables if necessary; adopts, renews, gives and takes, in this order.
  virtual Result<Answer> round(const Asked& asked);
  virtual Status give_back(const std::vector<PartHold>& holds);

  enum class Reserved : uint8_t {
    kYes,
    kFenced,   // no row: the partition has another owner or epoch
    kByOther,  // another member reserved the same action
  };
  struct Reservation {
    Reserved reserved = Reserved::kFenced;
    std::string by;  // kByOther: name and epoch of the member
  };
  virtual Result<Reservation> reserve(const ReservedAction& action);

 private:
  Result<Rows> run(const std::string& sql, std::vector<std::string> values);
  Status connect();
  Result<std::vector<PartHold>> holds_of(const std::string& sql, std::vector<std::string> values);
  Status renew(const std::vector<PartHold>& holds, Answer& out);
  Status look(ClusterView& out);
  std::string lease() const;

  const ClusterStoreOptions options_;
  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;  // under mutex_; null: none
  TimeNs until_ns_ = 0;                     // under mutex_: the end of the call, by steady_now()
};

}  // namespace culprit::store::postgres
