// The logs of an archive in memory, by epoch, and those with changes since the last commit. Idle logs are
// unloaded when there are too many streams. Owned by an Archive; its thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/archive_index.h"
#include "store/archive_log.h"

namespace culprit::store {

class ArchiveLogs {
 public:
  // At a start: the logs of the index.
  void add_known(std::map<uint64_t, ArchivedLog> logs);
  ArchivedLog& add(const LogOrigin& origin);
  ArchivedLog* find(uint64_t epoch);  // null: unknown
  // Removes logs without any frame of this host and kind. Returns the number of the host's other logs.
  size_t remove_empty(const LogOrigin& origin);
  const std::map<uint64_t, ArchivedLog>& all() const { return logs_; }

  // Loads the streams of the log into memory.
  Status load(ArchivedLog& log, ArchiveIndex& index);
  // Applies the records of a frame to the taker's log, which must be loaded. False: malformed.
  bool read(std::string_view content, ArchivedLog& log, LogTaker& taker);
  void touch(ArchivedLog& log);
  // Logs for the index.
  std::vector<ArchivedLog*> touched();
  bool has_changes() const { return !touched_.empty(); }
  // Call after a commit: marks all changes durable. Returns the logs whose committed sequence increased.
  std::vector<CommittedLog> committed();
  // Call after the index dropped a segment: unloads the outdated streams.
  void forget(const ArchiveIndex::Dropped& dropped);

 private:
  static void unload(ArchivedLog& log);

  std::map<uint64_t, ArchivedLog> logs_;                  // by epoch
  std::map<std::string, std::vector<uint64_t>> of_host_;  // epochs
  std::vector<uint64_t> touched_;
  int64_t next_row_ = 1;
  size_t streams_in_memory_ = 0;
};

}  // namespace culprit::store
