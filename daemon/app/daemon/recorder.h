// The store's side of the daemon: what the sources give goes into the spool, what was found into the index,
// both on one worker. Batches are committed some times a second, so that what a socket sent is at risk for
// no longer, and synced to the disk every few seconds.
//
// While the disk takes nothing, batches wait here in order (their sender holds back as credit runs out) and
// are tried again; nothing is dropped but what the spool can never take, which is counted and told.
//
// Thread: the loop's; callbacks come there. Owns the spool, the index and their worker.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/daemon/self_watch.h"
#include "base/status.h"
#include "io/env.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/evidence.h"
#include "store/index.h"
#include "store/spool.h"

namespace culprit::app {

using SharedBatch = std::shared_ptr<const PieceBatch>;

struct RecorderOptions {
  std::string state_dir;
  uint64_t max_bytes = 0;
  bool hold = false;                                 // frames go to a collector: Spool::hold
  SelfWatch* watch = nullptr;                        // borrowed
  std::function<void(const std::string&)> complain;  // a sentence, once for each change
  // frames() has more that is synced.
  std::function<void()> synced = {};
  // Everything that was appended stands in the spool now, up to the frame of that number.
  std::function<void(const std::vector<store::CommittedOffset>&, uint64_t sequence)> committed;
};

class Recorder {
 public:
  // Blocks: recovers the spool and the index.
  static Result<std::unique_ptr<Recorder>> open(io::Env& env, RecorderOptions options);
  ~Recorder();

  StreamId allocate() { return spool_->allocate(); }  // any thread
  // `done`: the spool has it (appended, not yet committed), or it can never have it.
  void append(SharedBatch batch, std::function<void()> done);
  // Everything that append() was given so far stands in frames up to one, and these are synced; or not (the
  // disk failed), and it may be asked again. Waits for a disk that takes nothing.
  void secure(std::function<void(Result<uint64_t> sequence)> done);
  // The frames up to it are a collector's.
  void acknowledged(uint64_t sequence);
  // Runs on the store's worker, after everything appended so far.
  using OnStore = std::function<void(store::Spool&, store::Index&)>;
  void ask(OnStore work, std::function<void()> done = {});
  // Of the index, in order. Where it cannot be written (a full disk, somebody has it locked), that is told
  // once, and what is to be written waits and is tried again; beyond a bound the oldest is lost, counted.
  void record(std::function<Status(store::Index&)> work);
  // Where all streams stand, everything included that append() was given, also while the disk takes nothing.
  void positions(std::function<void(std::vector<StreamState>)> done);
  // The end: everything is tried once more, committed and synced; then `done`.
  void finish(std::function<void()> done);
  void abandon() { worker_->abandon(); }

  // As of the start: what sources go on from, and where engines are rebuilt to.
  const std::vector<StreamState>& known() const { return known_; }
  uint64_t known_sequence() const { return known_sequence_; }
  const std::vector<store::JobRow>& known_jobs() const { return known_jobs_; }
  // Whether the process before ended by itself, after everything that it had taken was stored.
  bool ended_well() const { return ended_well_; }
  const std::string& known_pool() const { return known_pool_; }
  const std::string& spool_folder() const { return spool_folder_; }
  io::Files& files() const { return files_; }

  // The spool as a log of frames, as of the last work on it.
  struct Frames {
    uint64_t epoch = 0, first = 1;
    uint64_t synced = 0, written = 0, acknowledged = 0;
  };
  const Frames& frames() const { return frames_; }
  struct Figures {
    store::SpoolStats spool;
    uint64_t refused_batches = 0;                // that the spool can never take
    size_t waiting = 0;                          // batches
    uint64_t index_retries = 0, index_lost = 0;  // writes of the index
  };
  Figures figures() const;

 private:
  Recorder(io::Env& env, RecorderOptions options);
  struct Waiting {
    SharedBatch batch;
    std::function<void()> done;
  };
  Status begin_life();
  struct Outcome;
  void append_next();
  void appended(const Status& status, bool with_commit);
  void commit();
  void tell_dropped(const store::SpoolStats& now);
  void commit_now(Outcome& outcome, TimeNs now);
  void committed(const Outcome& outcome);
  void sync();
  void note_frames(const Frames& now);
  Status write_index();
  void index_written(const Status& status);
  void tell(std::string& trouble, const Status& status, const char* meanwhile);
  Status standing() const;

  io::Env& env_;
  RecorderOptions options_;
  io::Files& files_;
  std::string spool_folder_;
  std::unique_ptr<store::Spool> spool_;  // the worker's, but for allocate()
  std::unique_ptr<store::Index> index_;  // the worker's
  std::vector<StreamState> known_;
  std::vector<store::JobRow> known_jobs_;
  std::string known_pool_;
  bool ended_well_ = false;
  uint64_t known_sequence_ = 0;
  std::deque<Waiting> waiting_;
  std::shared_ptr<const Status> appending_;  // what becomes of the first that waits; null: nothing is tried
  bool committing_ = false, dirty_ = false, unsynced_ = false, finishing_ = false;
  std::deque<std::function<Status(store::Index&)>> unwritten_;  // the worker's: of the index
  Status index_failure_;                                        // the worker's: of the first that waits
  bool index_retrying_ = false;                                 // the timer runs
  std::atomic<uint64_t> index_retries_ = 0, index_lost_ = 0;
  TimeNs told_dropped_ns_ = kNoTime;                          // monotonic
  TimeNs committed_ns_ = kNoTime;                             // monotonic: when the last commit was begun
  std::string write_trouble_, sync_trouble_, index_trouble_;  // told last
  uint64_t refused_batches_ = 0;
  store::SpoolStats stats_;  // as of the last work on the worker
  Frames frames_;
  std::unique_ptr<io::Timer> commit_timer_, sync_timer_, retry_timer_, index_timer_;
  std::unique_ptr<io::Worker> worker_;  // goes first
};

// Of a spool, on its worker.
Recorder::Frames frames_of(const store::Spool& spool);

}  // namespace culprit::app
