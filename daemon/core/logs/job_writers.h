// The writers of a job's logs: their counts, rhythm and activity, and the hosts and ranks that their names
// denote. Owned by JobLog. Memory grows up to limits::kWriters writers; one more represents all others. One
// thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/host_alias.h"
#include "core/logs/job_log.h"

namespace culprit::logs {

class JobWriters {
 public:
  // The writer with this key: an index into all().
  uint32_t open(const WriterKey& key);
  // A line at `place`.
  void count_line(const LogPlace& place);
  // Counts lines by `writer` in a source that belongs to the host `owner` by its path or agent.
  void count_owned(const std::string& owner, uint32_t writer, uint64_t lines);
  // Sets the host, rank and device of each writer from all names so far. Repeatable.
  void resolve(const JobFile& job);

  WriterStats& operator[](uint32_t writer) { return writers_[writer]; }
  const std::vector<WriterStats>& all() const { return writers_; }
  const std::vector<ActivityBins>& activity() const { return activity_; }  // by writer
  // See JobLog::host_called; as of the last resolve().
  std::string host_called(std::string_view name) const;
  // Lines of writers without a host.
  uint64_t unplaced_lines() const;
  const Drops& drops() const { return drops_; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  uint32_t new_writer(const WriterKey& key);
  void resolve_names(const JobFile& job);
  void index_hosts();

  std::vector<WriterStats> writers_;
  std::vector<ActivityBins> activity_;
  FlatMap<uint32_t> ids_{256};  // by hash of the key
  uint32_t folded_ = kNone;     // the writer of all lines beyond the limit
  HostAliases aliases_;
  std::map<std::string, std::string> names_;           // of hosts with several names: the preferred name
  std::map<std::string, std::string> host_of_common_;  // by common_host_name; empty: several hosts
  Drops drops_;
};

}  // namespace culprit::logs
