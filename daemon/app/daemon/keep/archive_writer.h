// The worker's side of CollectorService: writes data of hosts into the archive and commits it, in the order
// of arrival.
//
// Thread: the archive's worker. Owner: CollectorService, which makes the work and reads its outcome.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "app/jobs/live_jobs.h"
#include "base/status.h"
#include "collect/frame_sink.h"
#include "store/archive.h"

namespace culprit::app {

// Work in order of arrival: a hello, frames, or a query.
struct ArchiveItem {
  peer::Hello hello;
  collect::FrameSink::HelloDone answer;
  collect::FrameSink::Batch batch;
  size_t next = 0;  // next of the batch's items
  std::function<void(Status)> done;
  std::function<void(store::Archive&)> work;
  std::function<void()> worked;
  // The outcome:
  bool finished = false;
  Result<std::vector<peer::LogMark>> marks;
  Status outcome;
  std::vector<RemoteBatch> fresh;  // new batches for the engine
};

struct ArchiveWork {
  std::deque<ArchiveItem> items;
  TimeNs now = 0;
  bool commits = false;
  bool direct = true;  // the engine gets new blocks of condensed logs
  // The outcome:
  std::vector<store::CommittedLog> committed;
  Status written;      // a disk error: the remaining items wait
  bool dirty = false;  // some frames are not committed yet
  store::ArchiveStats stats;
};

class ArchiveWriter {
 public:
  explicit ArchiveWriter(store::Archive& archive) : archive_(archive) {}

  // Processes all items, then commits if the work requests it or much data is waiting.
  void run(ArchiveWork& work);
  void commit(ArchiveWork& work);

 private:
  void greet(ArchiveItem& item, TimeNs now);
  void append(ArchiveWork& work, ArchiveItem& item);
  Status append_one(const ArchiveItem& item, const collect::LogItem& one, PieceBatch* taken, TimeNs now);

  store::Archive& archive_;
  std::map<uint64_t, uint64_t> committed_;  // last committed frame by log, if known
  std::set<uint64_t> dirty_;                // logs with frames since the last commit
};

}  // namespace culprit::app
