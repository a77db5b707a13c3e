// Routes pieces of this host to their jobs. LiveJobs (engines of this process) and JobForwarder (jobs of a
// collector) share it: each is a JobTable of RoutedJobs, and owns its router.
//
// Thread: that of the table. Streams, pieces and batches are borrowed for the call. Time is an argument.
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
#include "app/jobs/job_owner.h"
#include "base/time.h"
#include "model/piece.h"

namespace culprit::app {

// A silent job with unknown processes may hang; it is dropped after this time anyway.
constexpr TimeNs kForgotten = 6 * 3600 * kNsPerSecond;
constexpr TimeNs kAskEvery = kNsPerSecond;  // interval of checks of a silent job's processes

// The streams of one running job, and which of them ended.
class JobStreams {
 public:
  // Counts a piece. The end of a dump or a socket does not count: dumps outlive their job, and a socket's
  // peers reconnect.
  void note(const StreamInfo& info, const Piece& piece);
  bool all_ended() const { return !ended_.empty() && ended_count_ == ended_.size(); }
  std::vector<StreamId> ids() const;
  bool has(StreamId stream) const { return ended_.contains(stream); }

 private:
  std::map<StreamId, bool> ended_;
  size_t ended_count_ = 0;
};

// Whether the piece is a sign of life. The end of a socket alone is none: its peers may have exited long
// before.
bool shows_life(const StreamInfo& info, const Piece& piece);

// A running job, as its pieces reach it.
class RoutedJob {
 public:
  virtual ~RoutedJob() = default;
  // A piece of a file, a ring or a dump.
  virtual void ingest(const LiveStream& stream, const Piece& piece, TimeNs now) = 0;
  // A piece of a trace socket; `batch`: the parsed lines.
  virtual void ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) = 0;
  // A piece by a user who does not own the job. The piece remains evidence: the job only reports it.
  virtual void keep_out(Principal user, const LiveStream& stream, const Piece& piece) = 0;
  virtual const JobInputs& inputs() const = 0;

  JobOwner owner;
};

// The jobs of one host.
class JobTable {
 public:
  virtual ~JobTable() = default;
  // The running job; null: the job is not running.
  virtual RoutedJob* running(const std::string& id) = 0;
  // The id of the only running job; empty if no job or several run.
  virtual std::string only_running() const = 0;
  // Returns the running job for data of a stream; starts the job if necessary. Null: the job gets no engine,
  // or has ended.
  virtual RoutedJob* open(const std::string& id, const StreamInfo& from, TimeNs now) = 0;
  // No job gets the piece; it stays evidence. Called once per refused piece.
  virtual void refuse(LiveStream& stream, const Piece& piece) = 0;
};

// The most recent lines about the host. A line before a job's first line may report a fault that hit the job.
// A raised state remains until a line clears it or its plugin drops it.
class HostBacklog {
 public:
  void keep(StreamId stream, std::vector<HostLine> lines);
  // Calls `take` for lines that may concern a job that starts at `at`: raised states, then lines, each oldest
  // first.
  template <class Take>  // (StreamId, const HostLine&)
  void replay(TimeNs at, const Take& take) const {
    const auto is_recent = [at](const HostLine& line) {
      return line.time_ns == kNoTime || line.time_ns >= at - kMargin;
    };
    for (const Line& retained : active_)
      if (!is_recent(retained.line)) take(retained.stream, retained.line);
    for (const Line& retained : lines_)
      if (is_recent(retained.line)) take(retained.stream, retained.line);
  }

 private:
  // Longest time from a process's start to its first line.
  static constexpr TimeNs kMargin = 60 * kNsPerSecond;
  struct Line {
    StreamId stream;
    HostLine line;
  };
  std::deque<Line> lines_, active_;
  size_t bytes_ = 0;
};

class JobRouter {
 public:
  // Called for each piece that a job gets; the caller watches the job's files and processes.
  using OnPiece = std::function<void(const std::string& job, const StreamInfo&, const Piece&)>;
  // The users with processes in the job's control group.
  using UsersOf = std::function<ShownUsers(const std::string& job)>;

  // `jobs` is borrowed. `uid`: this daemon's; only lines from this uid may name hosts. The functions may be
  // empty.
  JobRouter(JobTable& jobs, std::optional<uint32_t> uid, OnPiece on_piece, UsersOf users_of)
      : jobs_(jobs), uid_(uid), on_piece_(std::move(on_piece)), users_of_(std::move(users_of)) {}

  // Routes a piece of any stream except the kernel's. `now`: when the piece was read. Returns the job that
  // got it, or null.
  RoutedJob* route(LiveStream& stream, const Piece& piece, TimeNs now);
  uint64_t broken_trace_lines() const { return broken_trace_lines_; }
  // Lines and records that users sent for other users' jobs.
  uint64_t refused() const { return refused_; }

 private:
  bool keeps_out(RoutedJob* job, LiveStream& stream, const Piece& piece);
  bool read(LiveStream& stream, const Piece& piece, bool runs, TraceBatch& out);

  JobTable& jobs_;
  std::optional<uint32_t> uid_;
  OnPiece on_piece_;
  UsersOf users_of_;
  uint64_t broken_trace_lines_ = 0, refused_ = 0;
};

}  // namespace culprit::app
