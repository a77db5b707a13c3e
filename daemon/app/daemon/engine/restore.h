// Rebuilds the engines of running jobs after a restart. Stored evidence is fed to new engines in parts, while
// sources already read and the store saves new batches. The engine reads the new batches from the spool too,
// in the spool's order. At the end of the spool, it gets the uncommitted batches and then every batch
// directly. So memory holds only uncommitted batches, and the order is always the store's.
//
// A slow engine might never reach the end: after some rounds the sources are paused for the rest.
//
// Thread: the loop's. Borrows the recorder and the engine; destroyed when done.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "store/evidence.h"

namespace culprit::app {

// Ends of the runs that the records know as ended, or as followed by another run.
std::vector<RunEnd> ends_of_runs(const Recorder& recorder);

// Jobs whose last run ended.
std::set<std::string> ended_jobs(const Recorder& recorder);

struct RestoreOptions {
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;
  std::function<void()> hold;
  // From now on the engine is fed directly, first with `rest`.
  std::function<void(std::vector<SharedBatch>&& rest, const Result<store::ReadDamage>& damage)> done;
};

class Restore {
 public:
  explicit Restore(RestoreOptions options);
  // Loads what the records have of the running jobs' diagnoses, then feeds the engine.
  void begin();
  // The Recorder's callbacks for a batch: given, appended, committed.
  void add_uncommitted(SharedBatch batch) { uncommitted_.push_back(std::move(batch)); }
  void appended() { ++appended_; }
  void committed(uint64_t sequence);
  // Starts no further part.
  void stop() { stopped_ = true; }

 private:
  struct Part;
  void load_records();
  void next();
  void read(const Part& part);

  RestoreOptions options_;
  std::vector<records::JobRunId> unloaded_;  // running runs whose diagnoses are not loaded yet
  std::shared_ptr<store::Replay> replay_;    // used by the engine's worker
  std::deque<SharedBatch> uncommitted_;
  size_t appended_ = 0;     // number of appended batches at the front of uncommitted_
  uint64_t committed_ = 0;  // frames up to this one contain all batches before uncommitted_
  uint64_t until_ = 0;      // end of this round
  int rounds_ = 0;
  bool stopped_ = false;
};

}  // namespace culprit::app
