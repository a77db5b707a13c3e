// Keeps this collector's leases of partitions: a round with the database each five seconds, on a worker.
//
// Thread: the loop's. A database that does not answer delays the worker alone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/daemon/recover/partition_gate.h"
#include "io/env.h"

namespace culprit::app {

struct LeaseServiceOptions {
  const Config* config = nullptr;
  std::function<void(LogLevel, const std::string&)> log;
};

class LeaseService {
 public:
  // Asks at once: the controller's first view is of the jobs that this member has. Null
  // without [cluster]. An error if the process has no thread left.
  static Result<std::unique_ptr<LeaseService>> start(io::Env& env, LeaseServiceOptions options);
  ~LeaseService();

  void beat();  // each second
  // Gives back what is held. A database that answers gets it before the end of this object.
  void stop();

  const std::shared_ptr<PartitionGate>& gate() const { return gate_; }
  uint64_t memory_mark() const { return mark_; }
  bool is_above_mark() const { return above_; }

 private:
  LeaseService(io::Env& env, LeaseServiceOptions options);
  void finish_round();

  io::Env& env_;
  const LeaseServiceOptions options_;
  const uint64_t mark_;
  const std::shared_ptr<PartitionGate> gate_;
  std::unique_ptr<io::Worker> worker_;
  bool above_ = false, stopped_ = false, answers_ = false;
  std::string error_;  // reported
};

}  // namespace culprit::app
