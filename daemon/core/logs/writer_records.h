// The records of one source, one per writer, until the source's last batch. Almost all lines are plain: a
// writer of plain lines stores only the form of its last line. One thread; pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/records.h"

namespace culprit::logs {

class WriterRecords {
 public:
  // The index of a writer's record.
  uint32_t open(uint32_t writer) {
    const auto next = static_cast<uint32_t>(slots_.size());
    if (record_of_) {
      const auto [record, fresh] = record_of_->try_emplace(writer, next);
      if (fresh) slots_.push_back({writer, kNoForm, nullptr});
      return *record;
    }
    for (uint32_t i = 0; i < next; ++i)
      if (slots_[i].writer == writer) return i;
    slots_.push_back({writer, kNoForm, nullptr});
    if (slots_.size() > kFew) {
      record_of_ = std::make_unique<FlatMap<uint32_t>>(2 * kFew);
      for (uint32_t i = 0; i <= next; ++i) record_of_->try_emplace(slots_[i].writer, i);
    }
    return next;
  }
  // Adds a plain line, which is its own event. False: the line may belong to the open record.
  bool add_plain(uint32_t record, uint32_t form) {
    Slot& slot = slots_[record];
    if (slot.record) {
      if (slot.record->open()) return false;
      slot.record.reset();
    }
    slot.form = form;
    return true;
  }
  Record& operator[](uint32_t record) {
    Slot& slot = slots_[record];
    if (!slot.record) slot.record = std::make_unique<Record>(slot.form);
    return *slot.record;
  }
  // Call at the end of a batch.
  void leave_batch(uint32_t record) {
    if (slots_[record].record) slots_[record].record->leave_batch();
  }
  // Calls `with`(index, record) for each writer with a Record object.
  template <class With>
  void each(With with) {
    for (uint32_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].record) with(i, *slots_[i].record);
  }

 private:
  // Most files have one writer: a linear search suffices for a few.
  static constexpr size_t kFew = 8;

  struct Slot {
    uint32_t writer = 0;
    uint32_t form = kNoForm;         // of the last plain line
    std::unique_ptr<Record> record;  // until the next plain line outside the record
  };
  std::vector<Slot> slots_;
  std::unique_ptr<FlatMap<uint32_t>> record_of_;  // by writer; null: at most kFew writers
};

}  // namespace culprit::logs
