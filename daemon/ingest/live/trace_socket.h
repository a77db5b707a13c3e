// The trace socket: a unix stream socket to which any process of the host may write lines of JSON (formats.md
// sections 3 and 4). All lines become evidence unchanged, including lines that cannot be parsed.
//
// A stream has one job's lines by one user. The kernel reports the user's uid, which decides whether a `host`
// in a line counts. Lines of a stream are in the order of reading; a piece has whole lines. Lines that are
// not stored are a gap: too long, cut off by a client that disconnected, or beyond a limit.
//
// A stream ends when none of its writers was connected for kTraceLingers. So a program that connects for each
// line is one source, and ended sources free their memory. A later writer begins another stream.
//
// No user can block another: connections, bytes per second, unfinished lines and job names are limited for
// each uid. The kernel blocks a user who writes faster; no line of that user is lost.
//
// Thread: the loop's. The caller owns it; the destructor delivers the collected lines.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ingest/live/trace_lines.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::ingest {

struct TraceSocketOptions {
  std::string path;                // of the socket; also the path of its evidence
  std::string job;                 // job of lines and processes without a job; empty: every job
  std::vector<StreamState> known;  // streams of this path in the store; their evidence continues
  std::function<StreamId()> allocate;
  // Answers with the job of a process, or "" if none: at once or later, on the loop, even after the socket is
  // destroyed. Called once for each connection, before its first read. May be empty.
  std::function<void(const io::PeerCredentials&, std::function<void(std::string)> answer)> job_of;
  std::function<void(PieceBatch&&)> take;
  // Called with each event and the stream that gets its line, before the stream is given to `take`. May be
  // empty.
  std::function<void(const TraceLine&, const StreamInfo&)> on_event = {};
  // Receives a sentence about a client with a broken line: once per client, with a limited rate. May be
  // empty.
  std::function<void(const std::string&)> report_error = {};
};

constexpr TimeNs kTraceLingers = 60 * kNsPerSecond;

struct TraceStats {
  uint64_t clients = 0;                           // current
  uint64_t accepted = 0, refused = 0;             // connections; refused: closed at once, beyond a limit
  uint64_t bytes = 0;                             // received
  std::array<uint64_t, kTraceKinds> lines = {};   // parsed lines, by TraceKind
  uint64_t broken = 0;                            // lines that cannot be parsed, kept as evidence
  uint64_t dropped_lines = 0, dropped_bytes = 0;  // in gaps
  uint64_t held_up = 0;                           // times that a user exceeded its rate and had to wait
  uint64_t descriptors_missing = 0;  // connections that waited because the process had no descriptor
};

class TraceSocket {
 public:
  static Result<std::unique_ptr<TraceSocket>> open(io::Env& env, TraceSocketOptions options);
  virtual ~TraceSocket() = default;

  // Stops reading while the receiver has no credit: the kernel blocks the writers.
  virtual void pause_all() = 0;
  virtual void resume_all() = 0;
  virtual TraceStats stats() const = 0;
};

}  // namespace culprit::ingest
