#include "app/jobs/flush_parts.h"

#include <utility>

namespace culprit::app {
namespace {

constexpr size_t kFrameBytes = (6 << 20) - (64 << 10);

}  // namespace

Piece end_of(StreamId stream, uint64_t offset) {
  Piece last;
  last.stream = stream;
  last.offset = offset;
  last.ends = true;
  return last;
}

StreamId FlushParts::open(OriginKind kind, std::string job, std::string path, std::optional<Principal> uid) {
  StreamInfo info;
  info.id = options_.allocate();
  info.kind = kind;
  info.job = std::move(job);
  info.path = std::move(path);
  info.uid = uid;
  info.opened_ns = now_;
  weight_ += info.path.size() + info.job.size() + kRecordBytes;
  parts_.back().opened.push_back(std::move(info));
  return parts_.back().opened.back().id;
}

void FlushParts::add(Piece piece) {
  piece.time_ns = now_;
  weight_ += piece.bytes.size() + kRecordBytes;
  parts_.back().pieces.push_back(std::move(piece));
}

void FlushParts::add(ForwardMark mark) {
  if (mark.stream == kNoStream)
    mark.stream = open(OriginKind::kMark, std::move(mark.job), std::move(mark.path));
  mark.place.epoch = options_.evidence_epoch;
  Piece piece;
  piece.stream = mark.stream;
  piece.place = mark.place.stored();
  add(std::move(piece));
}

void FlushParts::may_part() {
  if (weight_ < options_.part_bytes) return;
  parts_.emplace_back();
  weight_ = 0;
}

bool FlushParts::has_room() const { return weight_ < kFrameBytes; }

std::vector<PieceBatch> FlushParts::finish() {
  for (PieceBatch& part : parts_) part.whole = true;
  return std::move(parts_);
}

}  // namespace culprit::app
