#include "store/spool_segments.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"

namespace culprit::store {

void SpoolSegments::add_found(const Segment& segment) {
  segments_.push_back(segment);
  bytes_ += segment.size;
}

void SpoolSegments::reopen_newest(uint64_t sound_end) {
  Segment& newest = segments_.back();
  auto file = files_.open(path(newest.number), io::OpenFor::kAppend);
  if (!file) return;
  if (newest.size != sound_end && !(*file)->truncate(sound_end)) return;
  bytes_ -= newest.size - sound_end;
  newest.size = sound_end;
  handle_ = std::move(*file);
}

void SpoolSegments::distrust_all() {
  for (const Segment& segment : segments_) unsynced_.push_back(segment.number);
  folder_changed_ = true;
}

Status SpoolSegments::begin(const SegmentHeader& header, std::string_view checkpoint, uint64_t before) {
  auto file = files_.open(path(header.number), io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  Status written;
  if (detail::crash_point_armed) {
    written = (*file)->append(encode(header));
    crash_point("store.segment_begun");
    if (written) written = (*file)->append(checkpoint);
  } else {
    // One write: this succeeds even on a disk where every second write fails.
    written = (*file)->append(encode(header).append(checkpoint));
  }
  if (!written) {
    file->reset();
    // The segment only repeats known positions. If it cannot be deleted, its number stays used.
    if (!files_.remove(path(header.number)))
      segments_.push_back({header.number, 0, before, header.created_ns});
    return written;
  }
  crash_point("store.checkpoint_written");
  handle_ = std::move(*file);
  add_found({header.number, kSegmentHeaderBytes + checkpoint.size(), before, header.created_ns});
  folder_changed_ = true;
  return {};
}

Status SpoolSegments::append(std::string_view frame) {
  Status written;
  if (detail::crash_point_armed) {  // a kill during a write leaves its first part
    written = handle_->append(frame.substr(0, frame.size() / 2));
    crash_point("store.mid_frame");
    if (written) written = handle_->append(frame.substr(frame.size() / 2));
  } else {
    written = handle_->append(frame);
  }
  if (!written) {
    tail_unknown_ = true;
    return written;
  }
  segments_.back().size += frame.size();
  bytes_ += frame.size();
  crash_point("store.frame_written");
  return {};
}

void SpoolSegments::mend_tail() {
  if (!handle_ || !std::exchange(tail_unknown_, false)) return;
  Segment& segment = segments_.back();
  if (handle_->truncate(segment.size)) return;
  if (const auto status = handle_->status()) {
    bytes_ += status->size - std::min(status->size, segment.size);
    segment.size = std::max(status->size, segment.size);
  }
  unsynced_.push_back(segment.number);
  handle_.reset();
}

Status SpoolSegments::finish() {
  Status synced = handle_->sync();
  if (!synced) unsynced_.push_back(segments_.back().number);
  handle_.reset();
  return synced;
}

Status SpoolSegments::drop(size_t which) {
  const Segment dropped = segments_[which];
  const Status removed = files_.remove(path(dropped.number));
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(which));
  bytes_ -= dropped.size;
  folder_changed_ = true;
  return {};
}

void SpoolSegments::replaced(size_t which, uint64_t size) {
  bytes_ = bytes_ - segments_[which].size + size;
  segments_[which].size = size;
  segments_[which].cleaned = true;
  folder_changed_ = true;
}

Status SpoolSegments::sync() {
  Status synced = sync_left();
  if (synced && handle_) synced = handle_->sync();
  if (synced && folder_changed_) {
    synced = files_.sync_folder(folder_);
    folder_changed_ = !synced;
  }
  return synced;
}

Status SpoolSegments::sync_left() {
  while (!unsynced_.empty()) {
    const auto file = files_.open(path(unsynced_.back()), io::OpenFor::kAppend);
    Status synced = file ? (*file)->sync() : Status(tl::unexpected(file.error()));
    if (!synced && synced.error().code != ErrorCode::kNotFound) return synced;  // else it was deleted since
    unsynced_.pop_back();
  }
  return {};
}

uint64_t SpoolSegments::bytes_after(uint64_t sequence, uint64_t last) const {
  uint64_t out = 0;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const uint64_t end = i + 1 < segments_.size() ? segments_[i + 1].before : last;
    if (end <= sequence || end <= segment.before) continue;
    const double share = static_cast<double>(end - std::max(sequence, segment.before)) /
                         static_cast<double>(end - segment.before);
    out += static_cast<uint64_t>(share * static_cast<double>(segment.size));
  }
  return out;
}

}  // namespace culprit::store
