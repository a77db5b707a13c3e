// An open-addressing map from 64-bit keys to small values, for counters in hot loops. Keys are mixed, so keys
// may differ in any bits. No erase. One thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace culprit {

// Distance of a prefetch ahead of its look-up: the number of concurrent memory accesses that a core supports.
constexpr size_t kPrefetchAhead = 8;

template <class Value>
class FlatMap {
 public:
  explicit FlatMap(size_t capacity = 16) {
    size_t slots = 16;
    while (slots < capacity * 2) slots *= 2;
    slots_.resize(slots);
  }

  // The value of `key`, created from `fresh` if missing; second: whether it was created.
  std::pair<Value*, bool> try_emplace(uint64_t key, const Value& fresh) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = find_slot(key);
    if (slot.life == life_) return {&slot.value, false};
    slot = Slot{key, fresh, life_};
    ++size_;
    return {&slot.value, true};
  }

  const Value* find(uint64_t key) const {
    const Slot& slot = const_cast<FlatMap*>(this)->find_slot(key);
    return slot.life == life_ ? &slot.value : nullptr;
  }

  // Prefetches the slot of `key`. A large map does not fit the core's cache; prefetching overlaps the cache
  // misses of several look-ups.
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[slot_of(key)]); }

  size_t size() const { return size_; }

  // Keeps the memory without touching it: small uses of a once large map stay cheap.
  void clear() {
    size_ = 0;
    if (++life_ != 0) return;
    for (Slot& slot : slots_) slot.life = 0;
    life_ = 1;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
    // the slot is in use if this equals the map's life; clear() starts a new life; 0: never used
    uint32_t life = 0;
  };

  size_t slot_of(uint64_t key) const { return mix64(key, 0) & (slots_.size() - 1); }

  Slot& find_slot(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = slot_of(key);; i = (i + 1) & mask)
      if (slots_[i].life != life_ || slots_[i].key == key) return slots_[i];
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.life == life_) find_slot(slot.key) = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  uint32_t life_ = 1;
};

}  // namespace culprit
