// What a segment begins with: where every source stood. Any thread; owns what it was told.
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
  // Of all streams, or of those in `only`: sorted, borrowed for the object's life.
  explicit Checkpoint(const std::vector<StreamId>* only = nullptr) : only_(only) {}
  std::map<StreamId, Position> positions;
  bool complete = false;  // else it is damaged, or another spool's

  void on_position(StreamId stream, const Position& position) override;
  void on_checkpoint(StreamId next_id, uint32_t streams) override;

 private:
  const std::vector<StreamId>* only_;
  uint32_t told_ = 0;
};

// From the beginning of `reader`'s segment. An error where the disk fails.
Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch,
                                   const std::vector<StreamId>* only = nullptr);

}  // namespace culprit::store
