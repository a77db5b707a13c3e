// Connects an agent to its collector. JobForwarder condenses stored batches into a separate log
// (state_dir/condensed). forward::Forwarder sends the frames of both logs, the condensed log first.
//
// A block of the condensed log is written after its evidence is synced, together with marks of the positions
// reached. After any restart the JobForwarder continues at the marks and condenses the remaining evidence. If
// the disk rejects a block, condensing stops. If the collector does not acknowledge and the space is used up,
// the store accepts no more data. In both cases the sources pause.
//
// Thread: the loop's. Owns the condensed spool and the JobForwarder (both on one worker), the frame readers
// (on another) and the connection. Borrows the recorder, which outlives it.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/keep/pipeline.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/self/error_report.h"
#include "app/daemon/self/waiting_since.h"
#include "app/jobs/job_forwarder.h"
#include "base/thread_owner.h"
#include "forward/forwarder.h"
#include "io/env.h"
#include "store/evidence.h"
#include "store/frames.h"

namespace culprit::app {

struct UplinkOptions {
  const Config* config = nullptr;  // configuration at the start
  Recorder* recorder = nullptr;
  SelfWatch* watch = nullptr;
  JobForwarderOptions feed;                              // the uplink sets the fields of the spools
  std::function<void(const std::string&)> report_error;  // called with one sentence for each change
  std::function<peer::Status()> status;                  // the host's status; the uplink adds the part on
                                                         // logs
  // The collector requests the stacks of a job on this host; may be empty.
  std::function<void(const peer::StacksWanted& wanted)> stacks_wanted = {};
  std::function<void(const peer::EndTasks& request)> end_tasks = {};
  std::function<void(const peer::Message& request)> check_host = {};
  std::function<void(const peer::Advise& request)> advise = {};
};

// For status, metrics and health.
struct UplinkCounters {
  forward::ForwarderStats forward;
  store::SpoolStats condensed;
  std::array<Recorder::Frames, 2> frames;  // by peer::Log
  JobForwarderCounts feed;
  size_t jobs = 0;
  bool caught_up = false;  // everything that was stored before the start is condensed
  std::string trouble;     // why condensing fails; empty: condensing works
  // Wall clock: start of the wait for an acknowledgement; kNoTime: no frame waits.
  TimeNs waits_since_ns = kNoTime;
  uint64_t waiting_bytes = 0;  // unacknowledged bytes of both logs
  // Acknowledged and not yet in the collector's bucket; those of them that were deleted for room.
  uint64_t unarchived_bytes = 0, given_up_bytes = 0;
  TimeNs certificate_expires_ns = kNoTime;
  // Examples: "connected to …", "the collector has not acknowledged for 3 h; 4.0 GiB wait".
  std::string sentence;
};

class Uplink final : public Pipeline, public forward::FrameSource {
 public:
  // Blocks during the recovery of the condensed spool.
  static Result<std::unique_ptr<Uplink>> start(io::Env& env, UplinkOptions options);
  ~Uplink() override;

  // Call in the store's order, from the first batch behind Recorder::known_sequence(), before the batch goes
  // to the recorder. `done`: the batch is condensed, but not yet written.
  void append(SharedBatch batch, std::function<void()> done) override;
  bool precedes_store() const override {
    return true;
  }  // the uplink condenses a batch before the store
     // commits it
  // The recorder has synced more frames.
  void evidence_synced() override;
  void reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) override;
  // Condenses and writes the appended batches within a time limit, then calls `done`.
  void finish(std::function<void()> done) override;
  UplinkCounters counters() const;
  std::vector<std::string> jobs() const { return reported_.jobs; }

  peer::LogBounds bounds(peer::Log log) const override;
  void read(forward::ReadRequest request, Done done) override;
  void acknowledged(peer::Log log, uint64_t sequence) override;
  uint64_t archived(peer::Log log, std::optional<uint64_t> sequence) override;
  void fell_behind(peer::Log log, uint64_t committed) override;
  void steps_wanted(const std::string& job, const std::vector<int64_t>& steps) override;
  void stacks_wanted(const peer::StacksWanted& wanted) override;
  void end_tasks(const peer::EndTasks& request) override;
  void check_host(const peer::Message& request) override;
  void advise(const peer::Advise& request) override;
  void send(const peer::Message& result);  // dropped without a connection

 private:
  struct Waiting {
    SharedBatch batch;
    uint64_t before = 0;  // the last frame written when the batch arrived
    size_t taken = 0;     // pieces already condensed
    std::function<void()> done;
  };
  // The worker's state after each work.
  struct WorkReport {
    bool empty = true, full = false, urgent = false, hurries = false;
    JobForwarderCounts counts;
    std::vector<std::string> jobs;
    store::SpoolStats stats;
    Recorder::Frames frames;
    Status written;       // outcome of writing blocks
    std::string refused;  // last part since the previous report that the spool rejected for good
    bool unwritten = false;
  };
  struct Reader;

  Uplink(io::Env& env, UplinkOptions options);
  Status open();
  void connect();
  void load_tls();
  void pump();
  void work(std::string what, std::function<void(TimeNs)> work, std::function<void()> done = {});
  void worked(const WorkReport& reported);
  WorkReport report(TimeNs now);
  void replay_part();
  void ingest_current();
  bool flush_due() const;
  void flush();
  void write(TimeNs now);
  void beat();
  void forget_removed();
  void finished();
  const Recorder::Frames& log_frames(peer::Log log) const;
  void look_at_waiting();
  void report_error(ErrorReport& of, const std::string& trouble, const char* mended);
  static size_t index(peer::Log log) { return static_cast<size_t>(log); }

  io::Env& env_;
  UplinkOptions options_;
  forward::ForwarderOptions forward_;
  io::Files& files_;
  const std::string folder_;
  std::unique_ptr<store::Spool> spool_;  // worker only, except allocate()
  std::unique_ptr<JobForwarder> feed_;   // worker only
  std::shared_ptr<store::Replay> replay_;
  std::deque<PieceBatch> unwritten_;  // worker only: blocks not yet accepted by the spool
  Status written_;                    // worker only
  std::string refused_;               // worker only
  uint64_t replay_from_ = 0;
  bool replayed_ = false, busy_ = false, stopping_ = false, pausing_ = false;
  WorkReport reported_;
  std::shared_ptr<Waiting> current_;  // partly condensed batch, from waiting_ or from the replay
  std::deque<Waiting> waiting_;
  TimeNs flushed_ns_ = kNoTime, ticked_ns_ = kNoTime, forgot_ns_ = 0;  // monotonic
  std::array<uint64_t, 2> raised_ = {}, acknowledged_ = {};
  std::array<uint64_t, 2> archived_ = {}, freed_ = {};
  std::array<bool, 2> archives_ = {};  // the last collector puts the log into object storage
  std::array<WaitingSince, 2> waits_;  // wall clock
  std::string tls_trouble_;            // the current problem
  ErrorReport of_disk_, of_refused_, of_tls_, of_link_;
  std::shared_ptr<const io::TlsCredentials> tls_;
  std::function<void()> finish_done_;
  std::unique_ptr<io::Timer> beat_timer_, pause_timer_, finish_timer_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  std::shared_ptr<Reader> readers_;  // used by the reading worker
  std::unique_ptr<io::Worker> reading_;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
  ThreadOwner owner_;
};

}  // namespace culprit::app
