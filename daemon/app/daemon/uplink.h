// An agent's way to its collector: what the store gets is condensed (HostFeed) into a log of its own
// (state_dir/condensed), and the frames of both logs go to the collector (forward::Forwarder), it first.
//
// A block of the condensed log is written once the evidence that it is made of is synced, together with the
// marks that tell how far it is; so after any end the feed goes on from there, reading what it had not
// condensed from the evidence. While the disk does not take a block nothing more is condensed, and while the
// collector does not acknowledge and the room for what waits is used up, the store takes nothing more: either
// way sources wait.
//
// Thread: the loop's. Owns the condensed spool, the feed (both on one worker), the readers of frames (on
// another) and the connection. Borrows the recorder, which outlives it.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/daemon/complaint.h"
#include "app/daemon/host_feed.h"
#include "app/daemon/recorder.h"
#include "app/daemon/waiting_since.h"
#include "forward/forwarder.h"
#include "io/env.h"
#include "store/evidence.h"
#include "store/frames.h"

namespace culprit::app {

struct UplinkOptions {
  const Config* config = nullptr;  // of the start
  Recorder* recorder = nullptr;
  SelfWatch* watch = nullptr;
  FeedOptions feed;                                  // the uplink fills in what is the spools'
  std::function<void(const std::string&)> complain;  // a sentence, once for each change
  std::function<peer::Status()> status;              // of the host; the logs' part is the uplink's
};

// For status, metrics and health.
struct UplinkFigures {
  forward::ForwarderStats forward;
  store::SpoolStats condensed;
  std::array<Recorder::Frames, 2> frames;  // by peer::Log
  FeedCounts feed;
  size_t jobs = 0, waiting_batches = 0;
  bool caught_up = false;  // what was there at the start is condensed
  std::string trouble;     // why nothing is condensed; empty: it is
  // Wall clock: since when something is there and nothing was acknowledged; kNoTime: nothing waits.
  TimeNs waits_since_ns = kNoTime;
  uint64_t waiting_bytes = 0;  // that are not acknowledged, of both logs
  TimeNs certificate_expires_ns = kNoTime;
  // "connected to …", "the collector has not acknowledged for 3 h; 4.0 GiB wait".
  std::string sentence;
};

class Uplink : public forward::FrameSource {
 public:
  // Blocks: recovers the condensed spool.
  static Result<std::unique_ptr<Uplink>> start(io::Env& env, UplinkOptions options);
  ~Uplink() override;

  // In the store's order, from the first one behind Recorder::known_sequence(), and not after it was given to
  // the recorder. `done`: it is condensed, though not written yet.
  void take(SharedBatch batch, std::function<void()> done);
  // The recorder has synced more.
  void evidence_synced();
  void reload(const Config& config, std::shared_ptr<rules::Ruleset> rules);
  // What was taken is condensed and written, as far as there is time; then `done`.
  void finish(std::function<void()> done);
  UplinkFigures figures() const;
  std::vector<std::string> jobs() const { return told_.jobs; }

  peer::LogBounds bounds(peer::Log log) const override;
  void read(forward::ReadRequest request, Done done) override;
  void acknowledged(peer::Log log, uint64_t sequence) override;
  void fell_behind(peer::Log log, uint64_t committed) override;
  void steps_wanted(const std::string& job, const std::vector<int64_t>& steps) override;

 private:
  struct Waiting {
    SharedBatch batch;
    uint64_t before = 0;  // the last frame that was written when it came
    size_t taken = 0;     // of its pieces
    std::function<void()> done;
  };
  // What the worker tells after each work.
  struct Told {
    bool empty = true, full = false, urgent = false, hurries = false;
    FeedCounts counts;
    std::vector<std::string> jobs;
    store::SpoolStats stats;
    Recorder::Frames frames;
    Status written;       // of blocks
    std::string refused;  // the last part that the spool can never take, since the last work
    bool unwritten = false;
  };
  struct Reader;

  Uplink(io::Env& env, UplinkOptions options);
  Status open();
  void connect();
  void load_tls();
  void pump();
  void work(std::string what, std::function<void(TimeNs)> work, std::function<void()> done = {});
  void worked(const Told& told);
  Told tell(TimeNs now);
  void replay_part();
  void take_current();
  bool flush_due() const;
  void flush();
  void write(TimeNs now);
  void beat();
  void forget_gone();
  void finished();
  uint64_t log_synced(peer::Log log) const;
  uint64_t log_written(peer::Log log) const;
  void look_at_waiting();
  void complain(Complaint& of, const std::string& trouble, const char* mended);
  static size_t index(peer::Log log) { return static_cast<size_t>(log); }

  io::Env& env_;
  UplinkOptions options_;
  forward::ForwarderOptions forward_;
  io::Files& files_;
  const std::string folder_;
  std::unique_ptr<store::Spool> spool_;  // the worker's, but for allocate()
  std::unique_ptr<HostFeed> feed_;       // the worker's
  std::shared_ptr<store::Replay> replay_;
  std::deque<PieceBatch> unwritten_;  // the worker's: blocks that the spool did not take yet
  Status written_;                    // the worker's
  std::string refused_;               // the worker's
  uint64_t replay_from_ = 0;
  bool replayed_ = false, busy_ = false, stopping_ = false, pausing_ = false;
  Told told_;
  std::shared_ptr<Waiting> current_;  // of waiting_ or of before, not taken whole
  std::deque<Waiting> waiting_;
  TimeNs flushed_ns_ = kNoTime, ticked_ns_ = kNoTime, forgot_ns_ = 0;  // monotonic
  std::array<uint64_t, 2> raised_ = {}, acknowledged_ = {};
  std::array<WaitingSince, 2> waits_;  // wall clock
  std::string tls_trouble_;            // as it is now
  Complaint of_disk_, of_refused_, of_tls_, of_link_;
  std::shared_ptr<const io::TlsCredentials> tls_;
  std::function<void()> finish_done_;
  std::unique_ptr<io::Timer> beat_timer_, pause_timer_, finish_timer_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  std::shared_ptr<Reader> readers_;  // the reading worker's
  std::unique_ptr<io::Worker> reading_;
  std::unique_ptr<io::Worker> worker_;  // goes first
};

}  // namespace culprit::app
