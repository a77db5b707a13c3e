// Sends an agent's logs to its collector: connects, sends Hello, continues after the frames that the
// collector has committed, keeps a window of unacknowledged bytes, and reconnects after a loss.
//
// Sent frames are not kept in memory: the log retains them until they are acknowledged, and a reconnect
// reads them again. So memory is one read per log plus the unsent bytes of the socket. The condensed log
// has priority. Evidence fills at most three quarters of the window and little of the socket's queue, which
// bounds the delay of a condensed frame.
//
// Thread: the loop's. Owned by app; may be destroyed at any time, except from within a call of its
// FrameSource. It never diagnoses a job.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "forward/backoff.h"
#include "forward/evidence_policy.h"
#include "forward/frame_source.h"
#include "forward/route.h"
#include "io/env.h"
#include "io/tls.h"
#include "model/peer.h"

namespace culprit::forward {

struct ForwarderOptions {
  std::vector<std::string> to;                    // "HOST:PORT", at least one: the next if one fails
  std::shared_ptr<const io::TlsCredentials> tls;  // null: plain, to loopback only
  std::string host, boot_id, program;
  uint64_t seed = 0;  // of the jitter; different in each process
  EvidenceOptions evidence;
  // Limit of unacknowledged bytes; the collector's credit may be smaller. It suffices for 100 MB/s at a
  // commit of 40 ms, and is the most that a collector holds per host.
  uint64_t window_bytes = 4 << 20;
  TimeNs connect_ns = 10 * kNsPerSecond;    // per attempt, over all addresses of the name
  TimeNs handshake_ns = 20 * kNsPerSecond;  // TLS and Hello until Welcome
  TimeNs ping_ns = 10 * kNsPerSecond;       // heartbeat and Status
  // Time without any byte from the peer after which the connection counts as lost.
  TimeNs silence_ns = 25 * kNsPerSecond;
  TimeNs settled_ns = 60 * kNsPerSecond;  // a session of this duration resets the backoff
};

enum class Phase : uint8_t { kWaiting, kConnecting, kHandshake, kOpen, kStopped };
const char* name_of(Phase phase);

struct LogProgress {
  uint64_t epoch = 0;
  uint64_t sent = 0, acked = 0;                        // sequences of this session
  uint64_t frames = 0, bytes = 0, skipped_frames = 0;  // of this process
  uint64_t unacked_bytes = 0, unacked_frames = 0;      // in flight
  TimeNs oldest_unacked_ns = kNoTime;                  // pack time of the oldest of those
  std::string trouble;                                 // why the log is not sent; empty: it is
};

// For metrics and `culprit status`.
struct ForwarderStats {
  Phase phase = Phase::kWaiting;
  std::string to;                       // the current or next collector
  std::string collector;                // program version, while open
  TimeNs connected_since_ns = kNoTime;  // wall clock, while open
  TimeNs next_attempt_ns = kNoTime;     // wall clock, while waiting
  uint64_t attempts = 0, sessions = 0;  // connections attempted, and welcomed
  uint64_t moves = 0;                   // to the owner of the jobs
  uint64_t credit = 0;
  TimeNs round_trip_ns = 0;           // of the last ping
  TimeNs stalled_since_ns = kNoTime;  // wall clock: since when frames in flight lack an acknowledgement
  std::string last_error;             // of the last lost or refused connection
  std::array<LogProgress, peer::kLogs.size()> logs;  // by number
  std::string sentence() const;  // "connected, but nothing was acknowledged since …": for people
};

class Session;

class Forwarder {
 public:
  // `status` fills in the host's part of Status; the forwarder adds the progress of the logs.
  Forwarder(io::Env& env, ForwarderOptions options, FrameSource& source,
            std::function<peer::Status()> status);
  ~Forwarder();

  void start();
  // The log has new frames.
  void appended(peer::Log log);
  // Call after a spool was recreated: reconnects, to report the new epoch to the collector.
  void reopened();
  // Call for a finding at this time: evidence around it is sent at once.
  void finding(TimeNs at_ns);
  // A CheckResult or AlignResult. Dropped without a connection: the collector then has no answer.
  void send(const peer::Message& result);
  // Credentials for new connections. An open connection ends within seconds if the new credentials do not
  // accept the collector's certificate.
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  void set_evidence(EvidenceOptions evidence);
  // Sends Bye and does not reconnect.
  void stop();

  ForwarderStats stats() const;

 private:
  friend class Session;
  void connect();
  void connected(Result<std::unique_ptr<io::Stream>> stream);
  // Called by the session when its connection is lost; the session is unusable afterwards.
  void lost(const std::string& why, bool hopeless, TimeNs open_since_ns);
  // Called by the session when all that it sent is acknowledged, in place of lost().
  void moved(const std::string& to);
  void failed(const std::string& why);
  void closed();
  void wait_after(const std::string& why);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  ForwarderOptions options_;
  FrameSource& source_;
  const std::function<peer::Status()> status_;
  Backoff backoff_;
  Route route_;
  EvidencePolicy policy_;
  ForwarderStats stats_;
  struct Acked {
    uint64_t epoch = 0, sequence = 0;
    std::string by;  // address of the collector
  };
  std::array<Acked, peer::kLogs.size()> acked_;  // the newest acknowledgement of each log
  std::unique_ptr<io::Timer> attempt_;
  std::unique_ptr<io::Connecting> connecting_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> ended_;  // kept until no call of it can be on the stack
  ThreadOwner owner_;
};

}  // namespace culprit::forward
