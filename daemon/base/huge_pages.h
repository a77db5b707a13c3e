// Allocator for tables of many megabytes with random access. It uses 2 MB pages if the kernel has them, which
// avoids most page faults and TLB misses. Any thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace culprit {

// A standard allocator. It uses the heap, so a HeapAccount counts its memory.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr size_t kLeast = 8 << 20;      // smaller tables fill one or two huge pages at best
  static constexpr uintptr_t kSmallPage = 4096;  // madvise requires aligned addresses

  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>&) {}

  T* allocate(size_t n) {
    T* const at = std::allocator<T>().allocate(n);
    if (n * sizeof(T) < kLeast) return at;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(at) + kSmallPage - 1) / kSmallPage * kSmallPage;
    const uintptr_t end = reinterpret_cast<uintptr_t>(at + n) / kSmallPage * kSmallPage;
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // on failure: ordinary pages
    return at;
  }
  void deallocate(T* at, size_t n) { std::allocator<T>().deallocate(at, n); }
  bool operator==(const HugePages&) const { return true; }
};

template <class T>
using LargeTable = std::vector<T, HugePages<T>>;

}  // namespace culprit
