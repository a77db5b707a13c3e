// Segments of the spool: created, finished, deleted, and the handling of disk failures.
#include <fmt/format.h>

#include <algorithm>

#include "base/crash_point.h"
#include "store/spool.h"

namespace culprit::store {

namespace {

// Bytes of a checkpoint before packing: 5,000 sources.
constexpr size_t kCheckpointPartBytes = 1 << 20;
// A full spool has at least this many segments, so that a deletion removes an eighth and not all.
constexpr uint64_t kSegmentsMin = 8;
constexpr uint64_t kSegmentBytesMin = 64 << 10;
// Free space, besides the write itself, below which a disk counts as full: file systems reserve some.
constexpr uint64_t kDiskSlackBytes = 1 << 20;

}  // namespace

void Spool::choose_segment_bytes() {
  uint64_t room = options_.max_bytes;
  if (const auto disk = files_.space(options_.folder)) room = std::min(room, bytes_ + disk->free);
  segment_bytes_ = std::min(options_.segment_bytes, std::max(room / kSegmentsMin, kSegmentBytesMin));
}

Status Spool::ensure_segment(TimeNs now) {
  if (handle_ && tail_unknown_) mend_tail();
  if (handle_ && segments_.back().size - checkpoint_end_ < segment_bytes_) return {};
  if (handle_) {
    // sync() covers finished segments too. A failure here is reported, and sync() retries.
    if (const Status synced = handle_->sync(); !synced) {
      (void)note(synced, now);
      unsynced_.push_back(segments_.back().number);
    }
    handle_.reset();
  }
  return begin_segment(now);
}

// Truncates the remains of a failed write, or else abandons the segment.
void Spool::mend_tail() {
  tail_unknown_ = false;
  Segment& segment = segments_.back();
  if (handle_->truncate(segment.size)) return;
  if (const auto status = handle_->status()) {
    bytes_ += status->size - std::min(status->size, segment.size);
    segment.size = std::max(status->size, segment.size);
  }
  unsynced_.push_back(segment.number);
  handle_.reset();
}

Status Spool::begin_segment(TimeNs now) {
  choose_segment_bytes();
  const uint64_t number = segments_.empty() ? 1 : segments_.back().number + 1;
  const auto bytes = checkpoint(number, now);
  if (!bytes) return tl::unexpected(bytes.error());
  if (const Status room = room_for(bytes->size() + kSegmentHeaderBytes); !room) return room;
  const std::string path = options_.folder + "/" + segment_name(number);
  auto file = files_.open(path, io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  Status written = (*file)->append(encode(SegmentHeader{kSegmentVersion, epoch_, number, now}));
  crash_point("store.segment_begun");
  if (written) written = (*file)->append(*bytes);
  if (!written) {
    file->reset();
    // The segment has only a copy of known data. If it cannot be deleted, its number stays used.
    if (!files_.remove(path)) segments_.push_back({number, 0, written_sequence_});
    return written;
  }
  crash_point("store.checkpoint_written");
  handle_ = std::move(*file);
  checkpoint_end_ = kSegmentHeaderBytes + bytes->size();
  segments_.push_back({number, checkpoint_end_, written_sequence_});
  bytes_ += checkpoint_end_;
  folder_changed_ = true;
  return {};
}

// The positions of all sources, so that a segment is readable without earlier ones.
Result<std::string> Spool::checkpoint(uint64_t number, TimeNs now) {
  FrameHeader header;
  header.segment = number;
  header.sequence = written_sequence_;
  header.time_ns = now;
  header.stream_mask = ~uint64_t{0};
  header.declares = true;
  std::string out, raw;
  if (options_.hold) put_acknowledged(raw, acknowledged_);
  uint32_t count = 0;
  for (const auto& [id, stream] : streams_) {
    if (!stream.declared) continue;
    put_stream(raw, stream.info);
    put_position(raw, id, stream.committed);
    count += 1;
    if (raw.size() < kCheckpointPartBytes) continue;
    header.kind = FrameKind::kCheckpointPart;
    if (const Status packed = pack(header, raw, out); !packed) return tl::unexpected(packed.error());
    raw.clear();
  }
  put_checkpoint(raw, next_id_.load(std::memory_order_relaxed), count);
  header.kind = FrameKind::kCheckpointEnd;
  if (const Status packed = pack(header, raw, out); !packed) return tl::unexpected(packed.error());
  return out;
}

// Appends ready_ to the segment.
Status Spool::append_frame() {
  Status written;
  if (detail::crash_point_armed) {  // a kill during a write leaves its first part
    const std::string_view whole(ready_);
    written = handle_->append(whole.substr(0, whole.size() / 2));
    crash_point("store.mid_frame");
    if (written) written = handle_->append(whole.substr(whole.size() / 2));
  } else {
    written = handle_->append(ready_);
  }
  if (!written) {
    tail_unknown_ = true;
    return written;
  }
  segments_.back().size += ready_.size();
  bytes_ += ready_.size();
  crash_point("store.frame_written");
  return {};
}

Status Spool::sync() {
  crash_point("store.before_sync");
  Status synced = sync_left();
  if (synced && handle_) synced = handle_->sync();
  if (synced && folder_changed_) {
    synced = files_.sync_folder(options_.folder);
    folder_changed_ = !synced;
  }
  if (synced) {
    synced_sequence_ = written_sequence_;
  } else {
    stats_.failures += 1;
    stats_.last_error = synced.error().text;
  }
  return synced;
}

Status Spool::sync_left() {
  while (!unsynced_.empty()) {
    const auto file =
        files_.open(options_.folder + "/" + segment_name(unsynced_.back()), io::OpenFor::kAppend);
    Status synced = file ? (*file)->sync() : Status(tl::unexpected(file.error()));
    if (!synced && synced.error().code != ErrorCode::kNotFound) return synced;  // else it was deleted since
    unsynced_.pop_back();
  }
  return {};
}

// ---- making room

// Keeps the spool within its limit. If nothing can be deleted, it exceeds the limit by the current write.
void Spool::make_room(uint64_t needed) {
  while (bytes_ + needed > options_.max_bytes && segments_.size() > 1)
    if (!drop_oldest()) return;
}

// Like make_room(); an error if unacknowledged frames take the space.
Status Spool::room_for(uint64_t needed) {
  make_room(needed);
  stats_.full = bytes_ + needed > options_.max_bytes && oldest_is_held();
  if (!stats_.full) return {};
  return fail(ErrorCode::kLimit, fmt::format("{}: its {} bytes are full of what the collector has not yet",
                                             options_.folder, options_.max_bytes));
}

bool Spool::oldest_is_held() const {
  return options_.hold && segments_.size() > 1 && segments_[1].before > acknowledged_;
}

// On a full disk the oldest segments are deleted for new evidence, down to one finished segment. Returns
// whether there is room now.
bool Spool::make_room_on_disk(uint64_t needed) {
  if (segments_.size() <= 2) return false;
  const auto disk = files_.space(options_.folder);
  return disk && disk->free < needed + kDiskSlackBytes && drop_oldest();
}

bool Spool::drop_oldest() {
  if (oldest_is_held()) return false;
  crash_point("store.before_trim");
  const Segment oldest = segments_.front();
  const Status removed = files_.remove(options_.folder + "/" + segment_name(oldest.number));
  if (!removed && removed.error().code != ErrorCode::kNotFound) {
    stats_.failures += 1;
    stats_.last_error = removed.error().text;
    return false;
  }
  segments_.erase(segments_.begin());
  bytes_ -= oldest.size;
  stats_.dropped_segments += 1;
  stats_.dropped_bytes += oldest.size;
  folder_changed_ = true;
  crash_point("store.after_trim");
  note_first_offsets();
  return true;
}

// Forgets ended sources beyond the limit, the oldest first; their bytes stay as long as their segments.
void Spool::forget_streams() {
  // Makes extra room for the batches until the next commit, so that this runs rarely.
  constexpr size_t kKept = kStreamsMax / 2;
  if (streams_.size() <= kKept) return;
  for (auto it = streams_.begin(); it != streams_.end() && streams_.size() > kKept;) {
    const Stream& s = it->second;
    const bool gone = s.declared && s.committed.ended && s.appended.size == s.committed.size && !s.touched;
    it = gone ? streams_.erase(it) : std::next(it);
    stats_.forgotten_streams += gone;
  }
}

}  // namespace culprit::store
