// Events of all jobs that wait for LiveJobs::poll_events(). Findings are limited in number; other events are
// rare. While batches from before a restart are ingested, only the last findings are kept: earlier ones were
// emitted before the restart.
//
// Owner: LiveJobs. One thread: the engine's worker.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "app/jobs/live_jobs.h"

namespace culprit::app {

class LiveEvents {
 public:
  // Takes the events of `out` and empties it. `restoring`: the events come from batches from before a
  // restart.
  void add(std::vector<LiveEvent>& out, bool restoring);
  // All batches from before the restart are ingested.
  void replayed();
  std::vector<LiveEvent> drain();
  uint64_t lost() const { return lost_; }  // findings beyond the limit

 private:
  std::deque<LiveEvent> events_;
  std::deque<LiveEvent> replayed_;  // while restoring: the last findings
  uint64_t lost_ = 0;
};

}  // namespace culprit::app
