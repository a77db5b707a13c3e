#include "store/checkpoint.h"

#include <algorithm>

namespace culprit::store {

void Checkpoint::on_position(StreamId stream, const Position& position) {
  reported_ += 1;
  if (only_ == nullptr || std::binary_search(only_->begin(), only_->end(), stream))
    positions[stream] = position;
}

void Checkpoint::on_checkpoint(StreamId, uint32_t streams) { complete = streams == reported_; }

Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch, const std::vector<StreamId>* only) {
  Checkpoint checkpoint(only);
  for (;;) {
    const auto more = reader.next({.streams = 0, .checkpoints = true});
    if (!more) return tl::unexpected(more.error());
    if (!*more || reader.frame().epoch != epoch || !read_records(reader.content(), checkpoint) ||
        reader.frame().kind == FrameKind::kCheckpointEnd)
      return checkpoint;
  }
}

}  // namespace culprit::store
