// Which job a piece of this host belongs to, and what it says to that job. The same for jobs whose engines
// run here (LiveJobs) and for those that go to a collector (JobForwarder): each is a JobTable of RoutedJobs.
//
// Thread: that of the table. Streams, pieces and batches are borrowed for the call. No clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/jobs/job_inputs.h"
#include "base/time.h"
#include "model/piece.h"

namespace culprit::app {

// The streams of one running job, and which of them ended.
class JobStreams {
 public:
  // A piece of a stream. Dumps lie about after their job, and peers of a socket come back: neither counts.
  void note(const StreamInfo& info, const Piece& piece);
  bool all_ended() const { return !ended_.empty() && ended_count_ == ended_.size(); }
  std::vector<StreamId> ids() const;

 private:
  std::map<StreamId, bool> ended_;
  size_t ended_count_ = 0;
};

// Whether the piece shows that its job lives: peers of a socket may be gone for a while when it ends.
bool shows_life(const StreamInfo& info, const Piece& piece);

// A running job, as its pieces reach it.
class RoutedJob {
 public:
  virtual ~RoutedJob() = default;
  // A piece of a file, a ring or a dump.
  virtual void ingest(const LiveStream& stream, const Piece& piece, TimeNs now) = 0;
  // A piece of a trace socket; `batch`: what its lines say.
  virtual void ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) = 0;
};

// The jobs of one host.
class JobTable {
 public:
  virtual ~JobTable() = default;
  virtual bool runs(const std::string& id) const = 0;
  // The one job that runs; empty where none does, or several.
  virtual std::string only_running() const = 0;
  // The running job, begun where it does not run yet; null where there is no room, or the job is over.
  virtual RoutedJob* open(const std::string& id, TimeNs now) = 0;
  // No job takes the piece: it is evidence only.
  virtual void refuse(LiveStream& stream, const Piece& piece) = 0;
};

// The kernel's last lines: what it said before a job's first line may have hit that job.
class KernelBacklog {
 public:
  void keep(StreamId stream, std::vector<KernelLine> lines);
  // Those that may concern a job which begins at `at`, oldest first.
  template <class Take>  // (StreamId, const KernelLine&)
  void replay(TimeNs at, const Take& take) const {
    for (const auto& [stream, line] : lines_)
      if (line.time_ns == kNoTime || line.time_ns >= at - kMargin) take(stream, line);
  }

 private:
  // A job's processes need that long to write their first line.
  static constexpr TimeNs kMargin = 60 * kNsPerSecond;
  struct Line {
    StreamId stream;
    KernelLine line;
  };
  std::deque<Line> lines_;
  size_t bytes_ = 0;
};

class JobRouter {
 public:
  // Called for each piece that a job takes, so that its files and processes can be looked for.
  using OnPiece = std::function<void(const std::string& job, const StreamInfo&, const Piece&)>;

  // `jobs` is borrowed. `uid`: this daemon's; what it sends itself may name hosts.
  JobRouter(JobTable& jobs, std::optional<uint32_t> uid, OnPiece on_piece)
      : jobs_(jobs), uid_(uid), on_piece_(std::move(on_piece)) {}

  // A piece of a stream that belongs to one job: all but the kernel's. `now`: when it was read. The job that
  // took it; null: none did.
  RoutedJob* route(LiveStream& stream, const Piece& piece, TimeNs now);
  uint64_t broken_trace_lines() const { return broken_trace_lines_; }

 private:
  bool read(LiveStream& stream, const Piece& piece, bool runs, TraceBatch& out);

  JobTable& jobs_;
  std::optional<uint32_t> uid_;
  OnPiece on_piece_;
  uint64_t broken_trace_lines_ = 0;
};

}  // namespace culprit::app
