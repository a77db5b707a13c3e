// archive.db: the logs with their hosts and committed sequences, and the position of each source's bytes.
// Reads and writes rows; Archive decides which. Used on the archive's thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/archive_log.h"
#include "store/database.h"

namespace culprit::store {

struct SegmentRow {
  uint64_t number = 0, size = 0;
  SegmentKind kind = SegmentKind::kEvidence;
  TimeNs newest_ns = kNoTime;  // arrival of its last frame
};

struct HostNote {
  TimeNs seen_ns = kNoTime;
  std::string about;
  bool has_about = false;  // `about` is new
};

class ArchiveIndex {
 public:
  explicit ArchiveIndex(std::string path);
  ~ArchiveIndex();
  Status open() { return database_.open(); }
  const Database& database() const { return database_; }

  // Epoch of the archive, written once the index covers all segments. None: the index is new.
  Result<std::optional<uint64_t>> epoch();
  Status put_epoch(uint64_t epoch);
  Result<std::vector<SegmentRow>> segments();
  Result<std::map<uint64_t, ArchivedLog>> logs();  // without their streams
  Status load_streams(ArchivedLog& log);

  // Content of one commit, all or nothing.
  struct Changes {
    std::vector<ArchivedLog*> logs;
    std::vector<SegmentRow> segments;
    const std::map<std::string, HostNote>* hosts = nullptr;
  };
  Status write(const Changes& changes);

  // Removes a deleted segment, ended streams without later bytes, and empty logs except the newest of each
  // host. Returns the logs that had frames in the segment (their streams in memory are outdated) and the
  // deleted logs.
  struct Dropped {
    std::vector<uint64_t> epochs, removed;
  };
  Result<Dropped> drop_segment(uint64_t segment);
  // Whether it has streams of one of these jobs.
  Result<bool> holds_jobs(uint64_t segment, const std::vector<std::string>& jobs);
  // Deletes hosts without logs whose last contact was before `before`.
  Status forget_hosts(TimeNs before);

  Result<std::vector<HostRow>> hosts();
  Result<std::vector<HostStream>> stored(const StoredQuery& query);
  Result<std::vector<SkippedFrames>> skipped(const std::string& host, LogKind kind);
  // Segments with frames of these logs, by row.
  Result<std::vector<uint64_t>> segments_of(const std::vector<int64_t>& logs);

 private:
  Status write_log(const ArchivedLog& log);
  Status write_hosts(const Changes& changes);
  Status drop_from_log(int64_t log, uint64_t segment);
  Status forget_logs(Dropped& dropped, const std::vector<int64_t>& logs);
  Status add_places(std::vector<HostStream>& streams, const std::vector<int64_t>& logs);

  struct Writers;
  Database database_;
  std::unique_ptr<Writers> writers_;  // statements of write(), kept between commits
};

}  // namespace culprit::store
