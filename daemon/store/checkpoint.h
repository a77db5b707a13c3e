// What a segment begins with: where every source stood. Any thread; owns what it was told.
#pragma once

#include <cstdint>
#include <map>

#include "base/status.h"
#include "model/piece.h"
#include "store/record.h"
#include "store/segment.h"

namespace culprit::store {

class Checkpoint : public RecordSink {
 public:
  std::map<StreamId, Position> positions;
  bool complete = false;  // else it is damaged, or another spool's

  void on_position(StreamId stream, const Position& position) override;
  void on_checkpoint(StreamId next_id, uint32_t streams) override;
};

// From the beginning of `reader`'s segment. An error where the disk fails.
Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch);

}  // namespace culprit::store
