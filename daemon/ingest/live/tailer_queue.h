// When each source is checked next, and which sources have bytes to read. A source is in the queue of checks
// by its earliest time; later entries of it are skipped. Borrows the table and the time; the tailer's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/principal.h"
#include "ingest/live/tailer_source.h"
#include "ingest/live/tailer_table.h"

namespace culprit::ingest {

class CheckQueue {
 public:
  CheckQueue(const RoundTime& time, const SourceTable& sources) : time_(time), sources_(sources) {}

  void schedule(TailSource& source, TimeNs at);
  // After a check; idle files are checked less and less often.
  void schedule_next(TailSource& source);
  // A source that is due now; null if there is none.
  TailSource* pop_due();

  // Schedules a check at the start of the next round: names changed during the check.
  void retry(TailSource& source);
  // Returns the retried sources, as many as one round may open files for.
  std::vector<TailSource*> take_retries();

  void make_ready(TailSource& source);
  size_t ready() const { return ready_count_; }
  // A source with bytes to read; null if there is none. Owners of files take turns, and so do the sources of
  // each: the many files of one user delay those of another by one read.
  TailSource* pop_ready();

  // Time of the next check, at most `latest`.
  TimeNs next_time(TimeNs latest) const;

 private:
  const RoundTime& time_;
  const SourceTable& sources_;
  using Due = std::pair<TimeNs, uint32_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  using Owner = std::optional<Principal>;  // owner of the file
  std::map<Owner, std::list<uint32_t>> ready_;
  size_t ready_count_ = 0;
  Owner last_;                     // the owner served last
  std::vector<uint32_t> pending_;  // to be retried
};

}  // namespace culprit::ingest
