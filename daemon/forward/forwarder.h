// Sends an agent's logs to its collector: connects, says hello, goes on behind what the collector has
// committed, keeps a window of bytes that are not acknowledged, and starts again when the connection is lost.
//
// What is sent is forgotten at once: until it is acknowledged it stands in the log, and after a reconnect it
// is read again. So memory is one read for each log and what the socket has not taken. The condensed log goes
// first; evidence fills at most three quarters of the window and little of the socket's queue, so that no
// backlog of it delays a condensed frame by more than that.
//
// Thread: the loop's. Owned by app; a Forwarder may be destroyed at any time
// but from within a call of its FrameSource. It never decides what is true about a job.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "forward/backoff.h"
#include "forward/evidence_policy.h"
#include "forward/frame_source.h"
#include "io/env.h"
#include "io/tls.h"
#include "model/peer.h"

namespace culprit::forward {

struct ForwarderOptions {
  std::string to;                                 // "HOST:PORT"
  std::shared_ptr<const io::TlsCredentials> tls;  // null: plain, to loopback only
  std::string host, boot_id, program;
  uint64_t seed = 0;  // of the jitter: another one in each process
  EvidenceOptions evidence;
  // Sent and not acknowledged, at most; the collector's credit may be less. Covers 100 MB/s at a commit of
  // 40 ms, and is what a collector holds of one host at most.
  uint64_t window_bytes = 4 << 20;
  TimeNs connect_ns = 10 * kNsPerSecond;    // each attempt, over all addresses of the name
  TimeNs handshake_ns = 20 * kNsPerSecond;  // TLS and Hello up to Welcome
  TimeNs ping_ns = 10 * kNsPerSecond;       // heartbeat and Status
  TimeNs silence_ns = 25 * kNsPerSecond;    // without any byte of the peer: it is gone
  TimeNs settled_ns = 60 * kNsPerSecond;    // a session that held so long begins the backoff anew
};

enum class Phase : uint8_t { kWaiting, kConnecting, kHandshake, kOpen, kStopped };
const char* name_of(Phase phase);

struct LogProgress {
  uint64_t epoch = 0;
  uint64_t sent = 0, acked = 0;                        // sequences of this session
  uint64_t frames = 0, bytes = 0, skipped_frames = 0;  // of this process
  uint64_t unacked_bytes = 0, unacked_frames = 0;      // on their way
  TimeNs oldest_unacked_ns = kNoTime;                  // when the oldest of those was packed
  std::string trouble;                                 // why nothing of it is sent; empty: it is
};

// For metrics and `culprit status`.
struct ForwarderStats {
  Phase phase = Phase::kWaiting;
  std::string collector;                // its program's version, while open
  TimeNs connected_since_ns = kNoTime;  // wall clock, while open
  TimeNs next_attempt_ns = kNoTime;     // wall clock, while waiting
  uint64_t attempts = 0, sessions = 0;  // connections tried, and welcomed
  uint64_t credit = 0;
  TimeNs round_trip_ns = 0;           // of the last ping
  TimeNs stalled_since_ns = kNoTime;  // wall clock: frames are out and no acknowledgement comes
  std::string last_error;             // of the last connection that was lost or refused
  TimeNs last_error_ns = kNoTime;
  std::array<LogProgress, peer::kLogs.size()> logs;  // by number
  std::string sentence() const;  // "connected, but nothing was acknowledged since …": for people
};

class Session;

class Forwarder {
 public:
  // `status` fills what Status says of the host; the forwarder fills in its logs' progress.
  Forwarder(io::Env& env, ForwarderOptions options, FrameSource& source,
            std::function<peer::Status()> status);
  ~Forwarder();

  void start();
  // There is more in the log than there was.
  void appended(peer::Log log);
  // A spool was begun anew: the collector is told by a new connection.
  void reopened();
  // Something is wrong at this time: evidence around it goes at once.
  void finding(TimeNs at_ns);
  // For connections that are made from now on.
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  void set_evidence(EvidenceOptions evidence);
  // Says Bye and connects no more.
  void stop();

  ForwarderStats stats() const;

 private:
  friend class Session;
  void connect();
  void connected(Result<std::unique_ptr<io::Stream>> stream);
  // By the session, of itself: it is dead from now on.
  void lost(const std::string& why, bool hopeless, TimeNs open_since_ns);
  void wait_after(const std::string& why);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  ForwarderOptions options_;
  FrameSource& source_;
  const std::function<peer::Status()> status_;
  Backoff backoff_;
  EvidencePolicy policy_;
  ForwarderStats stats_;
  std::unique_ptr<io::Timer> attempt_;
  std::unique_ptr<io::Connecting> connecting_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> ended_;  // until nothing of it can be on the stack
};

}  // namespace culprit::forward
