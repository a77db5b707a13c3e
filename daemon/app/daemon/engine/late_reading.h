// Reads jobs from the store that had no engine when their data arrived, once engines are free for them
// (LiveJobs::begin_reading). Reads in parts, so that new data and other jobs' reports do not wait.
//
// Thread: the loop's. Borrows the recorder and the engine, which outlive it.
#pragma once

#include <cstdint>
#include <memory>

#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "store/evidence.h"

namespace culprit::app {

class LateReading {
 public:
  LateReading(Recorder& recorder, EngineWorker& engine);
  // All earlier batches are in frames of the store up to this one.
  void committed(uint64_t sequence) { committed_ = sequence; }
  // Called about once a second: begins or continues reading if a job waits.
  void beat();
  // Starts no further part.
  void stop() { stopped_ = true; }

 private:
  struct Part;
  void begin();
  void next();
  void part_read(const Part& part);

  Recorder& recorder_;
  EngineWorker& engine_;
  std::shared_ptr<store::Replay> replay_;  // used by the engine's worker; null: nothing is being read
  uint64_t committed_ = 0;
  uint64_t read_ = 0;   // frames up to this one
  uint64_t until_ = 0;  // end of this round
  int rounds_ = 0;
  bool busy_ = false, stopped_ = false;
};

}  // namespace culprit::app
