// What healthy jobs taught, shared with the other members of a cluster over its database: a job is judged by
// what is normal for all jobs of its owner, at whichever member they ran. The member that owns a job stores
// what it taught; the others read it within ten seconds, and keep it in their indexes as their own. Repeating
// any of this changes nothing. Without the database each goes on with what it has.
//
// Thread: the loop's. A worker of its own asks the database, on a connection of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/partition_gate.h"
#include "io/env.h"
#include "records/rows.h"

namespace culprit::app {

// Borrowed; they outlive the service.
struct SharedPoolsParts {
  const Config* config = nullptr;
  std::shared_ptr<PartitionGate> gate;
  std::function<bool(const std::string& job)> is_others;  // whether another member owns the job now
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;
  std::function<void(LogLevel, const std::string&)> log;
};

class SharedPools {
 public:
  static constexpr TimeNs kEachNs = 4 * kNsPerSecond;  // of storing and then of reading: below 10 s

  // An error if the process has no thread left.
  static Result<std::unique_ptr<SharedPools>> start(io::Env& env, SharedPoolsParts parts);
  ~SharedPools();

  void beat();  // each second
  void stop() { stopped_ = true; }

  struct Counts {  // since the start
    uint64_t published = 0, applied = 0, refused = 0, failed = 0;
    uint64_t waiting = 0;  // now, as far as one batch
  };
  const Counts& counts() const { return counts_; }
  // Why pools are not shared; empty: they are. And since when, by the wall clock.
  const std::string& trouble() const { return error_; }
  TimeNs trouble_since() const { return error_since_ns_; }

 private:
  struct Database;
  struct Round;
  struct Word;
  SharedPools(io::Env& env, SharedPoolsParts parts);
  void ask(const std::shared_ptr<Round>& round);
  void finish(const std::shared_ptr<Round>& round);
  void take(const std::shared_ptr<Round>& round);
  void teach(const std::shared_ptr<std::vector<Word>>& news);

  io::Env& env_;
  const SharedPoolsParts parts_;
  std::shared_ptr<Database> database_;  // used on the worker alone
  std::string error_;
  TimeNs error_since_ns_ = kNoTime, read_ns_ = kNoTime;
  Counts counts_;
  bool busy_ = false, stopped_ = false;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
};

}  // namespace culprit::app
