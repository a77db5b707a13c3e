// What the daemon does with the batches of its sources after storing them. The role decides once which one it
// is: an EngineWorker analyses them here, an Uplink condenses them for a collector.
//
// Thread: the loop's.
#pragma once

#include <functional>
#include <memory>

#include "app/config/config.h"
#include "app/daemon/recorder.h"
#include "core/rules/ruleset.h"

namespace culprit::app {

class Pipeline {
 public:
  virtual ~Pipeline() = default;
  // Batches in the order of the store. `done`: this one is processed, and its memory is free.
  virtual void append(SharedBatch batch, std::function<void()> done) = 0;
  // Whether a batch is appended here before the store has it.
  virtual bool precedes_store() const = 0;
  // The store has synced more to the disk.
  virtual void evidence_synced() {}
  // For batches from now on.
  virtual void reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) = 0;
  // `done` once all batches that must be processed before the end are; at the latest when time is up.
  virtual void finish(std::function<void()> done) = 0;
};

}  // namespace culprit::app
