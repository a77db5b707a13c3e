// Counts the memory that a part of the program holds: what new returned to this thread within a HeapScope,
// less what was deleted within one. So no container has to estimate its size. An account may have a limit:
// an allocation beyond it fails as if memory were out, with std::bad_alloc. Programs that link this file get
// its operators new and delete.
//
// What one scope allocates, a scope of the same account must free: results leave as copies made outside.
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
  // The most since the last call.
  uint64_t drain_peak();

  // Replaces the limit. Memory that is held already stays.
  void allow(uint64_t most) { most_ = most; }
  // Whether an allocation was refused for the limit.
  bool refused() const { return refused_; }

  bool admit(size_t bytes) noexcept;  // false, and noted: they would exceed the limit
  void add(size_t bytes) noexcept;
  void remove(size_t bytes) noexcept { bytes_ -= static_cast<int64_t>(bytes); }

 private:
  int64_t bytes_ = 0, peak_ = 0;
  uint64_t most_;
  bool refused_ = false;
};

// Within its life the account counts for this thread, and the accounts of the scopes around it count too;
// null: none does.
class HeapScope {
 public:
  explicit HeapScope(HeapAccount* account) noexcept;
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

  // For operators new and delete: the accounts that count for this thread.
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
