// Internals of the archive: lanes, logs, index. The archive's thread.
#pragma once

#include <array>

#include "store/archive_index.h"

namespace culprit::store {

struct Archive::Impl {
  Impl(io::Files& its_files, ArchiveOptions its_options);

  // Each kind of log has its own segments, so that one kind can be deleted without the other.
  struct Lane {
    SegmentRow row;                          // of the segment being written, if there is a handle; its size
    std::unique_ptr<io::FileHandle> handle;  // counts the bytes surely on disk
    std::string buffer;                      // bytes after that size
    bool tail_unknown = false;               // a write failed: the file's content after `size` is unknown
    bool unsynced = false, unindexed = false;
    uint64_t end() const { return row.size + buffer.size(); }
  };
  static SegmentKind segment_kind(LogKind kind) {
    return kind == LogKind::kEvidence ? SegmentKind::kEvidence : SegmentKind::kCondensed;
  }
  Lane& lane_of(const ArchivedLog& log) { return lanes[static_cast<size_t>(log.origin.kind)]; }

  // archive.cc
  ArchivedLog& add_log(const LogOrigin& origin);
  Status check(const FrameHeader& header, const ArchivedLog& log) const;
  Status unpack(std::string_view frame, const FrameHeader& header, const ArchivedLog& log);
  Status refuse(std::string why);
  void touch(ArchivedLog& log);
  Status make_ready(ArchivedLog& log, TimeNs now);
  void put_own_frame(ArchivedLog& log, std::string_view raw, TimeNs now);
  void put_origin_of(ArchivedLog& log, TimeNs now);
  Status write_index();
  std::vector<CommittedLog> committed();
  Status note(Status status, TimeNs now);
  // archive_segments.cc
  std::string path(uint64_t number) const { return options.folder + "/" + segment_name(number); }
  Status ensure_segment(Lane& lane, SegmentKind kind, TimeNs now);
  Status begin_segment(Lane& lane, SegmentKind kind, TimeNs now);
  Status leave_segment(Lane& lane);
  Status flush(Lane& lane);
  Status sync(Lane& lane);
  Status sync_lanes();
  bool make_room_on_disk(uint64_t needed);
  Error explained(Error error, uint64_t needed) const;
  const SegmentRow* oldest(SegmentKind kind) const;
  Status drop(uint64_t number);
  Status retain(const std::vector<std::string>& running, TimeNs now);
  // archive_recover.cc
  Status recover();
  Status look_at_segments();
  Status adopt_segments();
  Status adopt(SegmentRow& row);
  bool adopt_frame(const SegmentReader& reader, uint64_t segment);
  void go_on_in(const SegmentRow& row);

  io::Files& files;
  ArchiveOptions options;
  ArchiveIndex index;
  uint64_t epoch = 0;
  bool rebuilding = false;  // the index lacks segments of the folder
  uint64_t next_number = 1;
  int64_t next_row = 1;
  std::array<Lane, kLogKinds> lanes;
  std::map<uint64_t, SegmentRow> left;  // finished segments, by number
  std::vector<SegmentRow> unindexed;    // of those, finished since the last commit
  uint64_t left_bytes = 0;
  bool folder_changed = false;
  std::map<uint64_t, ArchivedLog> logs;                  // by epoch
  std::map<std::string, std::vector<uint64_t>> of_host;  // epochs
  std::vector<uint64_t> touched;
  std::map<std::string, HostNote> hosts;
  size_t streams_in_memory = 0;
  Unpacker unpacker;
  std::string content;  // of the current frame
  ArchiveStats stats;
};

}  // namespace culprit::store
