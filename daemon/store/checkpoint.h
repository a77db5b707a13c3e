// The checkpoint at the beginning of a segment: the position of every source. Any thread; owns its data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/piece.h"
#include "store/frame_packer.h"
#include "store/record.h"
#include "store/segment.h"

namespace culprit::store {

class Checkpoint : public RecordSink {
 public:
  // Collects all streams, or only those in `only` (sorted, borrowed for the object's life).
  explicit Checkpoint(const std::vector<StreamId>* only = nullptr) : only_(only) {}
  std::map<StreamId, Position> positions;
  // Sizes of the streams at the beginning of the segment. In a cleaned segment, the positions of removed
  // sources are those after the segment.
  std::map<StreamId, uint64_t> begins;
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
Status read_checkpoint(SegmentReader& reader, uint64_t epoch, Checkpoint& checkpoint);

// Packs a checkpoint into one frame, or into several if it is large.
class CheckpointWriter {
 public:
  // `header`: epoch, segment, sequence and time of the frames. Borrows the packer.
  CheckpointWriter(FramePacker& packer, FrameHeader header);
  void add_acknowledged(uint64_t sequence) { put_acknowledged(raw_, sequence); }
  Status add(const StreamInfo& info, const Position& position);
  // `begin`: Checkpoint::begins.
  Status add(const StreamInfo& info, const Position& position, uint64_t begin);
  Result<std::string> finish(StreamId next_id);

 private:
  FramePacker& packer_;
  FrameHeader header_;
  uint32_t count_ = 0;
  std::string raw_, out_;
};

}  // namespace culprit::store
