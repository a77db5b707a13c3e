// Copies of checkpoints: those of this host to others, and those of others on this host. Each direction has a
// thread of low priority with its own loop, so that neither a hung mount nor a slow disk holds the daemon.
//
// Thread: the loop's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/daemon/watch/copy_state.h"
#include "app/daemon/watch/loop_thread.h"
#include "io/env.h"

namespace culprit::app {

struct CopyServiceOptions {
  const Config* config = nullptr;  // borrowed during start()
  MakeEnv make_env;
  std::function<void(LogLevel, const std::string&)> log;
};

class CopyService {
 public:
  // Null if copies are off.
  static Result<std::unique_ptr<CopyService>> start(io::Env& env, CopyServiceOptions options);
  // Waits for at most two seconds per thread.
  ~CopyService() { (void)end(); }
  void stop();  // does not wait
  bool end();   // waits; false: a thread hangs and was left

  CopyCounters counters() const { return state_->counters(); }
  // Why copies are not made or not stored, in a sentence; empty: no trouble.
  std::string trouble() const;

 private:
  explicit CopyService(io::Env& env) : callback_(env) {}

  const std::shared_ptr<CopyState> state_ = std::make_shared<CopyState>();
  const std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  Callback callback_;
  std::unique_ptr<LoopThread> out_, in_;
};

}  // namespace culprit::app
