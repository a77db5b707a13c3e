#include "base/heap_account.h"
#include "base/check.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace culprit {
namespace {

constinit thread_local const HeapScope* innermost = nullptr;

// Bytes of the block and of its header in malloc's arena.
size_t block_bytes(void* block) { return ::malloc_usable_size(block) + sizeof(size_t); }

}  // namespace

bool HeapAccount::admit(size_t bytes) noexcept {
  const uint64_t held = this->bytes();
  if (held <= most_ && bytes <= most_ - held) return true;
  refused_ = true;
  return false;
}

void HeapAccount::add(size_t bytes) noexcept {
  bytes_ += static_cast<int64_t>(bytes);
  peak_ = std::max(peak_, bytes_);
}

uint64_t HeapAccount::drain_peak() {
  return static_cast<uint64_t>(std::max<int64_t>(0, std::exchange(peak_, bytes_)));
}

HeapScope::HeapScope(HeapAccount* account) noexcept
    : account_(account), outer_(std::exchange(innermost, this)) {}
HeapScope::~HeapScope() {
  CULPRIT_CHECK(innermost == this);  // scopes of a thread end in the reverse order
  innermost = outer_;
}

bool HeapScope::admit(size_t bytes) noexcept {
  for (const HeapScope* scope = innermost; scope && scope->account_; scope = scope->outer_)
    if (!scope->account_->admit(bytes)) return false;
  return true;
}

void HeapScope::allocated(void* block) noexcept {
  if (!innermost || !innermost->account_) return;
  const size_t bytes = block_bytes(block);
  for (const HeapScope* scope = innermost; scope && scope->account_; scope = scope->outer_)
    scope->account_->add(bytes);
}

void HeapScope::freed(void* block) noexcept {
  if (!innermost || !innermost->account_) return;
  const size_t bytes = block_bytes(block);
  for (const HeapScope* scope = innermost; scope && scope->account_; scope = scope->outer_)
    scope->account_->remove(bytes);
}

void release_free_memory() { ::malloc_trim(0); }

}  // namespace culprit

// The standard library's other forms of new and delete call these; the address sanitizer's forms do not.
[[gnu::noinline]] void* operator new(size_t size) {
  if (!culprit::HeapScope::admit(size)) throw std::bad_alloc();
  for (;;) {
    if (void* block = std::malloc(std::max<size_t>(size, 1))) {
      culprit::HeapScope::allocated(block);
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
  culprit::HeapScope::freed(block);
  std::free(block);
}

[[gnu::noinline]] void operator delete(void* block, size_t) noexcept { operator delete(block); }
