// The pool of spare nodes at Slurm: a reservation of idle nodes, REPLACE_DOWN, so that Slurm itself replaces
// a spare that is drained. Nodes of it are handed to the partition when a job that runs again lacks nodes,
// and the pool is filled again from idle nodes. The configuration has the number of spares, Slurm has the
// rest: after a crash nothing is to be remembered.
//
// Needs an operator of Slurm. Any thread; want() and nodes() never wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "respond/slurm/commands.h"

namespace culprit::respond::slurm {

class SparePool {
 public:
  static constexpr const char* kName = "culprit-spare";
  static constexpr TimeNs kFillEvery = 30 * kNsPerSecond;
  // A node that was handed over is idle until Slurm's next pass; fill() must not take it back.
  static constexpr TimeNs kAfterHandOver = 60 * kNsPerSecond;

  // `partition` empty: Slurm's default. `now`: monotonic.
  SparePool(std::string partition, TimeNs now) : partition_(std::move(partition)), handed_over_ns_(now) {}

  // Nodes that the pool is to have; 0: it is left alone.
  void want(uint32_t nodes) { wanted_ = nodes; }
  // Hands over at most `nodes`; returns how many: 0 too if Slurm does not answer, or the pool is being
  // changed. An error: of the change; with kNoAnswer it may have been done.
  SlurmResult<uint32_t> hand_over(const Commands& commands, uint32_t nodes, TimeNs now);
  // Creates or resizes the pool, at most each kFillEvery. Without idle nodes it stays so, and while a job
  // that began before waits for nodes (`job_waits`) it does not grow. Returns what a person should know;
  // nothing: no change, and no new trouble.
  std::optional<std::string> fill(const Commands& commands, TimeNs now, bool job_waits = false);
  // Nodes when Slurm was last asked; nothing: unknown, or there is to be no pool.
  std::optional<uint32_t> nodes() const;
  struct Spares {
    std::vector<std::string> hosts;
    std::string partition;
  };
  // As Slurm shows them now.
  SlurmResult<Spares> read(const Commands& commands) const;
  // Hosts when they were last read by fill(); none: unknown too.
  std::vector<std::string> hosts() const;

 private:
  SlurmResult<uint32_t> resize(const Commands& commands, uint32_t from, uint32_t to) const;
  SlurmResult<uint32_t> grow(const Commands& commands, uint32_t from, uint32_t to) const;
  SlurmResult<uint32_t> count(const Commands& commands) const;
  void read_hosts(const Commands& commands);

  const std::string partition_;
  std::atomic<uint32_t> wanted_ = 0;
  std::atomic<int64_t> nodes_ = -1;  // -1: unknown
  std::timed_mutex mutex_;           // of what follows, and of the commands: one change at a time
  TimeNs handed_over_ns_, filled_ns_ = kNoTime;
  std::string trouble_;  // reported
  mutable std::mutex hosts_mutex_;
  std::vector<std::string> hosts_;
};

}  // namespace culprit::respond::slurm
