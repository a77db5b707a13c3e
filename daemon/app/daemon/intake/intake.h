// The way of the bytes: batches of the sources go to the store and to the pipeline, both in the same order.
// While either has too much before it, sources are paused.
//
// Thread: the loop's. Owner: Daemon. Borrows its parts, which outlive it.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "app/daemon/engine/restore.h"
#include "app/daemon/keep/pipeline.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/self/agent_counts.h"
#include "model/piece.h"

namespace culprit::app {

struct IntakeParts {
  AgentCounts* counts = nullptr;
  Recorder* recorder = nullptr;
  Pipeline* pipeline = nullptr;
  std::function<Restore*()> restore;                     // null: the pipeline gets batches directly
  std::function<void()> pause, resume;                   // sources
  std::function<void(const SharedBatch&)> observe = {};  // gets every batch too; may be empty
  std::function<void(StreamInfo&)> name_job = {};        // gives a new source the id of its job; may be empty
};

class Intake {
 public:
  explicit Intake(IntakeParts parts) : parts_(std::move(parts)) {}

  void take(PieceBatch&& batch);
  // A slow restore pauses the sources until restored(), which gets the batches that the pipeline misses.
  void hold_for_restore();
  void restored(std::vector<SharedBatch>&& rest);
  bool held() const { return held_; }

 private:
  void append(PieceBatch&& part);
  void process(SharedBatch batch);
  void pause();
  void resume();

  IntakeParts parts_;
  bool held_ = false, restore_holds_ = false;
};

}  // namespace culprit::app
