// Counts the memory that a part of the program holds: bytes allocated minus bytes freed by this thread within
// a HeapScope. So no container has to estimate its size. An allocation beyond an account's limit throws
// std::bad_alloc. Programs that link this file get its operators new and delete.
//
// Memory allocated in a scope must be freed in a scope of the same account. So results are copied outside the
// scope.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit {

class HeapAccount {
 public:
  explicit HeapAccount(uint64_t most = UINT64_MAX) : most_(most) {}
  HeapAccount(const HeapAccount&) = delete;
  HeapAccount& operator=(const HeapAccount&) = delete;

  uint64_t bytes() const { return bytes_ > 0 ? static_cast<uint64_t>(bytes_) : 0; }
  // Peak bytes since the last call.
  uint64_t drain_peak();

  // Replaces the limit. Memory already held is kept, even beyond the limit.
  void allow(uint64_t most) { most_ = most; }
  // Whether the limit refused an allocation.
  bool refused() const { return refused_; }

  bool admit(size_t bytes) noexcept;  // false, and recorded, if the bytes would exceed the limit
  void add(size_t bytes) noexcept;
  void remove(size_t bytes) noexcept { bytes_ -= static_cast<int64_t>(bytes); }

 private:
  int64_t bytes_ = 0, peak_ = 0;
  uint64_t most_;
  bool refused_ = false;
};

// While this scope exists, the account and the accounts of enclosing scopes count this thread's memory. With
// null, no account counts.
class HeapScope {
 public:
  explicit HeapScope(HeapAccount* account) noexcept;
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

  // For operators new and delete: apply to the accounts active on this thread.
  static bool admit(size_t bytes) noexcept;
  static void allocated(void* block) noexcept;
  static void freed(void* block) noexcept;

 private:
  HeapAccount* const account_;
  const HeapScope* const outer_;
};

// Gives free pages back to the kernel. Takes some milliseconds.
void release_free_memory();

}  // namespace culprit
