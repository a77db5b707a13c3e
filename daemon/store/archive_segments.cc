#include "store/archive_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/text.h"

namespace culprit::store {

namespace {

// A full archive has at least this many segments, so that a deletion removes a small part.
constexpr uint64_t kArchiveSegmentsMin = 16;
constexpr uint64_t kArchiveSegmentBytesMin = 64 << 10;
// Free space (besides the pending write) below which a disk counts as full: file systems reserve some, and
// the index needs some.
constexpr uint64_t kArchiveSlackBytes = 4 << 20;

}  // namespace

// ---- writing

Status ArchiveSegments::ensure(LogKind kind, uint64_t epoch, TimeNs now) {
  Lane& to = lane(kind);
  if (to.handle) {
    if (to.end() >= std::max(to.look_at, kArchiveSegmentBytesMin) && to.end() < options_.segment_bytes) {
      to.look_at = to.end() + kArchiveSegmentBytesMin;
      const auto disk = files_.space(options_.folder);
      to.disk_room = disk ? bytes() + disk->free : UINT64_MAX;
    }
    const uint64_t room = std::min(options_.max_bytes, to.disk_room);
    if (to.end() <
        std::min(options_.segment_bytes, std::max(room / kArchiveSegmentsMin, kArchiveSegmentBytesMin)))
      return {};
    if (const Status finished = finish(to); !finished) return finished;
  }
  return begin(kind, epoch, now);
}

FramePlace ArchiveSegments::end(LogKind kind) const { return {lane(kind).row.number, lane(kind).end()}; }

Status ArchiveSegments::finish(Lane& from) {
  if (const Status synced = sync(from); !synced) return synced;
  finished_[from.row.number] = from.row;
  finished_bytes_ += from.row.size;
  unindexed_.push_back(from.row);
  from = {};
  return {};
}

Status ArchiveSegments::begin(LogKind kind, uint64_t epoch, TimeNs now) {
  const SegmentKind of = kind == LogKind::kEvidence ? SegmentKind::kEvidence : SegmentKind::kCondensed;
  const uint64_t number = next_number_;
  auto file = files_.open(path(number), io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  const Status written = (*file)->append(encode(SegmentHeader{kSegmentVersion, epoch, number, now, of}));
  if (!written) {
    file->reset();
    if (!files_.remove(path(number))) next_number_ += 1;
    return written;
  }
  next_number_ += 1;
  crash_point("store.archive_segment_begun");
  Lane& to = lane(kind);
  to = {};
  to.row = {number, kSegmentHeaderBytes, of, now};
  to.handle = std::move(*file);
  to.unsynced = to.unindexed = true;
  folder_changed_ = true;
  return {};
}

Status ArchiveSegments::flush(Lane& to) {
  while (!to.buffer.empty()) {
    if (to.tail_unknown)
      if (const Status cut = to.handle->truncate(to.row.size); !cut) return cut;
    to.tail_unknown = true;
    Status written;
    if (detail::crash_point_armed) {  // a kill during a write leaves its first part
      const std::string_view whole(to.buffer);
      written = to.handle->append(whole.substr(0, whole.size() / 2));
      crash_point("store.archive_mid_write");
      if (written) written = to.handle->append(whole.substr(whole.size() / 2));
    } else {
      written = to.handle->append(to.buffer);
    }
    if (!written) {
      if (make_room_(to.buffer.size())) continue;
      return tl::unexpected(explained(written.error(), to.buffer.size()));
    }
    to.tail_unknown = false;
    to.row.size += to.buffer.size();
    to.buffer.clear();
    to.unsynced = to.unindexed = true;
    crash_point("store.archive_written");
  }
  return {};
}

Status ArchiveSegments::sync(Lane& to) {
  if (!to.handle) return {};
  if (const Status written = flush(to); !written) return written;
  if (!to.unsynced) return {};
  crash_point("store.archive_before_sync");
  if (const Status synced = to.handle->sync(); !synced) return synced;
  to.unsynced = false;
  return {};
}

Status ArchiveSegments::sync() {
  for (Lane& each : lanes_)
    if (const Status synced = sync(each); !synced) return synced;
  if (!folder_changed_) return {};
  const Status synced = files_.sync_folder(options_.folder);
  folder_changed_ = !synced;
  return synced;
}

// ---- the index

std::vector<SegmentRow> ArchiveSegments::changes() const {
  std::vector<SegmentRow> rows = unindexed_;
  for (const Lane& each : lanes_)
    if (each.handle && each.unindexed) rows.push_back(each.row);
  return rows;
}

void ArchiveSegments::indexed() {
  unindexed_.clear();
  for (Lane& each : lanes_) each.unindexed = false;
}

// ---- making room

size_t ArchiveSegments::size() const {
  const auto open =
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& each) { return !!each.handle; });
  return finished_.size() + static_cast<size_t>(open);
}

const SegmentRow* ArchiveSegments::oldest(SegmentKind kind) const {
  for (const auto& [number, row] : finished_) {
    const auto same = [&](const SegmentRow& other) { return other.number == row.number; };
    if (row.kind == kind && std::none_of(unindexed_.begin(), unindexed_.end(), same)) return &row;
  }
  return nullptr;
}

// Prefers evidence, as in a spool. Null if other programs filled the disk: a deletion would free little,
// and the hosts still hold their unacknowledged frames.
const SegmentRow* ArchiveSegments::oldest_on_full_disk(uint64_t needed) const {
  const auto disk = files_.space(options_.folder);
  if (!disk || disk->free >= needed + kArchiveSlackBytes || finished_.size() < 2) return nullptr;
  if (bytes() < disk->used / 2) return nullptr;
  const SegmentRow* row = oldest(SegmentKind::kEvidence);
  return row == nullptr ? oldest(SegmentKind::kCondensed) : row;
}

// Extends the message of a full disk: whether this archive fills it.
Error ArchiveSegments::explained(Error error, uint64_t needed) const {
  const auto disk = files_.space(options_.folder);
  const uint64_t held = bytes();
  if (!disk || disk->free >= needed + kArchiveSlackBytes || held >= disk->used / 2) return error;
  error.text += fmt::format(
      "; others fill this disk: the archive holds {} of {} in use, and drops nothing "
      "for them",
      format_bytes(held), format_bytes(disk->used));
  return error;
}

Status ArchiveSegments::remove_file(uint64_t number) {
  Status removed = files_.remove(path(number));
  if (!removed && removed.error().code == ErrorCode::kNotFound) return {};
  return removed;
}

std::optional<uint64_t> ArchiveSegments::forget(uint64_t number) {
  folder_changed_ = true;
  const auto row = finished_.find(number);
  if (row == finished_.end()) return std::nullopt;
  const uint64_t size = row->second.size;
  finished_bytes_ -= size;
  finished_.erase(row);
  return size;
}

// ---- recovery

Status ArchiveSegments::sync_found(const SegmentRow& row) {
  const auto file = files_.open(path(row.number), io::OpenFor::kAppend);
  if (!file) return tl::unexpected(file.error());
  if (const Status synced = (*file)->sync(); !synced) return synced;
  if (const Status synced = files_.sync_folder(options_.folder); !synced) return synced;
  unindexed_.push_back(row);
  return {};
}

void ArchiveSegments::end_recovery() {
  std::array<uint64_t, kLogKinds> newest = {};
  for (const auto& [number, row] : finished_) {
    finished_bytes_ += row.size;
    newest[row.kind == SegmentKind::kCondensed] = number;
  }
  for (const uint64_t number : newest)
    if (number != 0) reopen(SegmentRow(finished_.at(number)));
}

void ArchiveSegments::reopen(const SegmentRow& newest) {
  auto reader = SegmentReader::open(files_, options_.folder, newest.number);
  if (!reader || !reader->header() || reader->size() < newest.size) return;
  auto file = files_.open(path(newest.number), io::OpenFor::kAppend);
  if (!file || (reader->size() != newest.size && !(*file)->truncate(newest.size))) return;
  Lane& to = lanes_[newest.kind == SegmentKind::kCondensed];
  to.row = newest;
  to.handle = std::move(*file);
  finished_bytes_ -= newest.size;
  finished_.erase(newest.number);
}

}  // namespace culprit::store
