// What this controller has of the jobs that the members of a cluster share: its own jobs, and with a job that
// it gains what the member before stored of it. Thread: the loop's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/recover/act_gate.h"
#include "app/daemon/recover/job_share.h"
#include "app/daemon/recover/shared_ledger.h"

namespace culprit::app {

class OtherMembers {
 public:
  // `before`: rows of this member's disk that the others may lack: the process before was killed,
  // or the database was restored from a backup. An error if the process has no thread left. Without a ledger,
  // what another member knew is lost.
  static Result<std::unique_ptr<OtherMembers>> start(io::Env& env, std::shared_ptr<ActGate> gate,
                                                     store::RecoveryRows before,
                                                     std::function<void(LogLevel, const std::string&)> log);

  // Before a view is compared with the one before: identities of jobs that are gained with it.
  void adopt(ScheduledJobs& jobs, const recover::Controller& controller);
  JobShare::Selected select(std::vector<recover::Input> inputs, const ScheduledJobs& jobs,
                            const recover::Controller& controller);
  void put(const store::RecoveryRows& rows);  // that are on this member's disk
  void beat();                                // each second
  std::optional<RecoveryTrouble> trouble() const;

 private:
  OtherMembers(std::shared_ptr<ActGate> gate, store::RecoveryRows before)
      : gate_(std::move(gate)), before_(std::move(before)) {}
  void put_before();

  const std::shared_ptr<ActGate> gate_;
  store::RecoveryRows before_;  // empty once it is put
  JobShare share_;
  std::unique_ptr<SharedLedger> ledger_;                  // null: none
  std::map<std::string, recover::JobAdopted> adoptions_;  // of jobs that are gained next, by id
};

// Attempts that run, machines and the breaker's reset; attempts that ended and actions of a day.
store::RecoveryRows recent_rows(const store::RecoveryRows& rows, TimeNs now);

}  // namespace culprit::app
