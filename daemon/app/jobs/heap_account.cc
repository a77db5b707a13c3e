#include "app/jobs/heap_account.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace culprit::app {
namespace {

constinit thread_local HeapAccount* counting = nullptr;

// Of the block and of its header in malloc's arena.
size_t block_bytes(void* block) { return ::malloc_usable_size(block) + sizeof(size_t); }

}  // namespace

void HeapAccount::add(size_t bytes) noexcept {
  bytes_ += static_cast<int64_t>(bytes);
  peak_ = std::max(peak_, bytes_);
}

uint64_t HeapAccount::drain_peak() {
  return static_cast<uint64_t>(std::max<int64_t>(0, std::exchange(peak_, bytes_)));
}

HeapScope::HeapScope(HeapAccount* account) noexcept : before_(std::exchange(counting, account)) {}
HeapScope::~HeapScope() { counting = before_; }

void release_free_memory() { ::malloc_trim(0); }

}  // namespace culprit::app

// The other forms of new and delete call these; but those of the address sanitizer do not.
[[gnu::noinline]] void* operator new(size_t size) {
  for (;;) {
    if (void* block = std::malloc(std::max<size_t>(size, 1))) {
      if (auto* account = culprit::app::counting) account->add(culprit::app::block_bytes(block));
      return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

[[gnu::noinline]] void operator delete(void* block) noexcept {
  if (!block) return;
  if (auto* account = culprit::app::counting) account->remove(culprit::app::block_bytes(block));
  std::free(block);
}

[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { operator delete(block); }
