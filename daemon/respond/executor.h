// Carries out what core/recover decides (model/recovery.h): an Executor on the loop thread gives each order
// to a backend of one scheduler on a thread of its own, and the result back to the loop.
//
// The caller writes the order to the ledger before carry_out(). An order that a stop or crash interrupts has
// no result: the caller finds it reserved at its next start and may repeat it, since each backend first reads
// whether the order's mark is already there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/time.h"
#include "io/env.h"
#include "model/recovery.h"

namespace culprit::respond {

// Time for the steps of an action; tests have their own.
class Pace {
 public:
  virtual ~Pace() = default;
  virtual TimeNs now() const = 0;     // monotonic
  virtual TimeNs wall() const = 0;    // since the epoch
  virtual bool pause(TimeNs ns) = 0;  // false: the daemon stops
  virtual const std::atomic<bool>& stop() const = 0;
};

// Of a view or a single request: there are no steps to wait for, and each call has a limit of its own.
class SingleStep final : public Pace {
 public:
  TimeNs now() const override { return steady_now(); }
  TimeNs wall() const override { return wall_now(); }
  bool pause(TimeNs) override { return false; }
  const std::atomic<bool>& stop() const override { return never_; }

 private:
  std::atomic<bool> never_{false};
};

// Carries out orders at one scheduler, step by step: reads, writes, reads back. Blocking; called by several
// threads at once; bounds its time and the bytes it reads.
//
// States of results: kDone: read back as ordered, also if it was there before. kFailed: refused or the
// precondition does not hold, nothing changed. kSuperseded: another actor did it, undid it, or the job is
// another by now; nothing of others is overwritten. kAmbiguous: no answer after a write, or another result
// than ordered.
//   kRunAgain: kDone with `hosts`: runs there, without the excluded. kDone without hosts: released, and
//   pending for the reason in `detail`.
//   kVerify: kDone with `hosts`: runs there. kFailed: pending, ended, or on an excluded host (then with
//   hosts). Both give `job`, the identity that later orders use: a requeue changes the time of submission.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // as ScheduledJob::scheduler
  virtual bool can(OrderKind kind) const = 0;
  virtual ActionResult carry_out(const ActionOrder& order, Pace& pace) const = 0;
};

// Loop thread.
class Executor {
 public:
  static constexpr size_t kThreads = 4;        // actions at a time: one that waits for a job blocks no other
  static constexpr size_t kWaitingMost = 256;  // orders; beyond them an order fails at once

  // An error if the process has no thread left. Borrows `env`.
  static Result<std::unique_ptr<Executor>> make(io::Env& env, std::unique_ptr<Backend> backend);
  ~Executor();  // stop()

  std::string_view name() const { return backend_->name(); }
  bool can(OrderKind kind) const { return backend_->can(kind); }
  // `done` runs on the loop, never from within, exactly once unless stop() comes first.
  void carry_out(const ActionOrder& order, std::function<void(ActionResult)> done);
  // Ends running actions (within about 2 s) and drops waiting ones; no `done` is called afterwards.
  void stop();
  size_t waiting() const { return waiting_; }  // orders without a result

 private:
  Executor(io::Env& env, std::unique_ptr<Backend> backend);

  io::Env& env_;
  const std::unique_ptr<Backend> backend_;
  struct Shared;
  const std::shared_ptr<Shared> shared_;
  size_t waiting_ = 0;
  std::vector<std::unique_ptr<io::Worker>> workers_;  // destroyed first: their tasks use the rest
};

}  // namespace culprit::respond
