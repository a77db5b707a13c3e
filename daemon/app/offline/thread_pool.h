// Threads that wait for work, for the length of a diagnosis. Each is created at its first task; where none is
// available, the caller does the work itself. Owned and called by one thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/detect/comm/parallel.h"

namespace culprit::app {

// A thread that runs one task at a time.
class TaskThread {
 public:
  TaskThread() = default;
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread();

  // The task before has been waited for.
  void start(std::function<void()> task);
  // Returns when the task is done, and passes on its exception.
  void wait();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;  // empty: done
  std::exception_ptr failed_;   // of the last task
  bool ends_ = false;
  std::thread thread_;
};

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
