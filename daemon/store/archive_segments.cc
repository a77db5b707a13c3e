// Segments of an archive: created, written, finished, deleted, and the handling of disk failures.
#include <fmt/format.h>

#include <algorithm>

#include "base/crash_point.h"
#include "base/text.h"
#include "store/archive_impl.h"

namespace culprit::store {

namespace {

// A full archive has at least this many segments, so that a deletion removes a small part.
constexpr uint64_t kSegmentsMin = 16;
constexpr uint64_t kSegmentBytesMin = 64 << 10;
// Free space, besides the write itself, below which a disk counts as full: file systems reserve some, and the
// index needs some.
constexpr uint64_t kDiskSlackBytes = 4 << 20;

}  // namespace

// ---- writing

Status Archive::Impl::ensure_segment(Lane& lane, SegmentKind kind, TimeNs now) {
  if (lane.handle) {
    uint64_t room = options.max_bytes;
    if (lane.end() >= kSegmentBytesMin && lane.end() < options.segment_bytes) {
      const uint64_t bytes = left_bytes + lanes[0].row.size + lanes[1].row.size;
      if (const auto disk = files.space(options.folder)) room = std::min(room, bytes + disk->free);
    }
    if (lane.end() < std::min(options.segment_bytes, std::max(room / kSegmentsMin, kSegmentBytesMin)))
      return {};
    if (const Status gone = leave_segment(lane); !gone) return gone;
  }
  return begin_segment(lane, kind, now);
}

Status Archive::Impl::leave_segment(Lane& lane) {
  if (const Status synced = sync(lane); !synced) return synced;
  left[lane.row.number] = lane.row;
  left_bytes += lane.row.size;
  unindexed.push_back(lane.row);
  lane = {};
  return {};
}

Status Archive::Impl::begin_segment(Lane& lane, SegmentKind kind, TimeNs now) {
  const uint64_t number = next_number;
  auto file = files.open(path(number), io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  const Status written = (*file)->append(encode(SegmentHeader{kSegmentVersion, epoch, number, now, kind}));
  if (!written) {
    file->reset();
    if (!files.remove(path(number))) next_number += 1;
    return written;
  }
  next_number += 1;
  crash_point("store.archive_segment_begun");
  lane = {};
  lane.row = {number, kSegmentHeaderBytes, kind, now};
  lane.handle = std::move(*file);
  lane.unsynced = lane.unindexed = true;
  folder_changed = true;
  return {};
}

Status Archive::Impl::flush(Lane& lane) {
  while (!lane.buffer.empty()) {
    if (lane.tail_unknown)
      if (const Status cut = lane.handle->truncate(lane.row.size); !cut) return cut;
    lane.tail_unknown = true;
    Status written;
    if (detail::crash_point_armed) {  // a kill during a write leaves its first part
      const std::string_view whole(lane.buffer);
      written = lane.handle->append(whole.substr(0, whole.size() / 2));
      crash_point("store.archive_mid_write");
      if (written) written = lane.handle->append(whole.substr(whole.size() / 2));
    } else {
      written = lane.handle->append(lane.buffer);
    }
    if (!written) {
      if (make_room_on_disk(lane.buffer.size())) continue;
      return tl::unexpected(explained(written.error(), lane.buffer.size()));
    }
    lane.tail_unknown = false;
    lane.row.size += lane.buffer.size();
    lane.buffer.clear();
    lane.unsynced = lane.unindexed = true;
    crash_point("store.archive_written");
  }
  return {};
}

Status Archive::Impl::sync(Lane& lane) {
  if (!lane.handle) return {};
  if (const Status written = flush(lane); !written) return written;
  if (!lane.unsynced) return {};
  crash_point("store.archive_before_sync");
  if (const Status synced = lane.handle->sync(); !synced) return synced;
  lane.unsynced = false;
  return {};
}

Status Archive::Impl::sync_lanes() {
  for (Lane& lane : lanes)
    if (const Status synced = sync(lane); !synced) return synced;
  if (!folder_changed) return {};
  const Status synced = files.sync_folder(options.folder);
  folder_changed = !synced;
  return synced;
}

// ---- making room

// Of the finished, indexed segments.
const SegmentRow* Archive::Impl::oldest(SegmentKind kind) const {
  for (const auto& [number, row] : left) {
    const auto same = [&](const SegmentRow& other) { return other.number == row.number; };
    if (row.kind == kind && std::none_of(unindexed.begin(), unindexed.end(), same)) return &row;
  }
  return nullptr;
}

// On a full disk the oldest segments are deleted, evidence first, as in a spool. Not if other programs
// filled it: deleting would gain little, and the hosts still have their unsent frames. Returns whether any
// was deleted.
bool Archive::Impl::make_room_on_disk(uint64_t needed) {
  const auto disk = files.space(options.folder);
  if (!disk || disk->free >= needed + kDiskSlackBytes || left.size() < 2) return false;
  if (left_bytes + lanes[0].row.size + lanes[1].row.size < disk->used / 2) return false;
  const SegmentRow* row = oldest(SegmentKind::kEvidence);
  if (row == nullptr) row = oldest(SegmentKind::kCondensed);
  return row != nullptr && drop(row->number).has_value();
}

// The message of a full disk says whether this archive fills it.
Error Archive::Impl::explained(Error error, uint64_t needed) const {
  const auto disk = files.space(options.folder);
  const uint64_t bytes = left_bytes + lanes[0].row.size + lanes[1].row.size;
  if (!disk || disk->free >= needed + kDiskSlackBytes || bytes >= disk->used / 2) return error;
  error.text += fmt::format(
      "; others fill this disk: the archive holds {} of {} in use, and drops nothing "
      "for them",
      format_bytes(bytes), format_bytes(disk->used));
  return error;
}

// Deletes the file before its row: the next start recognises a row without a file, but would take a file
// without a row for uncommitted data.
Status Archive::Impl::drop(uint64_t number) {
  crash_point("store.archive_before_drop");
  const Status removed = files.remove(path(number));
  if (!removed && removed.error().code != ErrorCode::kNotFound) return removed;
  crash_point("store.archive_file_dropped");
  const auto dropped = index.drop_segment(number);
  if (!dropped) return tl::unexpected(dropped.error());
  folder_changed = true;
  for (const uint64_t key : dropped->epochs) {
    const auto found = logs.find(key);
    if (found == logs.end() || found->second.touched) continue;
    streams_in_memory -= std::min(streams_in_memory, found->second.streams.size());
    found->second.streams.clear();
    found->second.text_bytes = 0;
    found->second.loaded = false;
  }
  for (const uint64_t key : dropped->gone) {
    const auto found = logs.find(key);
    if (found == logs.end()) continue;
    if (found->second.touched) {
      found->second.in_index = false;  // it must be loaded again
      continue;
    }
    std::erase(of_host[found->second.origin.host], key);
    logs.erase(found);
  }
  if (const auto row = left.find(number); row != left.end()) {
    stats.dropped_segments += 1;
    stats.dropped_bytes += row->second.size;
    left_bytes -= row->second.size;
    left.erase(row);
  }
  crash_point("store.archive_dropped");
  return {};
}

Status Archive::Impl::retain(const std::vector<std::string>& running, TimeNs now) {
  const auto bytes = [&] { return left_bytes + lanes[0].row.size + lanes[1].row.size; };
  for (const SegmentKind kind : {SegmentKind::kEvidence, SegmentKind::kCondensed})
    while (bytes() > options.max_bytes) {
      const SegmentRow* row = oldest(kind);
      if (row == nullptr) break;
      if (const Status dropped = drop(row->number); !dropped) return note(dropped, now);
    }
  if (options.max_age_ns <= 0) return {};
  const TimeNs before = now - options.max_age_ns;
  const std::map<uint64_t, SegmentRow> looked_at = left;
  for (const auto& [number, row] : looked_at) {
    if (row.newest_ns == kNoTime || row.newest_ns >= before) continue;
    if (row.kind == SegmentKind::kCondensed) {
      const auto needed = index.holds_jobs(number, running);
      if (!needed) return tl::unexpected(needed.error());
      if (*needed) continue;
    }
    if (const Status dropped = drop(number); !dropped) return note(dropped, now);
  }
  return index.forget_hosts(before);
}

}  // namespace culprit::store
