// The beginning of a segment: the position of every source. Any thread; owns its data.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "model/piece.h"
#include "store/record.h"
#include "store/segment.h"

namespace culprit::store {

class Checkpoint : public RecordSink {
 public:
  // Of all streams, or of those in `only` (sorted, borrowed for the object's life).
  explicit Checkpoint(const std::vector<StreamId>* only = nullptr) : only_(only) {}
  std::map<StreamId, Position> positions;
  bool complete = false;  // false: damaged, or from another spool

  void on_position(StreamId stream, const Position& position) override;
  void on_checkpoint(StreamId next_id, uint32_t streams) override;

 private:
  const std::vector<StreamId>* only_;
  uint32_t reported_ = 0;
};

// Reads the beginning of `reader`'s segment. An error if the disk fails.
Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch,
                                   const std::vector<StreamId>* only = nullptr);

}  // namespace culprit::store
