#include "store/archive_log.h"

#include <algorithm>

#include "store/evidence.h"

namespace culprit::store {

void LogTaker::touch(ArchivedStream& stream) {
  if (!std::exchange(stream.touched, true)) log_.touched_streams.push_back(stream.info.id);
}

void LogTaker::on_stream(const StreamInfo& info) {
  const auto [at, fresh] = log_.streams.try_emplace(info.id);
  if (!fresh) return;  // declared by a checkpoint, or repeated
  at->second.info = info;
  at->second.skips = log_.skips;
  log_.text_bytes += info.job.size() + info.path.size();
  touch(at->second);
  if (taken_ != nullptr) taken_->opened.push_back(info);
}

// A position from a checkpoint or an origin: the bytes before it are not stored if the stream is unknown.
void LogTaker::on_position(StreamId id, const Position& position) {
  const auto found = log_.streams.find(id);
  if (kind_ == FrameKind::kData || found == log_.streams.end()) return;
  ArchivedStream& stream = found->second;
  if (stream.in_index || stream.size > 0 || stream.extent.segment != 0) return;
  stream.size = stream.first = position.size;
  stream.ended = position.ended;
  touch(stream);
}

void LogTaker::on_piece(const Piece& piece, std::string_view bytes) {
  const auto found = log_.streams.find(piece.stream);
  if (found == log_.streams.end()) {
    stats_.orphans += 1;
    return;
  }
  ArchivedStream& stream = found->second;
  Piece copy = piece;
  if (piece.offset < stream.size) {
    const uint64_t known = std::min<uint64_t>(stream.size - piece.offset, bytes.size());
    bytes.remove_prefix(known);
    copy.offset = stream.size;
    copy.gap.reset();  // already reported with the bytes
    if (bytes.empty() && !piece.ends) return;
  }
  if (copy.offset > stream.size) {
    const Gap missing = hole(stream, copy.offset - stream.size);
    if (!copy.gap) copy.gap = Gap{0, 0, missing.reason};
    copy.gap->bytes += missing.bytes;
  }
  if (!std::exchange(stream.begun, true) && stream.first > 0) {  // earlier bytes were never stored
    if (!copy.gap) copy.gap = Gap{0, 0, std::string(kDropped)};
    copy.gap->bytes += stream.first;
  }
  stream.skips = log_.skips;
  stream.size = copy.offset + bytes.size();
  stream.ended = piece.ends;
  touch(stream);
  extend(stream, copy.offset);
  if (taken_ == nullptr) return;
  copy.bytes.assign(bytes);
  taken_->pieces.push_back(std::move(copy));
}

Gap LogTaker::hole(ArchivedStream& stream, uint64_t bytes) {
  const bool skipped = log_.skips > stream.skips;
  const std::string reason = skipped ? log_.skip_reason : std::string(kNotSent);
  stats_.holes += 1;
  stats_.hole_bytes += bytes;
  log_.new_holes.push_back({stream.info.id, {stream.size, bytes, reason}});
  return {bytes, 0, reason};
}

void LogTaker::extend(ArchivedStream& stream, uint64_t from) {
  Extent& extent = stream.extent;
  if (extent.segment != place_.segment) {
    if (extent.segment != 0) log_.left_extents.push_back({stream.info.id, extent});
    extent = {place_.segment, from, from, place_.at, place_.at};
  }
  extent.to = stream.size;
  extent.last_at = place_.at;
}

void LogTaker::on_origin(const OriginRecord& origin) {
  if (kind_ == FrameKind::kOrigin) log_.sequence = std::max(log_.sequence, origin.sequence);
}

void LogTaker::on_skipped(const SkippedRecord& skipped) {
  if (kind_ == FrameKind::kOrigin) skip(skipped);
}

void LogTaker::note_lost(uint64_t sequence, TimeNs now) {
  if (sequence > log_.sequence + 1) skip({log_.sequence + 1, sequence - 1, now, std::string(kDamaged)});
}

void LogTaker::skip(const SkippedRecord& skipped) {
  log_.skips += 1;
  log_.skip_reason = skipped.reason;
  log_.sequence = std::max(log_.sequence, skipped.to);
  if (!log_.new_skips.empty()) {
    SkippedFrames& last = log_.new_skips.back();
    if (last.to + 1 == skipped.from && last.reason == skipped.reason) {
      last.to = skipped.to;
      return;
    }
  }
  log_.new_skips.push_back({skipped.from, skipped.to, skipped.time_ns, skipped.reason});
}

}  // namespace culprit::store
