// What the daemon reads, as the configuration names it: tailers, rings, the trace socket, the kernel's
// messages. Each tailer and the rings have a worker of their own, so that a hung mount holds up nothing else;
// rounds run when something changed, or when it is time to look.
//
// A source that cannot be opened is told in a sentence and tried again; the others go on.
//
// Thread: the loop's. Owns all readers and their workers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "base/status.h"
#include "ingest/live/kernel.h"
#include "ingest/live/ring_reader.h"
#include "ingest/live/tailer.h"
#include "ingest/live/trace_socket.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct SourcesOptions {
  const Config* config = nullptr;  // borrowed for start()
  std::vector<StreamState> known;
  std::function<StreamId()> allocate;  // any thread
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> complain;
  int kernel_descriptor = -1;  // handed over by systemd; borrowed
};

// A stream's evidence is in the store up to here.
using Committed = std::vector<std::pair<StreamId, uint64_t>>;

class Sources {
 public:
  Sources(io::Env& env, SourcesOptions options);
  ~Sources();

  void start();
  // Without credit nothing is read: files wait, rings fill and count, writers of sockets are held up.
  void hold();
  void release();
  void committed(const Committed& offsets);
  // Nothing is read any more; `idle` when no round is under way.
  void stop(std::function<void()> idle);
  void abandon();

  struct Tail {
    std::string glob;
    ingest::TailStats stats;
  };
  std::vector<Tail> tails() const;
  const ingest::RingStats* rings() const;
  const ingest::KernelStats* kernel() const;
  std::optional<ingest::TraceStats> trace() const;
  // Which of them has been at one round for too long, as where a mount hangs.
  std::optional<std::string> stuck(TimeNs mono) const;
  bool watches_folders() const { return folder_watch_ != nullptr; }

 private:
  struct Follow;
  struct Rings;
  struct Kernel;
  void start_tailers();
  void start_rings();
  void start_kernel();
  Status open_kernel();
  void kernel_failed(const Error& error);
  void start_trace();
  void hint(const std::string& folder);
  void look(Follow& follow);
  void begin_round(Follow& follow);
  void end_round(Follow& follow, ingest::TailOutcome&& outcome);
  void watch_folders(Follow& follow, ingest::TailOutcome& outcome);
  void ring_round();
  void read_kernel();
  void became_idle();
  bool busy() const;

  io::Env& env_;
  SourcesOptions options_;
  bool held_ = false, stopping_ = false;
  std::function<void()> idle_;
  std::unique_ptr<io::FolderWatch> folder_watch_;
  std::map<std::string, std::set<Follow*>> watched_;  // by folder
  std::vector<std::unique_ptr<Follow>> follows_;
  std::vector<std::unique_ptr<io::Worker>> tail_workers_;  // go before follows_
  std::unique_ptr<Rings> rings_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<ingest::TraceSocket> trace_;
  std::string trace_path_, trace_job_, trace_trouble_;
  std::unique_ptr<io::Timer> trace_retry_;
};

}  // namespace culprit::app
