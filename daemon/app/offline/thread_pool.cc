#include "app/offline/thread_pool.h"

#include <algorithm>
#include <atomic>
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

comm::Parallel ThreadPool::parallel() {
  comm::Parallel out;
  if (others_.empty()) return out;
  out.width = others_.size() + 1;
  out.run = [this](size_t n, const comm::Parallel::Work& work) { run(n, work); };
  return out;
}

void ThreadPool::run(size_t n, const comm::Parallel::Work& work) {
  std::atomic<size_t> next{0};
  const auto some = [&] {
    for (size_t i = next++; i < n; i = next++) work(i);
  };
  const size_t helpers = std::min(others_.size(), n > 0 ? n - 1 : 0);
  for (size_t i = 0; i < helpers; ++i) others_[i].start(some);
  std::exception_ptr failed;
  const auto guarded = [&](const auto& what) {
    try {
      what();
    } catch (...) {
      failed = std::current_exception();
    }
  };
  // All must end before the work does, even if one fails.
  guarded(some);
  for (size_t i = 0; i < helpers; ++i) guarded([&] { others_[i].wait(); });
  if (failed) std::rethrow_exception(failed);
}

}  // namespace culprit::app
