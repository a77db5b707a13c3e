// SIGTERM and SIGINT before the loop runs: while it lives they set a flag for long work to ask, afterwards
// they do what they did before. One at a time; for the thread that starts the program.
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
  struct sigaction term_ = {}, interrupt_ = {};  // as they were
};

}  // namespace culprit::app
