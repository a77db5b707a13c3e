// The tailers of all [[log]] tables: one for each folder that tables name, in rounds that run when something
// changed there or when it is time to look. They share a bounded number of threads, so that a hung mount
// holds up few others.
//
// change() gives them other tables: those that are the same go on undisturbed, the others are stopped and
// begun anew where the store stands. A tailer that does not stop within seconds (a dead mount) is left behind
// with its thread: what it brings after that counts for nothing, and its descriptors go with it, when the
// mount answers or with the process. No byte is lost or doubled by it: what it handed on before is in the
// store's order, and the next tailer begins behind that.
//
// Thread: the loop's. Owns tailers and threads, but for those left behind.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/process_view.h"
#include "base/status.h"
#include "ingest/live/tailer.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct TailsOptions {
  std::function<StreamId()> allocate;  // any thread
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> complain;
  // Of JobRules; any thread.
  std::function<std::shared_ptr<const ProcessView>(TimeNs since_ns)> processes;
};

// Answers with where all streams stand, everything included that was handed on before.
using AskPositions = std::function<void(std::function<void(std::vector<StreamState>)>)>;

class Tails {
 public:
  Tails(io::Env& env, TailsOptions options);
  ~Tails();

  void start(const std::vector<LogWatch>& logs, const std::vector<StreamState>& known);
  // One at a time; `done` when the new ones have begun.
  void change(const std::vector<LogWatch>& logs, AskPositions positions, std::function<void()> done);
  void hold() { held_ = true; }
  void release();
  // No round is begun any more; `idle` is called when the last one is over.
  void stop(std::function<void()> idle);
  bool busy() const;
  void abandon();

  struct Tail {
    std::string glob;
    ingest::TailStats stats;
  };
  std::vector<Tail> tails() const;
  // Which of them has been at one round for too long, as where a mount hangs.
  std::optional<std::string> stuck(TimeNs mono) const;
  bool watches_folders() const { return folder_watch_ != nullptr; }
  // Threads that hang in a tailer nobody waits for: now, and since the start.
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
  std::vector<Lane> lanes_;  // go before follows_
  std::vector<std::weak_ptr<ingest::Tailer>> left_behind_;
  uint64_t left_behind_total_ = 0;
  std::unique_ptr<Change> change_;
  std::unique_ptr<io::Timer> deadline_;
};

}  // namespace culprit::app
