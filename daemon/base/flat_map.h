// An open-addressing map from 64-bit keys to small values, for the counters of hot loops. Keys are mixed, so
// any bits may vary. No erase. One thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace culprit {

template <class Value>
class FlatMap {
 public:
  explicit FlatMap(size_t capacity = 16) {
    size_t slots = 16;
    while (slots < capacity * 2) slots *= 2;
    slots_.resize(slots);
  }

  // The value of `key`, made from `fresh` where there is none; second tells whether it was made.
  std::pair<Value*, bool> try_emplace(uint64_t key, const Value& fresh) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = find_slot(key);
    if (slot.used) return {&slot.value, false};
    slot = Slot{key, fresh, true};
    ++size_;
    return {&slot.value, true};
  }

  const Value* find(uint64_t key) const {
    const Slot& slot = const_cast<FlatMap*>(this)->find_slot(key);
    return slot.used ? &slot.value : nullptr;
  }

  size_t size() const { return size_; }

  // Keeps the memory.
  void clear() {
    if (size_ == 0) return;
    for (Slot& slot : slots_) slot.used = false;
    size_ = 0;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
    bool used = false;
  };

  Slot& find_slot(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    for (size_t i = mix64(key, 0) & mask;; i = (i + 1) & mask)
      if (!slots_[i].used || slots_[i].key == key) return slots_[i];
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.used) find_slot(slot.key) = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace culprit
