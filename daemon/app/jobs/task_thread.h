// A thread that runs one task at a time, created at its first task. Where none is available, wait() does the
// task. Owned and called by one thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace culprit::app {

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

}  // namespace culprit::app
