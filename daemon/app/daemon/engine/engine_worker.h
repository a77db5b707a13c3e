// Runs LiveJobs on a separate worker. Batches of the sources are ingested in the store's order; results
// return to the loop as events.
//
// While a collector reads its archive a second time (archive_restore.h), there are two LiveJobs: the ones
// that answer, and the second ones, which take their place at the end. Both are on the one worker; the second
// ones get time when nothing else waits, and once a second.
//
// Threads: the loop calls this class, and callbacks return to the loop. The jobs, their engines, `alive` and
// the rule watch run only on the worker "engine". Owns the jobs and the worker.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/daemon/engine/rule_watch.h"
#include "app/daemon/keep/pipeline.h"
#include "app/daemon/self/self_watch.h"
#include "app/jobs/live_jobs.h"
#include "base/thread_owner.h"
#include "io/env.h"

namespace culprit::app {

// The configured times of capturing a job's processes.
CapturePlan capture_plan(const Config& config);

struct EngineWorkerOptions {
  LiveOptions live;
  SelfWatch* watch = nullptr;       // borrowed
  RuleWatch* rule_watch = nullptr;  // borrowed; worker only
  std::function<void(std::vector<LiveEvent>&&)> take;
  std::function<void(const std::string& sentence)> report_error;  // for the log; may be empty
  // LiveOptions::memory_max after a reload; empty: unchanged.
  std::function<uint64_t(const Config&)> engine_memory;
};

class EngineWorker final : public Pipeline {
 public:
  static Result<std::unique_ptr<EngineWorker>> start(io::Env& env, EngineWorkerOptions options);
  ~EngineWorker() override;

  void append(SharedBatch batch, std::function<void()> done) override;
  bool precedes_store() const override { return false; }
  void reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) override;
  // Does not wait: the next start reads unprocessed evidence from the store.
  void finish(std::function<void()> done) override { done(); }
  // Runs `work` on the engine's worker after all earlier batches.
  void query(std::function<void(LiveJobs&, TimeNs now)> work, std::function<void()> done = {});
  // The same on all LiveJobs, the ones that answer first.
  void change(std::function<void(std::span<LiveJobs* const>, TimeNs now)> work,
              std::function<void()> done = {});
  // Second LiveJobs, empty and restoring, which share the limit of memory with the first. `ends`: ended runs.
  void begin_second(std::vector<RunEnd> ends);
  bool has_second() const { return has_second_; }
  // Runs `work` on the second LiveJobs. One at a time.
  void query_second(std::function<void(LiveJobs&, TimeNs now)> work, std::function<void()> done);
  // The second LiveJobs, which have all input now, take the place of the first. `before`: see
  // LiveJobs::restoring(). False, and the first stay: a job of the second had no memory.
  void end_second(std::vector<Verdict> before, std::function<void(bool replaced)> done);
  void abandon() { worker_->abandon(); }

  const LiveCounts& counts() const { return counts_; }  // as of the worker's last finished work
  size_t jobs() const { return jobs_; }

 private:
  struct Outcome;
  EngineWorker(io::Env& env, EngineWorkerOptions options);
  void submit(std::string what, std::function<void(TimeNs)> work, std::function<void()> done);
  SharedBatch next_behind(const PieceBatch& batch);
  void run_second();

  io::Env& env_;
  EngineWorkerOptions options_;
  std::unique_ptr<LiveJobs> live_, second_;  // worker only
  bool has_second_ = false;
  struct SecondWork {
    std::function<void(LiveJobs&, TimeNs)> work;
    std::function<void()> done;
  };
  std::optional<SecondWork> second_work_;  // waits for the worker
  // Batches that the worker has not started. It parses the next one while it analyses the current one.
  std::mutex coming_mutex_;
  std::deque<SharedBatch> coming_;
  LiveCounts counts_;
  size_t jobs_ = 0, under_way_ = 0;
  std::unique_ptr<io::Timer> timer_, second_timer_;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
  ThreadOwner owner_;
};

}  // namespace culprit::app
