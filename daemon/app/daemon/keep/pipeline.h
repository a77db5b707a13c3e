// Processes the batches of the sources, apart from storing them. The role selects one pipeline at the start:
// an EngineWorker analyses batches here, an Uplink condenses them for a collector.
//
// Thread: the loop's, also for callbacks. Daemon owns the pipeline.
#pragma once

#include <functional>
#include <memory>

#include "app/config/config.h"
#include "app/daemon/keep/recorder.h"
#include "core/rules/ruleset.h"

namespace culprit::app {

class Pipeline {
 public:
  virtual ~Pipeline() = default;
  // Call in the order of the store. `done`: the batch is processed, and its memory is free.
  virtual void append(SharedBatch batch, std::function<void()> done) = 0;
  // Whether append() precedes storing the batch.
  virtual bool precedes_store() const = 0;
  // The store has synced more to the disk.
  virtual void evidence_synced() {}
  // For batches from now on.
  virtual void reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) = 0;
  // Calls `done` when all batches are processed that must be before the end, or after a time limit.
  virtual void finish(std::function<void()> done) = 0;
};

}  // namespace culprit::app
