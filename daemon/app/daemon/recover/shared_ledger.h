// The ledgers of the members of a cluster, as one: what this controller stored goes to the database,
// isolations and vetoes of other members come from it, and with a job that this member gains all that was
// known of it. Without the database the member's own ledger goes on; what is not stored there yet waits.
//
// Thread: the loop's. A worker asks the database.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/recover/recovery_trouble.h"
#include "core/recover/controller.h"
#include "io/env.h"
#include "store/postgres/ledger_store.h"
#include "store/recovery_store.h"

namespace culprit::app {

class SharedLedger {
 public:
  // The epoch in which a job of the scheduler is this member's; nothing: it is not.
  using EpochOf = std::function<std::optional<uint64_t>(const std::string& job)>;
  struct Parts {
    std::shared_ptr<store::postgres::LedgerStore> store;  // used on a worker alone
    std::function<void(LogLevel, const std::string&)> log;
  };
  static Result<std::unique_ptr<SharedLedger>> start(io::Env& env, Parts parts);
  ~SharedLedger();

  // Rows that are on the disk. Attempts of jobs that are not this member's are left out. `again`: of before
  // the start, so that rows of other members stay.
  void put(const store::RecoveryRows& rows, const EpochOf& epoch_of, bool again = false);
  // Whether the rows of this job were read, in this epoch; asks for them otherwise. Until then nothing is
  // decided for it.
  bool has_read(const ScheduledJob& job, uint64_t epoch);

  struct Read {
    recover::JobAdopted job;  // attempts ascending, of one identity; empty: nothing is known
    bool by_other = false;    // the newest attempt was stored by another member
  };
  // Jobs whose rows came since the last call, with the scheduler's ids.
  std::vector<std::pair<std::string, Read>> drain_read();
  // Isolations, machines and resets of others since the last call.
  std::vector<recover::Input> drain_news();
  void beat();  // each second
  // Why gained jobs wait; nothing: the database answers.
  std::optional<RecoveryTrouble> trouble() const;

 private:
  static constexpr size_t kWaitingMost = 100'000;  // lines
  struct Round;

  SharedLedger(io::Env& env, Parts parts);
  void put_line(store::postgres::LedgerLine line);
  void finish(Round& round);
  void take_news(const std::vector<store::postgres::LedgerLine>& lines);
  void warn_once(const std::string& text);

  io::Env& env_;
  const Parts parts_;
  std::unique_ptr<io::Worker> worker_;
  std::map<std::pair<std::string, std::string>, store::postgres::LedgerLine> waiting_;  // by kind and key
  struct Asked {
    uint64_t epoch = 0;
    bool read = false;
    TimeNs used_ns = kNoTime;
  };
  std::map<std::string, Asked> jobs_;  // by scheduler/id
  std::vector<std::pair<std::string, Read>> read_;
  std::vector<recover::Input> news_;
  std::map<std::pair<std::string, std::string>, int64_t> given_;  // stamps of lines of others
  TimeNs news_ns_ = kNoTime, pruned_ns_ = kNoTime, error_since_ns_ = kNoTime;
  std::string error_, warned_;
  uint64_t dropped_ = 0;
};

}  // namespace culprit::app
