// Threads that a shell lends: this room has none. Any thread.
#pragma once

#include <cstddef>
#include <functional>

namespace culprit::comm {

// `run` does work(0) to work(n - 1), in any order and at the same time where it can, and returns when all are
// done; `width`: how many at a time are worth it.
struct Parallel {
  using Work = std::function<void(size_t)>;
  size_t width = 1;
  std::function<void(size_t n, const Work& work)> run = [](size_t n, const Work& work) {
    for (size_t i = 0; i < n; ++i) work(i);
  };
};

}  // namespace culprit::comm
