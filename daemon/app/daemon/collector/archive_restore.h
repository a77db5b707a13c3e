// Feeds the engine from the archive after a restart of a collector, while agents already send. New frames go
// to the archive meanwhile and are read from there. Each round feeds the frames committed at its start. The
// last round starts after new frames are paused and everything is committed; otherwise the engine would miss
// frames.
//
// An engine needs a microsecond for a line, so the day of 1,000 talkative hosts would keep their jobs without
// an answer for most of an hour. Condensed logs longer than `whole_bytes` are therefore read twice. The first
// time, so many bytes of their ends are read, an equal part of each stream, and blocks before are passed over
// (RemoteBatch). The second time, everything is given to second LiveJobs (EngineWorker::begin_second), while
// the first ones answer.
//
// Thread: the loop's, also for callbacks. Owner: CollectorService; destroyed when done.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/archive_writer.h"
#include "io/env.h"
#include "io/files.h"
#include "store/archive.h"

namespace culprit::app {

struct ArchiveRestoreOptions {
  store::Archive* archive = nullptr;  // these are borrowed; archive and writer are used by the worker only
  ArchiveWriter* writer = nullptr;
  io::Worker* worker = nullptr;
  // EngineWorker::query or query_second.
  using Query = std::function<void(std::function<void(LiveJobs&, TimeNs now)>, std::function<void()> done)>;
  Query engine;
  uint64_t part_bytes = 4 << 20;        // limits the wait of queries
  std::optional<uint64_t> whole_bytes;  // nothing: everything is read
  std::string folder;                   // of the archive
  std::set<std::string> ended;          // jobs whose ended streams are skipped
  std::function<void(const std::string&)> report_error;
  std::function<void(const ArchiveWork&)> committed;  // called after the commit of each round
  std::function<void()> pause;                        // after the call no frame goes to the archive
  std::function<void(bool passed_over)> done;         // the engine has everything, but for that
};

class ArchiveRestore {
 public:
  ArchiveRestore(io::Env& env, io::Files& files, ArchiveRestoreOptions options);
  void begin() { next_round(); }
  // Starts no further part.
  void stop() { stopped_ = true; }
  // Of condensed logs: read so far, and what there was at the start.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes() const { return std::max(bytes_read_, bytes_); }

 private:
  struct Feed;
  void next_round();
  void feed_part();
  void round_done();

  io::Env& env_;
  ArchiveRestoreOptions options_;
  std::shared_ptr<Feed> feed_;
  uint64_t bytes_ = 0, bytes_read_ = 0;
  int rounds_ = 0;
  bool last_ = false, stopped_ = false;
  std::unique_ptr<io::Timer> retry_timer_;
};

}  // namespace culprit::app
