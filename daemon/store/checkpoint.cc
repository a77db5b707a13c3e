#include "store/checkpoint.h"

namespace culprit::store {

void Checkpoint::on_position(StreamId stream, const Position& position) { positions[stream] = position; }

void Checkpoint::on_checkpoint(StreamId, uint32_t streams) { complete = streams == positions.size(); }

Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch) {
  Checkpoint checkpoint;
  for (;;) {
    const auto more = reader.next({.streams = 0, .checkpoints = true});
    if (!more) return tl::unexpected(more.error());
    if (!*more || reader.frame().epoch != epoch || !read_records(reader.content(), checkpoint) ||
        reader.frame().kind == FrameKind::kCheckpointEnd)
      return checkpoint;
  }
}

}  // namespace culprit::store
