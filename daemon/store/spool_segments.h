// The segment files of a spool: creates, appends to, syncs and deletes them. Tracks what is not synced, and
// repairs a file after a failed write. Spool decides what is written and deleted. Owned by a Spool; used on
// its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/files.h"
#include "store/segment.h"

namespace culprit::store {

class SpoolSegments {
 public:
  struct Segment {
    uint64_t number = 0, size = 0;
    uint64_t before = 0;  // sequence of the last frame in earlier segments
    TimeNs created_ns = kNoTime;
    bool cleaned = false;  // SegmentHeader::cleaned
  };
  SpoolSegments(io::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  // Sorted by number; while is_open(), the last is being written.
  const std::vector<Segment>& all() const { return segments_; }
  uint64_t bytes() const { return bytes_; }
  // Whether a finished segment has frames after `sequence`.
  bool ends_after(size_t which, uint64_t sequence) const {
    return which + 1 < segments_.size() && segments_[which + 1].before > sequence;
  }
  // Of frames after `sequence`, up to `last`: of a segment with earlier ones too, its share.
  uint64_t bytes_after(uint64_t sequence, uint64_t last) const;
  bool is_open() const { return handle_ != nullptr; }
  uint64_t next_number() const { return segments_.empty() ? 1 : segments_.back().number + 1; }

  // At a start: adds a segment of the folder; call in order of numbers.
  void add_found(const Segment& segment);
  void set_before(size_t which, uint64_t before) { segments_[which].before = before; }
  // Opens the newest segment, truncated at `sound_end`. If that fails, none is open.
  void reopen_newest(uint64_t sound_end);
  // Makes the next sync() cover all segments: a killed process may have left data in the page cache only.
  void distrust_all();

  // Creates the next segment; requires that none is open. `checkpoint`: its first frames; `before`: as in
  // Segment.
  Status begin(const SegmentHeader& header, std::string_view checkpoint, uint64_t before);
  Status append(std::string_view frame);
  // Call after a failed append(): truncates the partial write; if that fails, abandons the segment.
  void mend_tail();
  // Syncs and closes the open segment. If the sync fails, sync() retries.
  Status finish();
  // Deletes a finished segment.
  Status drop(size_t which);
  // The file of a finished segment was replaced.
  void replaced(size_t which, uint64_t size);
  // All segments and the folder.
  Status sync();

 private:
  std::string path(uint64_t number) const { return folder_ + "/" + segment_name(number); }
  Status sync_left();

  io::Files& files_;
  const std::string folder_;
  std::vector<Segment> segments_;
  std::unique_ptr<io::FileHandle> handle_;
  uint64_t bytes_ = 0;              // of all segments
  bool tail_unknown_ = false;       // a write failed: the file's content after the last frame is unknown
  bool folder_changed_ = false;     // since the last sync
  std::vector<uint64_t> unsynced_;  // finished segments whose sync failed
};

}  // namespace culprit::store
