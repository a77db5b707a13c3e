// The memory that a reader of untrusted bytes may hold: some bytes for each byte that it read, counted as the
// allocator gives them. So every decoder has one limit, whatever it builds, and a small hostile file cannot
// become a large tree. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "base/heap_account.h"
#include "base/limits.h"
#include "base/status.h"

namespace culprit {

class ReadBudget {
 public:
  // `bytes`: of the input, read already. `most`: that may be held, however much is read. `free`: that may be
  // held besides.
  explicit ReadBudget(uint64_t bytes = 0, uint64_t most = UINT64_MAX, uint64_t free = limits::kHeldFree)
      : most_(most), free_(free), account_(0) {
    add_read(bytes);
  }

  // More of the input was read.
  void add_read(uint64_t bytes) {
    read_ += bytes;
    account_.allow(std::min(most_, read_ * limits::kHeldPerByte + free_));
  }

  // Calls `read`, which returns a Result. What it held beyond the budget is an error: "takes more memory than
  // …", behind `subject`. The result itself is freed outside the budget.
  template <class Read>
  auto run(const Read& read, const std::string& subject = {}) -> decltype(read()) {
    try {
      const HeapScope counted(&account_);
      return read();
    } catch (const std::bad_alloc&) {
    }
    return fail(ErrorCode::kLimit, subject + (account_.refused() ? "takes more memory than its size allows"
                                                                 : "there is no memory to read it"));
  }

  // What is held now, and was at most since the last call.
  HeapAccount& account() { return account_; }

 private:
  const uint64_t most_, free_;
  uint64_t read_ = 0;
  HeapAccount account_;
};

}  // namespace culprit
