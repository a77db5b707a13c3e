// archive.db: whose logs there are, up to where, and where the bytes of each source stand. Rows in and out;
// the archive decides. On the archive's thread.
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
  TimeNs newest_ns = kNoTime;  // when its last frame came
};

struct HostNote {
  TimeNs seen_ns = kNoTime;
  std::string about;
  bool told = false;  // `about` is new
};

class ArchiveIndex {
 public:
  explicit ArchiveIndex(std::string path);
  ~ArchiveIndex();
  Status open() { return database_.open(); }
  const Database& database() const { return database_; }

  // The archive's own number. Put when the index knows of all segments: where there is none, it is new.
  Result<std::optional<uint64_t>> epoch();
  Status put_epoch(uint64_t epoch);
  Result<std::vector<SegmentRow>> segments();
  Result<std::map<uint64_t, ArchivedLog>> logs();  // without their streams
  Status load_streams(ArchivedLog& log);

  // What one commit writes, all or nothing.
  struct Changes {
    std::vector<ArchivedLog*> logs;
    std::vector<SegmentRow> segments;
    const std::map<std::string, HostNote>* hosts = nullptr;
  };
  Status write(const Changes& changes);

  // The segment is gone. Streams that had all of their bytes before its end, and have ended, go with it, and
  // logs of which nothing is left but which are not the host's newest. Told are the logs that it held (their
  // streams in memory are old then), and those that went.
  struct Dropped {
    std::vector<uint64_t> epochs, gone;
  };
  Result<Dropped> drop_segment(uint64_t segment);
  // Whether it holds streams of one of these jobs.
  Result<bool> holds_jobs(uint64_t segment, const std::vector<std::string>& jobs);
  // Hosts without logs that were not seen since.
  Status forget_hosts(TimeNs before);

  Result<std::vector<HostRow>> hosts();
  Result<std::vector<HostStream>> kept(const KeptQuery& query);
  Result<std::vector<SkippedFrames>> skipped(const std::string& host, LogKind kind);
  // Those that hold frames of these logs, by row.
  Result<std::vector<uint64_t>> segments_of(const std::vector<int64_t>& logs);

 private:
  Status write_log(const ArchivedLog& log);
  Status write_hosts(const Changes& changes);
  Status drop_from_log(int64_t log, uint64_t segment);
  Status forget_logs(Dropped& dropped, const std::vector<int64_t>& logs);
  Status add_places(std::vector<HostStream>& streams, const std::vector<int64_t>& logs);

  struct Writers;
  Database database_;
  std::unique_ptr<Writers> writers_;  // statements of the transaction under way
};

}  // namespace culprit::store
