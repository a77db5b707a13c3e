// A thread that runs one task at a time, created for its first task. If no thread is available, wait() runs
// the task. Owned and called by one thread.
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

  // Call only after wait() for the previous task.
  void start(std::function<void()> task);
  // Returns when the task is done, and rethrows its exception.
  void wait();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;  // empty: done
  std::exception_ptr failed_;   // exception of the last task
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace culprit::app
