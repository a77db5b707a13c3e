// The ledger of actions and the memory of machines. Each action is reserved before it is given to an
// executor; its key is a hash of decision, kind and target, so the same action is never given twice. An
// ambiguous result counts as failed and is not repeated.
//
// Pure; one thread. The caller stores and syncs drain() before it carries out any order of the same step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/recovery.h"
#include "model/recovery_ledger.h"

namespace culprit::recover {

// 16 hexadecimal digits: XXH3 of decision, kind and target.
std::string op_of(std::string_view decision, OrderKind kind, std::string_view target);
std::string_view to_string(OrderKind kind);     // "isolate", "return", "end-tasks", "run-again", "verify"
std::string_view to_string(ActionState state);  // "reserved", "done", …

// What a collector reads of a reserved action after its restart.
struct ReadBack {
  std::string op;
  bool mark_present = false;  // the real state carries the action's mark
  bool precondition_holds = false;
};

class Actions {
 public:
  // Rows are forgotten here after so long; the store keeps them as long.
  static constexpr TimeNs kRetention = 400LL * 24 * 3600 * kNsPerSecond;
  // A reserved action that is older is abandoned after a restart.
  static constexpr TimeNs kRepeatWithin = 60 * kNsPerSecond;

  // Reserves an action and fills in order.op. False: it was reserved before, whatever came of it.
  bool reserve(ActionRecord& record, TimeNs now);
  // Takes a result; one that comes after all may replace "ambiguous" and "abandoned". Null: the op is unknown
  // or settled.
  const ActionRecord* settle(const ActionResult& result);
  // Ends open actions of a decision: superseded by another actor, or abandoned. Returns their ops.
  std::vector<std::string> close(std::string_view decision, ActionState state, std::string_view detail,
                                 TimeNs now);
  // A done isolation was returned. `person`: who did it; empty: the controller.
  void undo(const std::string& op, const std::string& person, std::string_view detail, TimeNs now);
  // An ambiguous isolation was found in force.
  void adopt(const std::string& op, TimeNs now);

  // Rows as stored, before the first step. A record that contradicts itself is refused: false.
  bool load(ActionRecord record);
  // A row of another member, of a job that this one gained; reserved: its result is not known.
  void learn(ActionRecord record);
  // After a restart: reserved and read back. Returns those to give once more; they are marked as sent twice.
  std::vector<ActionOrder> recover(std::span<const ReadBack> read, TimeNs now);

  const ActionRecord* find(const std::string& op) const;
  std::vector<const ActionRecord*> open_of(std::string_view decision) const;  // reserved
  std::vector<const ActionRecord*> of(std::string_view decision) const;       // in order of time
  std::vector<const ActionRecord*> of_job(const ScheduledJob& job) const;     // of any attempt
  std::vector<const ActionRecord*> open() const;
  std::vector<const ActionRecord*> all() const;  // by op
  size_t size() const { return by_op_.size(); }

  void prune(TimeNs now);
  std::vector<ActionRecord> drain();  // rows that changed since the last call, by op

 private:
  void changed(ActionRecord& record, ActionState state, std::string_view detail, TimeNs now);

  std::map<std::string, ActionRecord, std::less<>> by_op_;
  std::map<std::string, std::vector<std::string>, std::less<>> by_decision_;
  std::set<std::string> open_, changed_;
};

// The memory of machines. Device "": the host as a whole.
class Machines {
 public:
  static constexpr size_t kIsolations = 32;     // times kept per machine
  static constexpr size_t kMachines = 200'000;  // hosts and devices; beyond: those without isolation go first

  void suspected(const std::string& host, const std::string& device, const std::string& root, TimeNs at);
  void isolated(const std::string& host, const std::string& op, const std::string& root, TimeNs at);
  void returned(const std::string& host, TimeNs at);
  void confirmed(const std::string& host, TimeNs at);
  void refuted(const std::string& host, TimeNs at);
  void repaired(const std::string& host, TimeNs at);

  const MachineRecord* find(const std::string& host, const std::string& device = "") const;
  uint32_t isolations_within(const std::string& host, TimeNs window, TimeNs now) const;
  uint32_t suspicions_within(const std::string& host, const std::string& root, TimeNs window,
                             TimeNs now) const;
  // Other hosts that were isolated for this root within the window.
  uint32_t hosts_of_cause(const std::string& root, const std::string& but, TimeNs window, TimeNs now) const;
  // "node-3: third time in 7 days"; empty: the first time.
  std::string again(const std::string& host, TimeNs window, TimeNs now) const;

  // Forgets suspicions and causes beyond the policy's windows; the rows stay.
  void prune(TimeNs now);
  void load(MachineRecord record);
  // A row of another member: its counts and times, if they are newer. An isolation in force stays its own.
  void learn(const MachineRecord& row);
  std::vector<MachineRecord> drain();  // rows that changed since the last call

 private:
  MachineRecord& at(const std::string& host, const std::string& device);

  using Key = std::pair<std::string, std::string>;
  std::map<Key, MachineRecord> machines_;
  std::map<Key, std::vector<TimeNs>> suspicions_;                // by host and root, the newest few
  std::map<std::string, std::map<std::string, TimeNs>> causes_;  // by root: host, time of isolation
  std::set<Key> changed_;
};

}  // namespace culprit::recover
