// What the daemon reads, as the configuration names it: tailers, rings, the trace socket, the kernel's
// messages. Tailers (tails.h) and the rings have workers of their own, so that a hung mount holds up nothing
// else. change() touches only what another configuration means to be another: the trace socket's clients, the
// rings and the kernel's messages go on.
//
// A source that cannot be opened is told in a sentence and tried again; the others go on.
//
// Thread: the loop's. Owns all readers and their workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config.h"
#include "app/daemon/process_watch.h"
#include "app/daemon/tails.h"
#include "base/status.h"
#include "ingest/live/kernel.h"
#include "ingest/live/ring_reader.h"
#include "ingest/live/trace_socket.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct SourcesOptions {
  const Config* config = nullptr;  // borrowed for start()
  std::vector<StreamState> known;
  ProcessWatch* processes = nullptr;   // borrowed; null: nobody tells the jobs of processes
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
  // A reload, one at a time: `done` when everything is as `after` says.
  void change(const Config& before, const Config& after, AskPositions positions, std::function<void()> done);
  // Without credit nothing is read: files wait, rings fill and count, writers of sockets are held up.
  void hold();
  void release();
  void committed(const Committed& offsets);
  // Nothing is read any more; `idle` when no round is under way.
  void stop(std::function<void()> idle);
  void abandon();

  const Tails& tails() const { return *tails_; }
  const ingest::RingStats* rings() const;
  const ingest::KernelStats* kernel() const;
  std::optional<ingest::TraceStats> trace() const;
  // Which of them has been at one round for too long, as where a mount hangs.
  std::optional<std::string> stuck(TimeNs mono) const;

 private:
  struct TraceJob;
  struct Rings;
  struct Kernel;
  void start_rings();
  void start_kernel();
  Status open_kernel();
  void kernel_failed(const Error& error);
  void start_trace();
  void ring_round();
  void read_kernel();
  void became_idle();
  bool busy() const;

  io::Env& env_;
  SourcesOptions options_;
  bool held_ = false, stopping_ = false;
  std::function<void()> idle_;
  const std::shared_ptr<TraceJob> trace_job_;
  std::unique_ptr<Tails> tails_;
  std::unique_ptr<Rings> rings_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<ingest::TraceSocket> trace_;
  std::string trace_path_, trace_trouble_;
  std::unique_ptr<io::Timer> trace_retry_;
};

}  // namespace culprit::app
