// Feeds the engine from the archive after a restart of a collector, while agents already send. New frames go
// to the archive meanwhile and are read from there. Each round feeds the frames committed at its start. The
// last round starts after new frames are paused and everything is committed; otherwise the engine would miss
// frames.
//
// Thread: the loop's, also for callbacks. Owner: CollectorService; destroyed when done.
#pragma once

#include <functional>
#include <memory>
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
  EngineWorker* engine = nullptr;
  std::string folder;           // of the archive
  std::set<std::string> ended;  // jobs whose ended streams are skipped
  std::function<void(const std::string&)> report_error;
  std::function<void(const ArchiveWork&)> committed;  // called after the commit of each round
  std::function<void()> pause;                        // after the call no frame goes to the archive
  std::function<void()> done;                         // the engine has everything
};

class ArchiveRestore {
 public:
  ArchiveRestore(io::Env& env, io::Files& files, ArchiveRestoreOptions options);
  void begin() { next_round(); }
  // Starts no further part.
  void stop() { stopped_ = true; }

 private:
  struct Feed;
  void next_round();
  void feed_part();
  void round_done();

  io::Env& env_;
  ArchiveRestoreOptions options_;
  std::shared_ptr<Feed> feed_;
  int rounds_ = 0;
  bool last_ = false, stopped_ = false;
  std::unique_ptr<io::Timer> retry_timer_;
};

}  // namespace culprit::app
