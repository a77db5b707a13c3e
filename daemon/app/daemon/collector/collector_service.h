// The collector's side of the daemon. A worker appends frames from agents to the archive; they are
// acknowledged once committed. New blocks of condensed logs then go to the engine, in the archive's order.
// After a restart the engine is first fed from the archive while agents already send. New frames go to the
// archive meanwhile and are read from there.
//
// If the disk fails, received frames wait in a bounded queue and are not acknowledged, so agents keep them.
// The write is retried every second, reported once, and shown by /healthz. A slow engine also pauses agents.
//
// Thread: the loop's, also for callbacks. Owns the archive, its worker and the collector's connections.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/collector/archive_restore.h"
#include "app/daemon/collector/bucket_service.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/archive_writer.h"
#include "base/thread_owner.h"
#include "collect/collector.h"
#include "io/files.h"
#include "store/archive.h"

namespace culprit::app {

struct CollectorServiceOptions {
  std::string state_dir;
  std::string listen;
  std::shared_ptr<const io::TlsCredentials> tls;  // null: no TLS, loopback only
  uint64_t max_bytes = 0;
  TimeNs max_age_ns = 0;
  uint64_t read_twice_above = UINT64_MAX;                      // see ArchiveRestoreOptions::whole_bytes
  EngineWorker* engine = nullptr;                              // borrowed; outlives this
  std::function<void(const std::string&)> report_error, info;  // sentences for the log
  // A host connected, with the kernel's boot id; empty: it is not connected any more.
  std::function<void(const std::string& host, const std::string& boot)> presence = {};
  std::function<std::vector<std::string>()> running = {};  // jobs whose data the archive must retain
  const Config* config = nullptr;                          // with [cluster]: for its bucket
  std::function<bool()> cluster_ready = {};                // the cluster's tables are there
  collect::CollectorOptions limits = {};                   // listen, tls and program are set by this class
};

// State of a host that is or was connected.
struct HostFacts {
  std::string host;
  bool connected = false;
  std::string address, program, boot_id, left;  // `left`: reason of the disconnection
  TimeNs since_ns = kNoTime;                    // start of the current connection state
  TimeNs seen_ns = kNoTime;
  TimeNs clock_ahead_ns = 0;
  std::optional<peer::Status> status;  // the most recent
  TimeNs noted_ns = kNoTime;           // time of the last write to the archive
};

class CollectorService : private collect::FrameSink {
 public:
  // Blocks during the recovery of the archive.
  static Result<std::unique_ptr<CollectorService>> open(io::Env& env, CollectorServiceOptions options);
  ~CollectorService() override;

  // Accepts connections. A failure to listen is reported and retried.
  void listen();
  // Feeds the archive's content to the engine. The caller calls LiveJobs::restoring() before and replayed()
  // afterwards. `done`: the engine has all stored content, but for what was passed over; new frames wait
  // until go_on().
  struct Reading {
    std::set<std::string> ended_jobs;
    bool again = false;  // for the second LiveJobs, which get everything
  };
  void restore(Reading reading, std::function<void(bool passed_over)> done);
  void go_on();
  // Requests evidence around `at` for a finding from these hosts; a disconnected host gets the request when
  // it reconnects.
  void want(const std::vector<std::string>& hosts, TimeNs at, const std::string& reason);
  // Sends StepsWanted, StacksWanted, EndTasks, a check or advice to these hosts' agents. A disconnected host
  // never gets it. Returns the number of hosts that it was sent to.
  size_t ask(const std::vector<std::string>& hosts, const peer::Message& request);
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  void set_retention(uint64_t max_bytes, TimeNs max_age_ns);
  // Sends Bye and commits received frames, then calls `done`.
  void stop(std::function<void()> done);
  void abandon();

  // Runs `work` on the archive's worker after all earlier work.
  void query(std::function<void(store::Archive&)> work, std::function<void()> done);
  store::EvidenceReader evidence() const { return {files_, folder_}; }

  BucketService* bucket() const { return bucket_.get(); }  // null: evidence stays in the archive

  // Why the collector makes no progress; nothing if it works.
  std::optional<std::string> unhealthy(TimeNs mono) const;
  std::vector<HostFacts> hosts() const;  // connected now or since the start
  store::ArchiveStats archive() const { return stats_; }
  collect::CollectorStats connections() const;
  std::string address() const;
  struct Counters {
    uint64_t commits = 0, failed_commits = 0, engine_holds = 0;
    struct Asked {
      uint64_t times = 0, unsent = 0;
    } steps, stacks, ends, checks, advice;  // requests for records of steps, for stacks, to end tasks, and
                                            // for checks; advice to jobs
    Asked alignments, judged;               // requests for an equal step; what came of one
    uint64_t wants = 0, wants_untaken = 0;  // requests for evidence; requests not sent at once
    size_t waiting = 0, engine_bytes = 0;
    bool restoring = false;
    // The second reading of condensed logs: read so far, and to read in all. 0: there is none.
    uint64_t read_again_bytes = 0, to_read_again_bytes = 0;
  };
  Counters counters() const;

 private:
  CollectorService(io::Env& env, CollectorServiceOptions options);

  void hello(const peer::Hello& hello, HelloDone done) override;
  void on_batch(Batch batch, std::function<void(Status)> done) override;
  void status(const std::string& host, const peer::Status& status) override;
  void connected(const std::string& host, const peer::Hello& hello, const std::string& address) override;
  void disconnected(const std::string& host, const std::string& why) override;
  void refused(peer::Refusal code, const std::string& sentence) override;

  void report_agent(const std::string& host, TimeNs away_since);
  void enqueue(std::function<void(store::Archive&)> work, std::function<void()> done);
  void begin_work();
  void pump();
  void worked(ArchiveWork& work);
  void acknowledge(const ArchiveWork& work);
  void note(const HostFacts& facts);
  std::vector<std::pair<std::string, TimeNs>> known_addresses();
  std::vector<std::string> known_hosts();
  void feed_engine(std::vector<RemoteBatch>&& batches);
  void commit_after(TimeNs after);
  void report_status(const Status& status);
  void retain();
  void report_lost_blocks();

  io::Env& env_;
  CollectorServiceOptions options_;
  io::Files& files_;
  std::string folder_;
  std::unique_ptr<store::Archive> archive_;  // used by the worker only
  std::unique_ptr<ArchiveWriter> writer_;    // used by the worker only
  std::deque<ArchiveItem> queue_;
  uint64_t gathered_bytes_ = 0;  // bytes of queued frames
  size_t gathered_items_ = 0;
  bool work_due_ = false;                    // the queued frames are processed without waiting for more
  std::unique_ptr<ArchiveRestore> restore_;  // null once the engine has the archive's content
  std::map<std::string, HostFacts> hosts_;
  std::map<uint64_t, uint64_t> archived_;                   // by epoch of a log of evidence: in noted objects
  std::map<std::string, std::deque<peer::Wanted>> wanted_;  // by host
  store::ArchiveStats stats_;                               // as of the worker's last finished work
  Counters counters_;
  std::string trouble_, listen_trouble_;
  uint64_t reported_lost_ = 0;      // blocks
  TimeNs busy_since_ns_ = kNoTime;  // monotonic: start of the worker's current work
  bool paused_ = false, direct_ = true, commit_due_ = false, commit_waits_ = false, retry_waits_ = false;
  bool stopping_ = false;
  std::unique_ptr<collect::Collector> collector_;
  std::unique_ptr<io::Timer> commit_timer_, retry_timer_, retain_timer_, listen_timer_;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
  std::unique_ptr<BucketService> bucket_;
  ThreadOwner owner_;
};

}  // namespace culprit::app
