#include "store/spool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "store/checkpoint.h"

namespace culprit::store {

namespace {

// Limit of bytes in memory while the disk fails: a packed frame and the current one.
constexpr size_t kPendingBytes = kFrameRawMax;
static_assert(kBatchBytes + kFrameBytes <= kPendingBytes);
// A full spool has at least this many segments, so that a deletion removes at most an eighth of it.
constexpr uint64_t kSegmentsMin = 8;
constexpr uint64_t kSegmentBytesMin = 64 << 10;

}  // namespace

Spool::Spool(io::Files& files, SpoolOptions options)
    : files_(files),
      options_(std::move(options)),
      packer_(options_.folder, options_.level),
      segments_(files, options_.folder) {}

Spool::~Spool() = default;

Result<std::unique_ptr<Spool>> Spool::open(io::Files& files, SpoolOptions options, TimeNs now) {
  std::unique_ptr<Spool> spool(new Spool(files, std::move(options)));
  if (const Status status = spool->recover(now); !status) return tl::unexpected(status.error());
  return spool;
}

// ---- state

SpoolStats Spool::stats() const {
  SpoolStats stats = stats_;
  const auto& segments = segments_.all();
  stats.bytes = segments_.bytes();
  stats.segments = segments.size();
  stats.pending_bytes = raw_.size() + ready_.size();
  if (!options_.hold) return stats;
  stats.waiting_bytes = segments_.bytes_after(std::max(acknowledged_, received_), written_sequence_);
  stats.received_bytes = segments_.bytes_after(acknowledged_, written_sequence_) - stats.waiting_bytes;
  return stats;
}

uint64_t Spool::first_sequence() const {
  return (segments_.all().empty() ? written_sequence_ : segments_.all().front().before) + 1;
}

void Spool::retain_after(uint64_t acknowledged, uint64_t received) {
  acknowledged_ = std::max(acknowledged_, acknowledged);
  received_ = std::max(received_, received);
}

void Spool::raise_sequence(uint64_t sequence) {
  sequence = std::min(sequence, kSequenceMax / 2);
  sequence_ = std::max(sequence_, sequence);
  if (!ready_.empty() && ready_header_.sequence <= sequence) ready_header_.sequence = ++sequence_;
}

Status Spool::note(Status status, TimeNs now) {
  if (status) {
    stats_.failing_since_ns = kNoTime;
    return status;
  }
  stats_.failures += 1;
  stats_.last_error = status.error().text;
  if (stats_.failing_since_ns == kNoTime) stats_.failing_since_ns = now;
  return status;
}

// ---- taking batches

Status Spool::append(const PieceBatch& batch, TimeNs now) {
  CULPRIT_CHECK(owner_.here());
  const size_t size = encoded_size_max(batch);
  if (size > kBatchBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("batch of {} bytes: at most {} are taken", size, kBatchBytes));
  crash_point("store.before_append");
  if (raw_.size() + size > kPendingBytes || !ready_.empty()) {
    const Status written = write_pending(now);
    if (!written && raw_.size() + size > kPendingBytes) return written;
  }
  if (streams_.size() + batch.opened.size() > kStreamsMax)
    return fail(ErrorCode::kLimit,
                fmt::format("{}: more than {} sources at a time", options_.folder, kStreamsMax));
  if (const Status declared = streams_.declare(batch); !declared) return declared;
  add_to_frame(batch, now);
  crash_point("store.after_append");
  return {};
}

void Spool::add_to_frame(const PieceBatch& batch, TimeNs now) {
  for (const StreamInfo& info : batch.opened) {
    put_stream(raw_, info);
    raw_declares_ = true;
    raw_mask_ |= stream_bit(info.id);
    streams_.open(info);
  }
  for (const Piece& piece : batch.pieces) {
    put_piece(raw_, piece);
    raw_mask_ |= stream_bit(piece.stream);
    stats_.raw_bytes += piece.bytes.size();
    streams_.append(piece);
    // A write error is recorded in stats_; the batch is accepted and stays in memory.
    if (!batch.whole && raw_.size() >= kFrameBytes && stats_.failing_since_ns == kNoTime)
      (void)write_pending(now);
  }
}

// ---- writing frames

Result<std::vector<CommittedOffset>> Spool::commit(TimeNs now) {
  CULPRIT_CHECK(owner_.here());
  if (const Status written = write_pending(now); !written) return tl::unexpected(written.error());
  std::vector<CommittedOffset> moved = streams_.drain_moved();
  stats_.forgotten_streams += streams_.forget();
  return moved;
}

Status Spool::write_pending(TimeNs now) {
  if (const Status written = write_ready(now); !written) return written;
  if (raw_.empty()) return note({}, now);
  if (const Status packed = pack_pending(now); !packed) return note(packed, now);
  return write_ready(now);
}

Status Spool::pack_pending(TimeNs now) {
  ready_header_ = {};
  ready_header_.epoch = epoch_;
  ready_header_.sequence = sequence_ + 1;
  ready_header_.time_ns = now;
  ready_header_.stream_mask = raw_mask_;
  ready_header_.declares = raw_declares_;
  if (const Status packed = packer_.pack(ready_header_, raw_, ready_); !packed) return packed;
  sequence_ += 1;
  raw_.clear();
  if (raw_.capacity() > 4 * kFrameBytes) raw_.shrink_to_fit();  // it had waited for the disk
  raw_mask_ = 0;
  raw_declares_ = false;
  ready_marks_ = streams_.end_frame();
  return {};
}

Status Spool::write_ready(TimeNs now) {
  if (ready_.empty()) return {};
  Status written = try_write_ready(now);
  while (!written && make_room_on_disk(ready_.size(), now)) written = try_write_ready(now);
  if (!written) return note(written, now);
  ready_is_valid();
  return note({}, now);
}

Status Spool::try_write_ready(TimeNs now) {
  if (const Status there = ensure_segment(now); !there) return there;
  if (const Status room = room_for(ready_.size(), now); !room) return room;
  CULPRIT_CHECK(segments_.is_open() && ready_.size() >= kFrameHeaderBytes);
  ready_header_.segment = segments_.all().back().number;
  ready_.replace(0, kFrameHeaderBytes, encode(ready_header_));
  return segments_.append(ready_);
}

void Spool::ready_is_valid() {
  for (const SpoolStreams::Mark& mark : ready_marks_)
    if (const StreamInfo* const info = options_.fair ? streams_.info(mark.stream) : nullptr)
      shares_.add(ready_header_.segment, owner_of(*info), streams_.uncommitted_bytes(mark));
  streams_.commit(ready_marks_);
  ready_marks_.clear();
  CULPRIT_CHECK(ready_header_.sequence > written_sequence_);
  written_sequence_ = ready_header_.sequence;
  stats_.frames += 1;
  stats_.stored_bytes += ready_.size();
  ready_.clear();
  if (ready_.capacity() > 4 * kFrameBytes) ready_.shrink_to_fit();
}

// ---- segments

void Spool::choose_segment_bytes() {
  uint64_t room = options_.max_bytes;
  if (const auto disk = files_.space(options_.folder)) room = std::min(room, segments_.bytes() + disk->free);
  segment_bytes_ = std::min(options_.segment_bytes, std::max(room / kSegmentsMin, kSegmentBytesMin));
}

Status Spool::ensure_segment(TimeNs now) {
  segments_.mend_tail();
  if (segments_.is_open()) {
    if (segments_.all().back().size - checkpoint_end_ < segment_bytes_) return {};
    if (const Status finished = segments_.finish(); !finished) (void)note(finished, now);
  }
  return begin_segment(now);
}

Status Spool::begin_segment(TimeNs now) {
  choose_segment_bytes();
  const uint64_t number = segments_.next_number();
  const auto bytes = checkpoint(number, now);
  if (!bytes) return tl::unexpected(bytes.error());
  if (const Status room = room_for(bytes->size() + kSegmentHeaderBytes, now); !room) return room;
  const Status begun = segments_.begin({kSegmentVersion, epoch_, number, now}, *bytes, written_sequence_);
  if (begun) checkpoint_end_ = kSegmentHeaderBytes + bytes->size();
  return begun;
}

// Packs the positions of all sources, so that a segment is readable without earlier ones.
Result<std::string> Spool::checkpoint(uint64_t number, TimeNs now) {
  FrameHeader header;
  header.epoch = epoch_;
  header.segment = number;
  header.sequence = written_sequence_;
  header.time_ns = now;
  CheckpointWriter writer(packer_, header);
  if (options_.hold) writer.add_acknowledged(acknowledged_);
  const Status added = streams_.for_each_committed(
      [&](const StreamInfo& info, const Position& position) { return writer.add(info, position); });
  if (!added) return tl::unexpected(added.error());
  return writer.finish(streams_.next_id());
}

Status Spool::sync() {
  crash_point("store.before_sync");
  Status synced = segments_.sync();
  if (synced) {
    synced_sequence_ = written_sequence_;
  } else {
    stats_.failures += 1;
    stats_.last_error = synced.error().text;
  }
  return synced;
}

}  // namespace culprit::store
