#include "app/jobs/task_thread.h"

#include <system_error>
#include <utility>

namespace culprit::app {

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TaskThread::start(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  if (thread_.joinable()) {
    changed_.notify_all();
    return;
  }
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {  // no thread is available: wait() does the task
  }
}

void TaskThread::wait() {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    if (const auto task = std::exchange(task_, nullptr)) task();
    return;
  }
  changed_.wait(lock, [this] { return !task_; });
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void TaskThread::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || task_; });
    if (!task_) return;
    lock.unlock();
    std::exception_ptr failed;
    try {
      task_();
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    task_ = nullptr;
    failed_ = failed;
    changed_.notify_all();
  }
}

}  // namespace culprit::app
