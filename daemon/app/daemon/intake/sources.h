// The sources of the daemon, as configured: tailers, rings, the trace socket, the kernel log and the journal.
// Tailers (tails.h) and rings have separate workers, so a hung mount delays no other source. change()
// restarts only sources whose configuration changed. It does not interrupt clients of the trace socket, the
// rings, the kernel log or the journal.
//
// A source that fails to open is reported and retried; the others continue.
//
// Thread: the loop's. Owns all readers and their workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/intake/journal_source.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/intake/tails.h"
#include "base/status.h"
#include "base/thread_owner.h"
#include "ingest/live/kernel.h"
#include "ingest/live/ring_reader.h"
#include "ingest/live/trace_socket.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct SourcesOptions {
  const Config* config = nullptr;  // borrowed during start()
  std::vector<StreamState> known;
  TimeNs stored_until_ns = kNoTime;  // ingest::TailOptions
  // See ingest::TraceSocketOptions.
  std::function<void(const ingest::TraceLine&, const StreamInfo&)> on_trace_event = {};
  ProcessWatch* processes = nullptr;   // borrowed; null: jobs of processes are unknown
  std::shared_ptr<PodLogs> pods = {};  // null: the logs of pods are not followed
  std::function<StreamId()> allocate;  // called on any thread
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> report_error;
  int kernel_descriptor = -1;  // from systemd; borrowed
};

// By stream: the offset up to which evidence is committed.
using Committed = std::vector<std::pair<StreamId, uint64_t>>;

class Sources {
 public:
  Sources(io::Env& env, SourcesOptions options);
  ~Sources();

  void start();
  // Applies a reload, one at a time. `done`: all sources match `after`.
  void change(const Config& before, const Config& after, AskPositions positions, std::function<void()> done);
  // Stops reading for lack of credit: files wait, rings fill and count drops, writers of sockets block.
  void pause();
  void resume();
  void committed(const Committed& offsets);
  // Stops reading; calls `idle` when no round is running.
  void stop(std::function<void()> idle);
  void abandon();

  const Tails& tails() const { return *tails_; }
  const PodLogs* pods() const { return options_.pods.get(); }
  const ingest::RingStats* rings() const;
  const ingest::KernelStats* kernel() const;
  const JournalSource* journal() const { return journal_.get(); }
  std::optional<ingest::TraceStats> trace() const;
  // Name of a source whose round takes too long, for example on a hung mount.
  std::optional<std::string> stuck(TimeNs mono) const;

 private:
  struct TraceJob;
  struct Rings;
  struct Kernel;
  void start_rings();
  void start_kernel();
  void start_journal();
  Status open_kernel();
  void kernel_failed(const Error& error);
  void start_trace();
  void ring_round();
  void rings_changed();
  void watch_rings(bool local);
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
  std::unique_ptr<JournalSource> journal_;
  std::unique_ptr<ingest::TraceSocket> trace_;
  std::string trace_path_, trace_trouble_;
  std::unique_ptr<io::Timer> trace_retry_;
  ThreadOwner owner_;
};

}  // namespace culprit::app
