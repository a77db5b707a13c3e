// The memory that a reader of untrusted bytes may hold: a few bytes per byte read, measured at the allocator.
// So one limit fits every decoder, and a small hostile file cannot become a large tree. One thread.
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
  // `bytes`: input bytes read so far. `most`: upper limit of the memory, for any input size. `free`: memory
  // allowed in addition to the share per byte read.
  explicit ReadBudget(uint64_t bytes = 0, uint64_t most = UINT64_MAX, uint64_t free = limits::kHeldFree)
      : most_(most), free_(free), account_(0) {
    add_read(bytes);
  }

  // Reports that more input was read.
  void add_read(uint64_t bytes) {
    read_ += bytes;
    account_.allow(std::min(most_, read_ * limits::kHeldPerByte + free_));
  }

  // Calls `read`, which returns a Result. If `read` exceeds the budget, the error is `subject` and "takes
  // more memory than …". The result itself is freed outside the budget.
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

  // The account: memory held now, and the peak.
  HeapAccount& account() { return account_; }

 private:
  const uint64_t most_, free_;
  uint64_t read_ = 0;
  HeapAccount account_;
};

}  // namespace culprit
