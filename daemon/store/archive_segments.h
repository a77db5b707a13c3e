// The segment files of an archive: creates, writes, finishes, syncs and deletes them. Each kind of log has
// its own segments, so that one kind can be deleted without the other. Archive decides what is deleted.
// Used by Archive on its thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/files.h"
#include "store/archive_index.h"

namespace culprit::store {

class ArchiveSegments {
 public:
  // `options` is borrowed; its limits may change. `make_room` deletes a segment if the disk is full, and
  // returns whether it did.
  using MakeRoom = std::function<bool(uint64_t needed)>;
  ArchiveSegments(io::Files& files, const ArchiveOptions& options, MakeRoom make_room)
      : files_(files), options_(options), make_room_(std::move(make_room)) {}
  std::string path(uint64_t number) const { return options_.folder + "/" + segment_name(number); }

  // Ensures a segment of this kind with room; creates one if needed. `epoch`: the archive's.
  Status ensure(LogKind kind, uint64_t epoch, TimeNs now);
  // Place of the next frame, after ensure().
  FramePlace end(LogKind kind) const;
  // The bytes wait in memory until flush() or sync().
  void append(LogKind kind, std::string_view frame) { lane(kind).buffer += frame; }
  void note_arrival(LogKind kind, TimeNs now) { lane(kind).row.newest_ns = now; }
  size_t pending_bytes(LogKind kind) const { return lane(kind).buffer.size(); }
  Status flush(LogKind kind) { return flush(lane(kind)); }
  // All appended bytes, and the folder.
  Status sync();

  // Segments that changed since the last indexed(), to be written to the index.
  std::vector<SegmentRow> changes() const;
  bool has_new_finished() const { return !unindexed_.empty(); }
  void indexed();

  uint64_t bytes() const { return finished_bytes_ + lanes_[0].row.size + lanes_[1].row.size; }
  size_t size() const;
  const std::map<uint64_t, SegmentRow>& finished() const { return finished_; }
  // The oldest finished and indexed segment of this kind; null: none.
  const SegmentRow* oldest(SegmentKind kind) const;
  // The segment to delete for `needed` bytes; null: the disk is not full, or other programs fill it.
  const SegmentRow* oldest_on_full_disk(uint64_t needed) const;
  // To delete a segment, call remove_file(), delete its row in the index, then call forget(). forget()
  // returns the size, if it was known.
  Status remove_file(uint64_t number);
  std::optional<uint64_t> forget(uint64_t number);

  // At a start: the segments of the folder, by number. The recovery corrects their sizes.
  std::map<uint64_t, SegmentRow>& found() { return finished_; }
  void use_number(uint64_t number) { next_number_ = std::max(next_number_, number + 1); }
  // Syncs a segment whose end is not indexed: a killed process may have left this end in the page cache
  // only.
  Status sync_found(const SegmentRow& row);
  // Reopens the newest segment of each kind. If that fails, the next frame starts a new segment, and the
  // torn bytes stay in the old file.
  void end_recovery();

 private:
  struct Lane {
    SegmentRow row;                          // the segment being written, if `handle` is set; with its size
    std::unique_ptr<io::FileHandle> handle;  // counts the bytes surely on disk
    std::string buffer;                      // bytes after that size
    bool tail_unknown = false;               // a write failed: the file's content after `size` is unknown
    bool unsynced = false, unindexed = false;
    uint64_t look_at = 0;             // size at which the disk's free space is queried again
    uint64_t disk_room = UINT64_MAX;  // limit of the bytes of all segments, from the last query of free space
    uint64_t end() const { return row.size + buffer.size(); }
  };
  Lane& lane(LogKind kind) { return lanes_[static_cast<size_t>(kind)]; }
  const Lane& lane(LogKind kind) const { return lanes_[static_cast<size_t>(kind)]; }
  Status begin(LogKind kind, uint64_t epoch, TimeNs now);
  Status finish(Lane& lane);
  Status flush(Lane& lane);
  Status sync(Lane& lane);
  Error explained(Error error, uint64_t needed) const;
  void reopen(const SegmentRow& newest);

  io::Files& files_;
  const ArchiveOptions& options_;
  const MakeRoom make_room_;
  uint64_t next_number_ = 1;
  std::array<Lane, kLogKinds> lanes_;
  std::map<uint64_t, SegmentRow> finished_;  // by number
  std::vector<SegmentRow> unindexed_;        // of those, finished since the last indexed()
  uint64_t finished_bytes_ = 0;
  bool folder_changed_ = false;  // since the last sync
};

}  // namespace culprit::store
