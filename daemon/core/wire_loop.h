// Metrics and events of a loop as bytes of blocks of core/wire.h. Names stand there once in a session and are
// numbers from then on; a value or digest is what differs from the last one of its name, bit by bit, so that
// replicas that agree cost a byte each and equalities hold to the last bit; rows name their values only where
// they are others than those of the row before.
//
// Pure; one thread. Reading is for bytes of strangers: it is bounded, or fails.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/logs/packed.h"
#include "model/loop_batch.h"

namespace culprit::core {

// Of a block: 24 bytes each where it is read, and less than its share of a block where it is written. Rows,
// events and their fields count as so many values as they are long where they are read, whatever they say.
constexpr size_t kLoopValues = 1 << 20;
constexpr size_t kValuesOfRow = 4, kValuesOfEvent = 12, kValuesOfField = 7;

class LoopPacker {
 public:
  // Rows that stand in one note; `rows` is what is left of them, for further ones: of another host. What is
  // too much for the session or the second is left out and counted.
  std::string pack(std::span<const MetricRow>& rows, TimeNs now);
  std::string pack(const LoopEvent& event);
  // Whether the block has room for it; the reader refuses what is more.
  bool has_room(const LoopEvent& event) const;

  void begin_block() { values_ = 0; }
  bool full() const { return values_ >= kLoopValues / 2; }
  uint64_t dropped() const { return dropped_rows_ + dropped_values_; }
  // A sentence on what was left out since the last call; empty: nothing.
  std::string told_drops();
  void drop(size_t rows) { dropped_rows_ += rows; }

 private:
  uint32_t number_of(std::string_view name);
  bool has_time_for(size_t bytes, TimeNs now);
  void list_names(const MetricRow& row);
  void put_names(size_t values, PackedWriter& out);
  void put_values(const MetricRow& row, PackedWriter& out);

  std::unordered_map<std::string, uint32_t> names_;
  std::vector<std::string_view> fresh_;             // of this note
  std::vector<uint64_t> last_value_, last_digest_;  // by name
  std::vector<uint32_t> row_, before_;              // scratch: names of a row, of the row before
  size_t values_ = 0;                               // of the block
  int64_t second_ = 0;
  size_t bytes_ = 0;  // of that second
  uint64_t dropped_rows_ = 0, dropped_values_ = 0, told_rows_ = 0, told_values_ = 0;
};

class LoopUnpacker {
 public:
  void begin_block() { values_ = 0; }
  // False where the bytes break the format.
  bool rows(PackedReader& in, LoopBatch& out);
  bool event(PackedReader& in, LoopBatch& out);

 private:
  bool names_of_row(PackedReader& in);

  std::deque<std::string> names_;
  std::vector<uint64_t> last_value_, last_digest_;
  std::vector<uint32_t> value_names_, digest_names_;  // of the row before
  std::vector<MetricValue> row_values_;               // scratch
  std::vector<MetricDigest> row_digests_;
  size_t values_ = 0;
};

}  // namespace culprit::core
