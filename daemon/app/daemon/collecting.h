// The collector's side of the daemon: what agents send goes into the archive, on a worker of its own, and is
// acknowledged once it is committed; what is new of their condensed logs goes to the engine, in the order in
// which the archive has it. After a restart the engine gets that from the archive first, while agents already
// send: what comes meanwhile waits in the archive, and is read from it too.
//
// While the disk takes nothing, what came waits here, in order and bounded, nothing is acknowledged, and the
// agents keep what they have; it is tried again each second, told once, and health says so. A slow engine
// holds the agents up the same way.
//
// Thread: the loop's; callbacks come there. Owns the archive, its worker and the collector's connections.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/daemon/diagnoser.h"
#include "collect/collector.h"
#include "io/files.h"
#include "store/archive.h"
#include "store/archive_replay.h"

namespace culprit::app {

struct CollectingOptions {
  std::string state_dir;
  std::string listen;
  std::shared_ptr<const io::TlsCredentials> tls;  // null: plain, on loopback
  uint64_t max_bytes = 0;
  TimeNs max_age_ns = 0;
  Diagnoser* diagnoser = nullptr;                          // borrowed; goes later
  std::function<void(const std::string&)> complain, info;  // sentences for the log
  std::function<std::vector<std::string>()> running = {};  // jobs, for what may be dropped
  collect::CollectorOptions limits = {};                   // its listen, tls and program are set here
};

// What is known of a host that sends, or did.
struct HostFacts {
  std::string host;
  bool connected = false;
  std::string address, program, boot_id, left;  // `left`: why it is not connected
  TimeNs since_ns = kNoTime;                    // connected, or not, since then
  TimeNs seen_ns = kNoTime;
  TimeNs clock_ahead_ns = 0;
  std::optional<peer::Status> status;  // the last
  TimeNs status_ns = kNoTime;          // when it came
  TimeNs noted_ns = kNoTime;           // when the archive was last told
};

class Collecting : private collect::FrameSink {
 public:
  // Blocks while the archive is recovered.
  static Result<std::unique_ptr<Collecting>> open(io::Env& env, CollectingOptions options);
  ~Collecting() override;

  // Takes connections. An address that cannot be had is told, and tried again.
  void listen();
  // Gives the engine what the archive had; between LiveJobs::restoring() and replayed(), which are the
  // caller's. `done`: the engine has all of it, and nothing more comes until go_on().
  void restore(std::vector<std::string> ended_jobs, std::function<void()> done);
  void go_on();
  // A finding: evidence of that time is asked of these hosts, now or when they come back.
  void want(const std::vector<std::string>& hosts, TimeNs at, const std::string& reason);
  // Records of these steps are asked of these hosts; who is away is asked again by whoever wants them.
  void want_steps(const std::vector<std::string>& hosts, const peer::StepsWanted& wanted);
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  void set_retention(uint64_t max_bytes, TimeNs max_age_ns);
  // Says Bye; what came is committed, then `done`.
  void stop(std::function<void()> done);
  void abandon();

  // Runs on the archive's worker, after everything that came before.
  void ask(std::function<void(store::Archive&)> work, std::function<void()> done);
  const std::string& folder() const { return folder_; }
  io::Files& files() const { return files_; }

  // Why it does not get on, if so.
  std::optional<std::string> unhealthy(TimeNs mono) const;
  std::vector<HostFacts> hosts() const;  // connected, or seen since the start
  store::ArchiveStats archive() const { return stats_; }
  collect::CollectorStats connections() const;
  std::string address() const;
  struct Figures {
    uint64_t commits = 0, failed_commits = 0, engine_holds = 0;
    uint64_t steps_wanted = 0, steps_untaken = 0;  // records of steps asked of a host; the same
    uint64_t wants = 0, wants_untaken = 0;         // times asked of a host; that it could not be told at once
    size_t waiting = 0, engine_bytes = 0;
    bool restoring = false;
  };
  Figures figures() const;

 private:
  struct Item;
  struct Work;
  struct Restoring;
  Collecting(io::Env& env, CollectingOptions options);

  void hello(const peer::Hello& hello, HelloDone done) override;
  void take(Batch batch, std::function<void(Status)> done) override;
  void status(const std::string& host, const peer::Status& status) override;
  void connected(const std::string& host, const peer::Hello& hello, const std::string& address) override;
  void disconnected(const std::string& host, const std::string& why) override;
  void refused(peer::Refusal code, const std::string& sentence) override;

  void tell_engine(const std::string& host, TimeNs away_since);
  void pump();
  void run(Work& work);
  void append(Work& work, Item& item);
  Status append_one(const Item& item, const collect::LogItem& one, PieceBatch* taken, TimeNs now);
  void commit(Work& work);
  void worked(Work& work);
  void acknowledge(const Work& work);
  void note(const HostFacts& facts);
  void give_engine(std::vector<RemoteBatch>&& batches);
  void commit_after(TimeNs after);
  void tell(const Status& status);
  void replay_next();
  void replay_part();
  void round_done();
  void retain();
  void tell_lost_blocks();

  io::Env& env_;
  CollectingOptions options_;
  io::Files& files_;
  std::string folder_;
  std::unique_ptr<store::Archive> archive_;  // the worker's
  std::map<uint64_t, uint64_t> committed_;   // the worker's: by log, as far as known
  std::set<uint64_t> dirty_;                 // the worker's: logs of what was taken since the last commit
  std::deque<Item> queue_;
  std::shared_ptr<Restoring> restoring_;
  std::map<std::string, HostFacts> hosts_;
  std::map<std::string, std::deque<peer::Wanted>> wanted_;  // by host
  store::ArchiveStats stats_;                               // as of the last work
  Figures figures_;
  std::string trouble_, listen_trouble_;
  uint64_t told_lost_ = 0;          // blocks
  TimeNs busy_since_ns_ = kNoTime;  // monotonic: the worker's work under way
  bool paused_ = false, direct_ = true, commit_due_ = false, commit_waits_ = false, retry_waits_ = false;
  bool stopping_ = false;
  std::unique_ptr<collect::Collector> collector_;
  std::unique_ptr<io::Timer> commit_timer_, retry_timer_, retain_timer_, restore_timer_, listen_timer_;
  std::unique_ptr<io::Worker> worker_;  // goes first
};

}  // namespace culprit::app
