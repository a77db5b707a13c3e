// Counts the memory that a part of the program holds: what new returned to this thread within a HeapScope,
// less what was deleted within one. So no container has to estimate its size. Programs that link this file
// get its operators new and delete.
//
// What one scope allocates, a scope of the same account must free: results leave as copies made outside.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::app {

class HeapAccount {
 public:
  HeapAccount() = default;
  HeapAccount(const HeapAccount&) = delete;
  HeapAccount& operator=(const HeapAccount&) = delete;

  uint64_t bytes() const { return bytes_ > 0 ? static_cast<uint64_t>(bytes_) : 0; }
  // The most since the last call.
  uint64_t drain_peak();

  void add(size_t bytes) noexcept;
  void remove(size_t bytes) noexcept { bytes_ -= static_cast<int64_t>(bytes); }

 private:
  int64_t bytes_ = 0, peak_ = 0;
};

// Within its life the account counts for this thread; null: none does. Scopes nest.
class HeapScope {
 public:
  explicit HeapScope(HeapAccount* account) noexcept;
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  HeapAccount* before_;
};

// Gives free pages back to the kernel. Takes some milliseconds.
void release_free_memory();

}  // namespace culprit::app
