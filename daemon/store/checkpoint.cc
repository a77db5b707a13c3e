#include "store/checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace culprit::store {

namespace {

// Raw bytes of one checkpoint frame; enough for 5,000 sources.
constexpr size_t kCheckpointPartBytes = 1 << 20;

}  // namespace

void Checkpoint::on_position(StreamId stream, const Position& position) {
  reported_ += 1;
  if (only_ != nullptr && !std::binary_search(only_->begin(), only_->end(), stream)) return;
  begins.try_emplace(stream, position.size);
  positions[stream] = position;  // the last one counts
}

void Checkpoint::on_checkpoint(StreamId, uint32_t streams) { complete = streams == reported_; }

Result<Checkpoint> read_checkpoint(SegmentReader& reader, uint64_t epoch, const std::vector<StreamId>* only) {
  CULPRIT_CHECK(only == nullptr || std::ranges::is_sorted(*only));
  Checkpoint checkpoint(only);
  if (const Status read = read_checkpoint(reader, epoch, checkpoint); !read)
    return tl::unexpected(read.error());
  return checkpoint;
}

Status read_checkpoint(SegmentReader& reader, uint64_t epoch, Checkpoint& checkpoint) {
  for (;;) {
    const auto more = reader.next({.streams = 0, .checkpoints = true});
    if (!more) return tl::unexpected(more.error());
    if (!*more || reader.frame().epoch != epoch || !read_records(reader.content(), checkpoint) ||
        reader.frame().kind == FrameKind::kCheckpointEnd)
      return {};
  }
}

CheckpointWriter::CheckpointWriter(FramePacker& packer, FrameHeader header)
    : packer_(packer), header_(header) {
  header_.stream_mask = ~uint64_t{0};
  header_.declares = true;
}

Status CheckpointWriter::add(const StreamInfo& info, const Position& position) {
  return add(info, position, position.size);
}

Status CheckpointWriter::add(const StreamInfo& info, const Position& position, uint64_t begin) {
  put_stream(raw_, info);
  if (begin != position.size) {
    Position first;
    first.size = begin;
    put_position(raw_, info.id, first);
    count_ += 1;
  }
  put_position(raw_, info.id, position);
  count_ += 1;
  if (raw_.size() < kCheckpointPartBytes) return {};
  header_.kind = FrameKind::kCheckpointPart;
  if (Status packed = packer_.pack(header_, raw_, out_); !packed) return packed;
  raw_.clear();
  return {};
}

Result<std::string> CheckpointWriter::finish(StreamId next_id) {
  put_checkpoint(raw_, next_id, count_);
  header_.kind = FrameKind::kCheckpointEnd;
  if (const Status packed = packer_.pack(header_, raw_, out_); !packed) return tl::unexpected(packed.error());
  return std::move(out_);
}

}  // namespace culprit::store
