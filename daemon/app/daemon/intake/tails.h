// The tailers of all [[log]] tables, one for each folder that the tables name. A tailer's round runs after a
// change in the folder or after an interval. Tailers share a bounded number of threads, so a hung mount
// delays few others.
//
// change() applies new tables: unchanged ones continue, the others stop and restart at the store's positions.
// A tailer that does not stop within seconds (a dead mount) is abandoned with its thread. Its later results
// are ignored; its descriptors close when the mount answers or the process ends. No byte is lost or repeated:
// the store has the earlier results, and the next tailer starts behind them.
//
// Thread: the loop's. Owns the tailers and threads, except abandoned ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/intake/pod_logs.h"
#include "app/jobs/process_view.h"
#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "ingest/live/tailer.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

// A round ends after some megabytes and should take less than a second, so a round of this length hangs.
constexpr TimeNs kStuckNs = 20 * kNsPerSecond;
constexpr TimeNs kRetryNs = 5 * kNsPerSecond;  // interval of attempts to open a source

struct TailsOptions {
  std::function<StreamId()> allocate;  // called on any thread
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> report_error;
  // See JobRules; called on any thread.
  std::function<std::shared_ptr<const ProcessView>(TimeNs since_ns)> processes;
  std::shared_ptr<PodLogs> pods;     // null: none; set where a table is that of the pods
  TimeNs stored_until_ns = kNoTime;  // as in ingest::TailOptions; for tables known at the start
};

// Requests the positions of all streams, including every batch passed on before the call.
using AskPositions = std::function<void(std::function<void(std::vector<StreamState>)>)>;

class Tails {
 public:
  Tails(io::Env& env, TailsOptions options);
  ~Tails();

  void start(const std::vector<LogWatch>& logs, const std::vector<StreamState>& known);
  // One at a time; `done`: the new tailers have started.
  void change(const std::vector<LogWatch>& logs, AskPositions positions, std::function<void()> done);
  void pause() { held_ = true; }
  void resume();
  // Starts no more rounds; calls `idle` after the last one.
  void stop(std::function<void()> idle);
  bool busy() const;
  void abandon();

  struct Tail {
    std::string glob;
    ingest::TailStats stats;
  };
  std::vector<Tail> tails() const;
  // Name of a tailer whose round takes too long, for example on a hung mount.
  std::optional<std::string> stuck(TimeNs mono) const;
  bool watches_folders() const { return folder_watch_ != nullptr; }
  // Threads hung in an abandoned tailer: now, and since the start.
  size_t left_behind() const;
  uint64_t left_behind_total() const { return left_behind_total_; }

 private:
  struct Watched;
  struct Follow;
  struct Lane;
  struct Change;
  Status add_table(const LogWatch& log, std::vector<Watched>& all) const;
  std::vector<Watched> grouped(const std::vector<LogWatch>& logs) const;
  void follow(Watched&& watched, const std::vector<StreamState>& known, size_t groups);
  size_t free_lane();
  io::Worker* worker_of(Follow& follow);
  void hint(const std::string& folder);
  void look(Follow& follow);
  void begin_round(Follow& follow);
  void end_round(Follow& follow, ingest::TailOutcome&& outcome);
  void watch_folders(Follow& follow, ingest::TailOutcome& outcome);
  void forget_folders(Follow& follow);
  void go_on_changing();
  void leave_hung_behind();
  void begin_changed(const std::vector<StreamState>& known);

  io::Env& env_;
  TailsOptions options_;
  bool held_ = false, stopping_ = false;
  std::function<void()> idle_;
  std::unique_ptr<io::FolderWatch> folder_watch_;
  std::map<std::string, std::set<Follow*>> watched_;  // by folder
  std::vector<std::unique_ptr<Follow>> follows_;
  std::vector<Lane> lanes_;  // destroyed before follows_
  std::vector<std::weak_ptr<ingest::Tailer>> left_behind_;
  uint64_t left_behind_total_ = 0;
  std::unique_ptr<Change> change_;
  std::unique_ptr<io::Timer> deadline_;
  ThreadOwner owner_;
};

}  // namespace culprit::app
