// The store's side of the daemon. One worker writes evidence to the spool and results to the index. Batches
// are committed several times a second, which limits the loss of data from sockets. They are synced to the
// disk every few seconds.
//
// If the disk fails, batches wait here in order and are retried; their sender pauses as credit runs out. Only
// a batch that the spool can never store is dropped, counted and reported.
//
// Thread: the loop's, also for callbacks. Owns the spool, the index and their worker.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/daemon/self/self_watch.h"
#include "base/status.h"
#include "base/thread_owner.h"
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
  bool hold = false;                                     // the spool holds frames until a collector
                                                         // acknowledges them: Spool::hold
  SelfWatch* watch = nullptr;                            // borrowed
  std::function<void(const std::string&)> report_error;  // called with one sentence for each change
  // Called when more of frames() is synced.
  std::function<void()> synced = {};
  // All appended batches are in the spool, in frames up to `sequence`.
  std::function<void(const std::vector<store::CommittedOffset>&, uint64_t sequence)> committed;
};

class Recorder {
 public:
  // Blocks during the recovery of the spool and the index.
  static Result<std::unique_ptr<Recorder>> open(io::Env& env, RecorderOptions options);
  ~Recorder();

  StreamId allocate() { return spool_->allocate(); }  // any thread
  // `done`: the batch is appended but not committed, or the spool rejected it for good.
  void append(SharedBatch batch, std::function<void()> done);
  // Calls `done` with the last frame of all batches appended so far, once these frames are synced. An error
  // means that the disk failed; the call may be repeated. Waits while the disk accepts no writes.
  void secure(std::function<void(Result<uint64_t> sequence)> done);
  // A collector acknowledged the frames up to `received`; those up to `freed` may be deleted.
  void acknowledged(uint64_t received, uint64_t freed);
  // The job was diagnosed: the spool prefers to retain evidence of the minutes around `time_ns`.
  void pin(const std::string& job, TimeNs time_ns);
  // Work for the store's worker, after all earlier batches.
  using OnStore = std::function<void(store::Spool&, records::Records&)>;
  void query(OnStore work, std::function<void()> done = {});
  // Writes to the index, in order. If the index is not writable (full disk, locked), the failure is reported
  // once and the writes are retried. Beyond a bound the oldest writes are dropped and counted.
  void record(std::function<Status(records::Records&)> work);
  // In a query: writes of record() wait, so the index lacks results that were reported before the query.
  bool index_waits() const { return !unwritten_.empty(); }
  // Positions of all streams, including every batch given to append(), also while the disk accepts no writes.
  void positions(std::function<void(std::vector<StreamState>)> done);
  // Retries, commits and syncs everything once more, then calls `done`.
  void finish(std::function<void()> done);
  void abandon() { worker_->abandon(); }

  // Positions at the start: sources continue there, and engines are rebuilt up to these positions.
  const std::vector<StreamState>& known() const { return known_; }
  uint64_t known_sequence() const { return known_sequence_; }
  const std::vector<records::JobRow>& known_jobs() const { return known_jobs_; }
  // Whether the previous process stopped by itself after storing all its data.
  bool ended_well() const { return ended_well_; }
  // Spool::stored_until_ns(); kNoTime after a stop that stored everything.
  TimeNs stored_until_ns() const { return ended_well_ ? kNoTime : stored_until_ns_; }
  // What jobs taught before the start; the next call returns nothing.
  std::vector<records::TaughtRow> take_known_taught() { return std::move(known_taught_); }
  const std::string& spool_folder() const { return spool_folder_; }
  io::Files& files() const { return files_; }

  // The spool as a log of frames, as of the worker's last finished work.
  struct Frames {
    uint64_t epoch = 0, first = 1;
    uint64_t synced = 0, written = 0, acknowledged = 0;
  };
  const Frames& frames() const { return frames_; }
  struct Counters {
    store::SpoolStats spool;
    uint64_t refused_batches = 0;                // batches that the spool rejected for good
    size_t waiting = 0;                          // batches
    uint64_t index_retries = 0, index_lost = 0;  // writes to the index
    uint64_t unreadable_rows = 0;                // see store::Index::unreadable
  };
  Counters counters() const;

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
  void report_dropped(const store::SpoolStats& now);
  void report_evicted(const store::SpoolStats& now);
  void report_given_up(const store::SpoolStats& now);
  void commit_now(Outcome& outcome, TimeNs now);
  void committed(const Outcome& outcome);
  void sync();
  void note_frames(const Frames& now);
  Status write_index();
  void index_written(const Status& status);
  void report_trouble(std::string& trouble, const Status& status, const char* meanwhile);
  Status health() const;

  io::Env& env_;
  RecorderOptions options_;
  io::Files& files_;
  std::string spool_folder_;
  std::unique_ptr<store::Spool> spool_;  // worker only, except allocate()
  std::unique_ptr<store::Index> index_;  // worker only
  std::vector<StreamState> known_;
  std::vector<records::JobRow> known_jobs_;
  std::vector<records::TaughtRow> known_taught_;
  bool ended_well_ = false;
  TimeNs stored_until_ns_ = kNoTime;
  uint64_t known_sequence_ = 0;
  std::deque<Waiting> waiting_;
  // Result of appending the first waiting batch; null: no append is running
  std::shared_ptr<const Status> appending_;
  bool committing_ = false, dirty_ = false, unsynced_ = false, finishing_ = false;
  std::deque<std::function<Status(records::Records&)>> unwritten_;  // worker only: pending writes to the
                                                                    // index
  Status index_failure_;                                            // worker only: last error of the first
                                                                    // pending write
  bool index_retrying_ = false;                                     // the timer runs
  Status index_in_memory_;                                          // why the index is only in memory;
                                                                    // constant after the start
  std::atomic<uint64_t> index_retries_ = 0, index_lost_ = 0;
  TimeNs reported_dropped_ns_ = kNoTime;                      // monotonic
  TimeNs reported_evicted_ns_ = kNoTime;                      // monotonic
  TimeNs reported_given_up_ns_ = kNoTime;                     // monotonic
  TimeNs committed_ns_ = kNoTime;                             // monotonic: start of the last commit
  std::string write_trouble_, sync_trouble_, index_trouble_;  // problems as last reported
  uint64_t refused_batches_ = 0;
  store::SpoolStats stats_;  // as of the worker's last finished work
  Frames frames_;
  std::unique_ptr<io::Timer> commit_timer_, sync_timer_, retry_timer_, index_timer_;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
  ThreadOwner owner_;
};

// Must run on the spool's worker.
Recorder::Frames frames_of(const store::Spool& spool);

}  // namespace culprit::app
