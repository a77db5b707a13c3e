// The controller's ledger in one SQLite file: actions, attempts of jobs, machines, and an audit that only
// grows. A commit is synced: an action is stored before it is carried out. Rows older than the retention are
// removed.
//
// One thread owns it; calls wait for the disk. A reader is another connection to it, for another thread:
// it and the writer do not wait for each other (WAL). Errors (a full disk) leave it usable. A damaged file is
// renamed at the start and a new one created: then moved_aside() says so, and the controller must not act,
// since an unreadable ledger is not an empty one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/recovery_ledger.h"
#include "store/database.h"

namespace culprit::store {

constexpr TimeNs kRecoveryRetention = 400LL * 24 * 3600 * kNsPerSecond;

// A sentence for the audit, with the order that it is about, as JSON; empty: none.
struct RecoveryNote {
  TimeNs time_ns = kNoTime;
  std::string kind;  // "decided", "would-do", "refused", "result", …
  std::string job, decision, text, order;
};

struct RecoveryRows {
  std::vector<ActionRecord> actions;
  std::vector<AttemptRecord> attempts;
  std::vector<MachineRecord> machines;
  std::vector<RecoveryNote> notes;
  TimeNs reset_ns = kNoTime;  // the last reset of the breaker; kNoTime: none, or unchanged
  std::string reset_by = {};
  bool empty() const {
    return actions.empty() && attempts.empty() && machines.empty() && notes.empty() && reset_ns == kNoTime;
  }
};

// Which notes: of a job, of a decision, of a kind, or all; the newest first.
struct NotesOf {
  std::string job, decision;
  size_t limit = 1000;
  std::string kind = {};
};

class RecoveryStore {
 public:
  static Result<std::unique_ptr<RecoveryStore>> open(const std::string& path);
  // For a file that is open already. Its writing calls fail.
  static Result<std::unique_ptr<RecoveryStore>> open_reader(const std::string& path);
  const std::string& moved_aside() const { return database_.moved_aside(); }

  // Of this file, made with it: after a loss of the disk it is another one.
  Result<std::string> id();
  // All rows but the notes. An error if a row cannot be read.
  Result<RecoveryRows> load();
  // One transaction.
  Status apply(const RecoveryRows& changes);
  Result<std::vector<RecoveryNote>> notes(const NotesOf& which);
  // The newest attempts of a job, whatever its restarts; ascending.
  Result<std::vector<AttemptRecord>> attempts_of(const ScheduledJob& job, size_t most);
  // Of the job that had this id last, "slurm/77"; nothing: no job had it.
  Result<std::optional<AttemptRecord>> newest_attempt(const std::string& id);
  // The newest rows first, each as its JSON object (model/recovery_json.h).
  Result<std::vector<std::string>> newest_actions(size_t most);
  Result<std::vector<std::string>> newest_machines(size_t most);
  // Removes rows that ended before the retention. Returns their number.
  Result<size_t> prune(TimeNs now);

 private:
  RecoveryStore(const std::string& path, bool read_only);
  Status write(const RecoveryRows& changes);

  Database database_;
};

}  // namespace culprit::store
