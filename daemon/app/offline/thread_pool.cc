#include "app/offline/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>

namespace culprit::app {

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
  // All tasks must end before this function returns, even if one fails.
  guarded(some);
  for (size_t i = 0; i < helpers; ++i) guarded([&] { others_[i].wait(); });
  if (failed) std::rethrow_exception(failed);
}

}  // namespace culprit::app
