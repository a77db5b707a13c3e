// Recovery of an archive at a start. Segments are the primary data: index rows without a file are deleted,
// and the unindexed end of each file is read and applied like new frames. A lost index is rebuilt in the
// same way, from the beginning of each file. Used by Archive on its thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "store/archive_index.h"
#include "store/archive_logs.h"
#include "store/archive_segments.h"

namespace culprit::store {

class ArchiveRecovery {
 public:
  // The empty parts of the archive, borrowed.
  struct Parts {
    io::Files& files;
    ArchiveIndex& index;
    ArchiveSegments& segments;
    ArchiveLogs& logs;
    ArchiveStats& stats;
  };
  ArchiveRecovery(const Parts& parts, std::string folder) : to_(parts), folder_(std::move(folder)) {}
  // Fills the parts. Returns the archive's epoch.
  Result<uint64_t> run();

 private:
  Status look_at_segments();
  Status adopt_segments();
  Status adopt(SegmentRow& row);
  bool adopt_frame(const SegmentReader& reader, uint64_t segment);

  Parts to_;
  const std::string folder_;
  uint64_t epoch_ = 0;
  bool rebuilding_ = false;  // the index lacks segments of the folder
};

}  // namespace culprit::store
