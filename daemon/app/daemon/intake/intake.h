// The path of the bytes: batches of the sources go to the store and to the pipeline, in the same order. While
// the queue of either is full, sources are paused.
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
  std::function<Restore*()> restore;                     // returns null if the pipeline gets batches directly
  std::function<void()> pause, resume;                   // sources
  std::function<void(const SharedBatch&)> observe = {};  // called with every batch too; may be empty
  std::function<void(StreamInfo&)> name_job = {};        // sets the job id of a new source; may be empty
};

class Intake {
 public:
  explicit Intake(IntakeParts parts) : parts_(std::move(parts)) {}

  void take(PieceBatch&& batch);
  // Pauses the sources of a slow restore until restored(), which gets the batches that the pipeline lacks.
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
