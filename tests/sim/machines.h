// Machines of a simulated cluster: agents that store and forward endless sources, and the collector. Each has
// a disk that outlives it, and is started, killed and restarted. The content of a source is a function of its
// names and the offset, so any stored bytes can be verified.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "archive_sink.h"
#include "collect/collector.h"
#include "forward/forwarder.h"
#include "sim/sim_env.h"
#include "sim/sim_files.h"
#include "spool_source.h"
#include "store/archive.h"
#include "store/spool.h"

namespace culprit::sim {

constexpr const char* kCollectorAddress = "collector:7421";

// Bytes [from, from + size) of a source.
std::string text_of(const std::string& host, peer::Log log, StreamId id, uint64_t from, size_t size);

// Reports of all machines to the run; `fault` is a broken invariant.
struct Witness {
  std::function<void(const std::string&)> fault;
  std::map<uint64_t, uint64_t> durable;       // by epoch: committed by the collector
  std::map<uint64_t, uint64_t> acknowledged;  // by epoch: as an agent received it
};

struct AgentPlan {
  std::string host;
  uint64_t seed = 0;
  uint64_t spool_bytes = 1 << 20, segment_bytes = 16 << 10;
  TimeNs tick_ns = kNsPerSecond;
  size_t tick_bytes = 2000;  // of each source, at most
  int sync_every = 3;        // ticks
  size_t streams = 2;
  TimeNs work_ns = 0;
  // Called at each tick, in place of endless sources of random sizes; an error: the spool takes nothing.
  std::function<Status(peer::Log, store::Spool&, TimeNs now)> write = nullptr;
  uint64_t frame_bytes = 1 << 20;  // upper limit: data that was taken while the spool was full is one frame
  forward::EvidenceOptions evidence;
  uint64_t window_bytes = 256 << 10;
};

class Daemon {
 public:
  Daemon(World& world, AgentPlan plan, Witness& witness);

  bool start();
  void kill(SimEnv::Death death);  // ends the machine at once
  // Called from within its own calls: disables its objects; kill() follows.
  void mark_dead(SimEnv::Death death) { env_->kill(death); }
  bool is_up() const { return env_ != nullptr && env_->is_alive(); }
  void wipe();  // deletes the spools of a stopped machine
  void finding(TimeNs at_ns);

  SimFiles disk;
  const AgentPlan plan;
  bool writes = true;
  uint64_t refused_appends = 0, lives = 0;
  std::string why_not_started;

  bool is_done() const;  // all frames of the spools are acknowledged
  std::string state() const;
  std::vector<store::StoredStream> streams(peer::Log log) const;
  uint64_t epoch(peer::Log log) const { return spools_[static_cast<size_t>(log)]->epoch(); }
  std::optional<uint64_t> epoch_or_none(peer::Log log) const;
  const store::Spool& spool(peer::Log log) const { return *spools_[static_cast<size_t>(log)]; }
  forward::ForwarderStats stats() const { return forwarder_->stats(); }
  void check_bounds() const;

 private:
  void tick();
  Status write_some(peer::Log log, Random& random);

  World& world_;
  Witness& witness_;
  Random random_;
  int ticks_ = 0;
  // In order of their dependencies.
  std::unique_ptr<SimEnv> env_;
  std::array<std::unique_ptr<store::Spool>, peer::kLogs.size()> spools_;
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<SpoolSource> source_;
  std::unique_ptr<io::Timer> timer_;
  std::unique_ptr<forward::Forwarder> forwarder_;
};

struct CollectorPlan {
  std::string folder;  // a real folder: of archive.db
  uint64_t seed = 0;
  uint64_t segment_bytes = 32 << 10;
  TimeNs work_ns = 0;
  uint64_t credit_bytes = 256 << 10, held_bytes = 1 << 20;
};

class CollectorMachine {
 public:
  CollectorMachine(World& world, CollectorPlan plan, Witness& witness);
  bool start();
  void kill(SimEnv::Death death);
  void mark_dead(SimEnv::Death death) { env_->kill(death); }
  bool is_up() const { return env_ != nullptr && env_->is_alive(); }
  void lose_index();  // of a stopped machine

  SimFiles disk;
  const CollectorPlan plan;
  std::string why_not_started;
  bool made_room = false;  // segments were deleted, in any of its lives
  store::Archive& archive() { return *archive_; }
  collect::Collector& collector() { return *collector_; }
  const ArchiveSink& sink() const { return *sink_; }
  void check_bounds();

 private:
  World& world_;
  Witness& witness_;
  std::unique_ptr<SimEnv> env_;
  std::shared_ptr<store::Archive> archive_;
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<ArchiveSink> sink_;
  std::unique_ptr<collect::Collector> collector_;
};

}  // namespace culprit::sim
