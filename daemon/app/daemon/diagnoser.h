// The engine's side of the daemon: LiveJobs on a worker of its own, fed with what the sources give, in the
// order in which the store has it. What it finds comes back to the loop as events.
//
// Thread: the loop's; callbacks come there, but for `alive` and the rules' watch, which are the worker's.
// Owns the jobs and their worker.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/daemon/live_jobs.h"
#include "app/daemon/recorder.h"
#include "app/daemon/rule_watch.h"
#include "app/daemon/self_watch.h"
#include "io/env.h"

namespace culprit::app {

struct DiagnoserOptions {
  LiveOptions live;
  SelfWatch* watch = nullptr;       // borrowed
  RuleWatch* rule_watch = nullptr;  // borrowed; the worker's
  std::function<void(std::vector<LiveEvent>&&)> take;
};

class Diagnoser {
 public:
  static Result<std::unique_ptr<Diagnoser>> start(io::Env& env, DiagnoserOptions options);
  ~Diagnoser();

  void take(SharedBatch batch, std::function<void()> done);
  // Runs on the engine's worker, after everything taken so far.
  void ask(std::function<void(LiveJobs&, TimeNs now)> work, std::function<void()> done = {});
  void abandon() { worker_->abandon(); }

  const LiveCounts& counts() const { return counts_; }  // as of the last work
  size_t jobs() const { return jobs_; }

 private:
  struct Outcome;
  Diagnoser(io::Env& env, DiagnoserOptions options);
  void submit(std::string what, std::function<void(TimeNs)> work, std::function<void()> done);

  io::Env& env_;
  DiagnoserOptions options_;
  std::unique_ptr<LiveJobs> live_;  // the worker's
  LiveCounts counts_;
  size_t jobs_ = 0, under_way_ = 0;
  std::unique_ptr<io::Timer> timer_;
  std::unique_ptr<io::Worker> worker_;  // goes first
};

}  // namespace culprit::app
