// Interface for threads that the caller provides; this room starts no threads. Any thread.
#pragma once

#include <cstddef>
#include <functional>

namespace culprit::comm {

// `run` calls work(0) to work(n - 1) in any order, possibly in parallel, and returns when all are done.
// `width`: useful number of parallel calls.
struct Parallel {
  using Work = std::function<void(size_t)>;
  size_t width = 1;
  std::function<void(size_t n, const Work& work)> run = [](size_t n, const Work& work) {
    for (size_t i = 0; i < n; ++i) work(i);
  };
};

}  // namespace culprit::comm
