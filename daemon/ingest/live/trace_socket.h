// The trace socket: a unix stream socket that any process of the host may write lines of JSON to (formats.md
// sections 3 and 4). Its lines go on as evidence exactly as they came, also those that cannot be understood.
//
// A stream is one job's lines by one user: the uid of the kernel's word is what makes a `host` count or not.
// Within a stream lines stand in the order in which they were read; a piece holds whole lines. What was not
// taken (longer than a line may be, cut off by a client that went away, beyond a limit) is a gap.
//
// A stream ends when none of its writers was connected for kTraceLingers: a program that connects for each
// line is one source, and one that is gone takes no room for ever. Who comes later begins another stream.
//
// No user can keep another from being heard: connections, bytes a second, unfinished lines and job names are
// limited for each uid. Who writes more is held up by the kernel and not lost.
//
// Thread: the loop's. Owned by the one who opened it; the destructor hands on what it holds.
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
  std::string path;  // of the socket; also the name of its evidence
  std::string job;   // of lines that name none and whose process belongs to none; empty: of every job
  std::vector<StreamState> known;  // what the store has of this path; its evidence goes on
  std::function<StreamId()> allocate;
  // Answers with the job of a process, or "" where it belongs to none; at once or later, on the loop, also
  // where the socket is gone. Called once for each connection, which is not read before. May be empty.
  std::function<void(const io::PeerCredentials&, std::function<void(std::string)> answer)> job_of;
  std::function<void(PieceBatch&&)> take;
  // A sentence of a client whose line is not understood: once for each, and not in a storm. May be empty.
  std::function<void(const std::string&)> complain = {};
};

constexpr TimeNs kTraceLingers = 60 * kNsPerSecond;

struct TraceStats {
  uint64_t clients = 0;                           // now
  uint64_t accepted = 0, refused = 0;             // connections; refused: closed at once, beyond a limit
  uint64_t bytes = 0;                             // received
  std::array<uint64_t, kTraceKinds> lines = {};   // understood, by TraceKind
  uint64_t broken = 0;                            // not understood, kept as evidence
  uint64_t dropped_lines = 0, dropped_bytes = 0;  // in gaps
  uint64_t held_up = 0;                           // times that a user had to wait for its rate
  uint64_t descriptors_missing = 0;               // times that the process had none left for a connection
};

class TraceSocket {
 public:
  static Result<std::unique_ptr<TraceSocket>> open(io::Env& env, TraceSocketOptions options);
  virtual ~TraceSocket() = default;

  // Nothing is read while there is no credit behind: writers are held up.
  virtual void pause_all() = 0;
  virtual void resume_all() = 0;
  virtual TraceStats stats() const = 0;
};

}  // namespace culprit::ingest
