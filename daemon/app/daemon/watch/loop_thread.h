// A thread of low priority with a loop of its own: for work that moves many bytes, or that a hung mount may
// block, apart from the daemon's loop. Threads and I/O that it starts have its priority too, where the
// system lets the daemon lower it.
//
// Thread: the creator's. Never waits for a hung thread longer than two seconds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "io/env.h"

namespace culprit::app {

using MakeEnv = std::function<std::unique_ptr<io::Env>()>;

enum class LoopPriority {
  kIdle,  // nice 19, idle I/O: no one waits for the work
  kLow,   // nice 10, the last of the usual I/O: somebody may wait, as for a restore on a busy host
};

class LoopThread {
 public:
  // `build` runs on the new thread and returns what lives there; it is destroyed there before the Env. It and
  // what it captures may outlive this object, if the thread hangs.
  static Result<std::unique_ptr<LoopThread>> start(const std::string& name, LoopPriority priority,
                                                   MakeEnv make_env,
                                                   std::function<std::shared_ptr<void>(io::Env&)> build);
  // Ends the loop; does not wait.
  void stop();
  // Ends the loop and waits; leaves a thread that hangs.
  ~LoopThread() { (void)end(); }
  // The same. False: the thread hangs and was left.
  bool end();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

 private:
  struct Shared;
  explicit LoopThread(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  const std::shared_ptr<Shared> shared_;
};

// Calls back on a loop that may end before the caller does.
class Callback {
 public:
  explicit Callback(io::Env& env);
  ~Callback();  // on the loop; no call runs afterwards
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  // Any thread, also after the Callback's end: then `call` is dropped.
  using Post = std::function<void(std::function<void()> call)>;
  Post post() const;

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace culprit::app
