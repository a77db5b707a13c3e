// Handles SIGTERM and SIGINT before the loop runs. During its lifetime they set a flag that long work polls;
// the destructor restores the earlier handlers. One object at a time, owned by the starting thread.
#pragma once

#include <csignal>

namespace culprit::app {

class EarlyStop {
 public:
  EarlyStop();
  ~EarlyStop();
  EarlyStop(const EarlyStop&) = delete;

  static bool asked();  // any thread

 private:
  struct sigaction term_ = {}, interrupt_ = {};  // the earlier handlers
};

}  // namespace culprit::app
