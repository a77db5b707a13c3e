// The receiving end: accepts connections of agents, verifies their identity, and passes their frames to a
// FrameSink in order. It acknowledges only what committed() reports. A peer that breaks the protocol is
// refused with a sentence and counted; the others continue.
//
// Connections before their Hello are bounded in sum and per address, and have three seconds for it; see
// collect/newcomers.h.
//
// A host has one connection. A newer one replaces it if it is of the same boot (the agent restarted, and its
// old connection may be half-open) or if the older one is silent; else the newer one is refused.
//
// Memory: per connection the incomplete message and the frames that the sink has not appended, bounded by
// credit. Over all connections held_bytes; beyond it none is read until the sink catches up.
//
// Thread: the loop's. Owned by app; may be destroyed at any time except from within a call of its FrameSink.
// It never parses frames.
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
  std::string listen;                             // "HOST:PORT"
  std::shared_ptr<const io::TlsCredentials> tls;  // null: plain, on loopback only; names are not verified
  std::string program;
  size_t connections = 16'384;  // a job of 8,192 hosts, all reconnecting
  // Before their Hello: many may reconnect at once. Half of them for addresses that had a session within a
  // day.
  size_t unknown_connections = 4'096;
  size_t unknown_per_address = 256;        // many hosts may be behind it
  uint64_t held_bytes = 256 << 20;         // received and not appended, over all connections
  uint64_t credit_bytes = 4 << 20;         // per host at most; less if many share held_bytes
  TimeNs handshake_ns = 3 * kNsPerSecond;  // TLS and Hello
  // Addresses ("10.0.0.7:40312") of sessions before this process, with the time of the last contact.
  std::vector<std::pair<std::string, TimeNs>> known = {};
  // Hosts before this process: their names keep their spelling.
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

// Of ASCII letters: names of hosts are compared in it.
std::string lower_case(std::string name);

class Session;

class Collector {
 public:
  static Result<std::unique_ptr<Collector>> start(io::Env& env, CollectorOptions options, FrameSink& sink);
  ~Collector();

  // All frames of the epoch up to `sequence` are committed.
  void committed(uint64_t epoch, uint64_t sequence);
  // Requests the evidence of a time span from a host. False: it is not connected, or does not read.
  bool want(const std::string& host, const peer::Message& wanted);
  // For new connections. Open ones end within seconds if their certificate does not hold by these.
  void set_tls(std::shared_ptr<const io::TlsCredentials> tls);
  // Sends Bye to all and accepts no more connections.
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
  // The name of a host, in the spelling that came first: names differ by more than upper and lower case.
  std::string canonical(const std::string& host);
  // An error: another connection of the host stays.
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
