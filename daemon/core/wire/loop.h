// Serialises metrics and events of a loop for blocks of core/wire/inputs.h. A name is sent once per session
// and then becomes a number. A value or digest is sent as XOR with the previous one of the same name: equal
// replicas cost one byte each, and equality is exact. A row lists its names only if they differ from the
// previous row's.
//
// Pure; one thread. Untrusted input: reading is bounded, or fails.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/logs/packed.h"
#include "model/loop_batch.h"

namespace culprit::wire {

// Limit of a block: a value takes 24 bytes in the reader, and fits the block's share for values in the
// writer. Rows, events and their fields count as the number of values of equal size in the reader.
constexpr size_t kLoopValues = 1 << 20;
constexpr size_t kValuesOfRow = 4, kValuesOfEvent = 12, kValuesOfField = 7;

class LoopPacker {
 public:
  // Packs leading rows of one host into one note and removes them from `rows`; the next host's rows remain.
  // Rows beyond the limit per block or per second are dropped and counted.
  std::string pack(std::span<const MetricRow>& rows, TimeNs now);
  std::string pack(const LoopEvent& event);
  // Whether the event fits the block; the reader rejects larger blocks.
  bool has_room(const LoopEvent& event) const;

  void begin_block() { values_ = 0; }
  bool full() const { return values_ >= kLoopValues / 2; }
  uint64_t dropped() const { return dropped_rows_ + dropped_values_; }
  // A sentence on the drops since the last call; empty: none.
  std::string drop_sentences();
  void drop(size_t rows) { dropped_rows_ += rows; }

 private:
  uint32_t number_of(std::string_view name);
  bool has_time_for(size_t bytes, TimeNs now);
  void list_names(const MetricRow& row);
  void put_names(size_t values, PackedWriter& out);
  void put_values(const MetricRow& row, PackedWriter& out);

  std::unordered_map<std::string, uint32_t> names_;
  std::vector<std::string_view> fresh_;             // new in this note
  std::vector<uint64_t> last_value_, last_digest_;  // by name
  std::vector<uint32_t> row_, before_;              // scratch: names of this row, and of the previous row
  size_t values_ = 0;                               // in the block
  int64_t second_ = 0;
  size_t bytes_ = 0;  // in that second
  uint64_t dropped_rows_ = 0, dropped_values_ = 0, reported_rows_ = 0, reported_values_ = 0;
};

class LoopUnpacker {
 public:
  void begin_block() { values_ = 0; }
  // False if the bytes violate the format.
  bool rows(PackedReader& in, LoopBatch& out);
  bool event(PackedReader& in, LoopBatch& out);

 private:
  bool names_of_row(PackedReader& in);

  std::deque<std::string> names_;
  std::vector<uint64_t> last_value_, last_digest_;
  std::vector<uint32_t> value_names_, digest_names_;  // of the previous row
  std::vector<MetricValue> row_values_;               // scratch
  std::vector<MetricDigest> row_digests_;
  size_t values_ = 0;
};

}  // namespace culprit::wire
