// The records of one source, one for each of its writers, until its last batch. One thread; pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/logs/records.h"

namespace culprit::logs {

class WriterRecords {
 public:
  // The record of a writer: an index for operator[].
  uint32_t open(uint32_t writer) {
    const auto next = static_cast<uint32_t>(records_.size());
    const auto [record, fresh] = record_of_.try_emplace(writer, next);
    if (fresh) records_.emplace_back();
    return record->second;
  }
  Record& operator[](uint32_t record) { return records_[record]; }
  uint32_t size() const { return static_cast<uint32_t>(records_.size()); }

 private:
  std::unordered_map<uint32_t, uint32_t> record_of_;  // by writer
  std::vector<Record> records_;
};

}  // namespace culprit::logs
