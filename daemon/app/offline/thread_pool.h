// Worker threads for the duration of a diagnosis. Each is created at its first task; if no thread is
// available, the caller does the work. Owned and called by one thread.
#pragma once

#include <vector>

#include "app/jobs/task_thread.h"
#include "core/detect/comm/parallel.h"

namespace culprit::app {

class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads) : others_(threads > 1 ? threads - 1 : 0) {}

  // Borrows the pool. The calling thread works too.
  comm::Parallel parallel();

 private:
  void run(size_t n, const comm::Parallel::Work& work);

  std::vector<TaskThread> others_;
};

}  // namespace culprit::app
