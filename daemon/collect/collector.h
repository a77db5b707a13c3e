// The receiving end: accepts connections of agents, verifies their identity, and passes their frames to a
// FrameSink in order. It acknowledges only what committed() reports. A peer that violates the protocol is
// refused with a sentence and counted; other peers are not affected.
//
// Connections before their Hello are limited in total and per address, and must send it within three
// seconds; see collect/newcomers.h.
//
// A host has one connection. A newer one replaces it in two cases: both have the same boot id (the agent
// restarted, and its old connection may be half-open), or the older one is silent. Otherwise the newer one
// is refused.
//
// Memory per connection: the incomplete message, and frames that the sink has not appended, limited by
// credit. Memory over all connections: held_bytes; above this limit no connection is read until the sink
// catches up.
//
// Thread: the loop's. Owned by app; may be destroyed at any time, except from within a call of its
// FrameSink. It never parses frames.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/thread_owner.h"
#include "base/time.h"
#include "collect/frame_sink.h"
#include "collect/newcomers.h"
#include "io/env.h"
#include "io/tls.h"
#include "model/peer.h"

namespace culprit::collect {

struct CollectorOptions {
  // Gets each CheckResult and AlignResult of an agent.
  std::function<void(const std::string& host, const peer::Message& result)> checked = {};
  // Where others share the jobs: those of `jobs` that others own. Empty: each Status goes without an answer.
  std::function<std::vector<peer::JobOwner>(const std::vector<std::string>& jobs)> others_jobs = {};
  std::string listen;                             // "HOST:PORT"
  std::shared_ptr<const io::TlsCredentials> tls;  // null: no TLS, on loopback only; names are not verified
  std::string program;
  size_t connections = 16'384;  // a job of 8,192 hosts, all reconnecting
  // Limit of connections before their Hello: many agents may reconnect at once. Half are reserved for
  // addresses that had a session within a day.
  size_t unknown_connections = 4'096;
  size_t unknown_per_address = 256;        // many hosts may be behind it
  uint64_t held_bytes = 256 << 20;         // received but not appended, over all connections
  uint64_t credit_bytes = 4 << 20;         // limit per host; smaller if many hosts share held_bytes
  TimeNs handshake_ns = 3 * kNsPerSecond;  // TLS and Hello
  // Addresses ("10.0.0.7:40312") with sessions in earlier processes, and the time of their last contact.
  std::vector<std::pair<std::string, TimeNs>> known = {};
  // Hosts known from earlier processes: their names keep their spelling.
  std::vector<std::string> hosts = {};
  TimeNs ping_ns = 10 * kNsPerSecond;
  TimeNs silence_ns = 25 * kNsPerSecond;
};

// For metrics.
struct CollectorStats {
  uint64_t accepted = 0;
  size_t connections = 0, unknown = 0, hosts = 0;  // current; before their Hello; with a Welcome
  uint64_t frames = 0, bytes = 0, skipped_frames = 0, duplicates = 0;
  uint64_t held_bytes = 0;                             // received and not appended
  uint64_t holds = 0;                                  // how often reading stopped for the sink
  std::array<uint64_t, peer::kRefusals> refused = {};  // by reason
  uint64_t tls_failures = 0;
  uint64_t descriptors_missing = 0;
  std::string last_refusal;
};

struct HostConnection {
  std::string host, address, program, boot_id;
  peer::Version version;
  TimeNs since_ns = kNoTime, last_received_ns = kNoTime;  // wall clock
  TimeNs clock_ahead_ns = 0;                              // its wall clock minus ours, at its Hello
  uint64_t frames = 0, bytes = 0, duplicates = 0, held_bytes = 0;
};

// Lowers ASCII letters; host names are compared in this form.
std::string lower_case(std::string name);

class Session;

class Collector {
 public:
  static Result<std::unique_ptr<Collector>> start(io::Env& env, CollectorOptions options, FrameSink& sink);
  ~Collector();

  // Call when all frames of the epoch up to `sequence` are committed.
  void committed(uint64_t epoch, uint64_t sequence);
  // Call when all frames of the epoch up to `sequence` are in object storage: its agent frees its spool. Only
  // for logs with LogMark::archived.
  void archived(uint64_t epoch, uint64_t sequence);
  // Requests the evidence of a time span from a host. False: the host is not connected, or does not read.
  bool want(const std::string& host, const peer::Message& wanted);
  // Credentials for new connections. An open connection ends within seconds if they do not accept its
  // certificate.
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  // Sends Bye to all peers, and accepts no more connections.
  void stop();

  std::string address() const;  // with the actual port for port 0
  CollectorStats stats() const;
  std::vector<HostConnection> hosts() const;  // in order of name

 private:
  friend class Session;
  Collector(io::Env& env, CollectorOptions options, FrameSink& sink);
  void accept(std::unique_ptr<io::Stream> stream);
  bool make_room(const std::string& address);
  void sweep();
  void shed(const std::vector<std::shared_ptr<Session>>& all);
  uint64_t credit() const;
  // The host's name in the spelling that came first: names that differ only in case are the same host.
  std::string canonical(const std::string& host);
  // An error: the host's other connection has precedence.
  Status admit(Session& session);
  void leave(Session& session);
  void deliver(Session& session, FrameSink::Batch batch);
  void hold_or_go_on();
  void count_refusal(peer::Refusal code, const std::string& sentence);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  CollectorOptions options_;
  FrameSink& sink_;
  CollectorStats stats_;
  std::array<TimeNs, peer::kRefusals> reported_ns_;
  bool held_ = false;    // no connection is read
  TimeNs swept_ns_ = 0;  // monotonic
  Newcomers newcomers_;
  std::shared_ptr<Collector*> alive_;
  std::unique_ptr<io::Listener> listener_;
  std::unique_ptr<io::Timer> sweep_;
  std::map<Session*, std::shared_ptr<Session>> sessions_;
  std::map<std::string, Session*> by_host_;
  std::map<std::string, std::string> spelled_;  // names by their lower case
  std::map<uint64_t, Session*> by_epoch_;
  ThreadOwner owner_;
};

}  // namespace culprit::collect
