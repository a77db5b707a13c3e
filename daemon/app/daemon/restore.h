// A start after which the jobs that ran go on: the evidence of before is given to new engines, part by part,
// while sources already read and the store already keeps what comes. The engine has that from the spool too,
// in the order in which it stands there; once it has come to where the store stands, the batches that are not
// committed yet are handed to it, and from then on all batches at once. So memory holds what one commit
// covers, however long the restore takes, and the order is the store's throughout.
//
// An engine that is slower than what comes would never get there: after some rounds the sources are held for
// the rest.
//
// Thread: the loop's. Borrows recorder and engine; goes when it is done.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "app/daemon/diagnoser.h"
#include "app/daemon/recorder.h"
#include "store/evidence.h"

namespace culprit::app {

struct RestoreOptions {
  Recorder* recorder = nullptr;
  Diagnoser* diagnoser = nullptr;
  std::vector<RunEnd> ends;  // of runs that are over
  std::function<void()> hold;
  // The engine takes batches itself from now on, these first.
  std::function<void(std::vector<SharedBatch>&& rest, const Result<store::ReadDamage>& damage)> done;
};

class Restore {
 public:
  explicit Restore(RestoreOptions options);
  void begin();
  // Of Recorder: given to it, taken by it, committed by it.
  void given(SharedBatch batch) { uncommitted_.push_back(std::move(batch)); }
  void appended() { ++appended_; }
  void committed(uint64_t sequence);
  // No further part.
  void stop() { stopped_ = true; }

 private:
  struct Part;
  void next();
  void read(const Part& part);

  RestoreOptions options_;
  std::shared_ptr<store::Replay> replay_;  // the engine's worker's
  std::deque<SharedBatch> uncommitted_;
  size_t appended_ = 0;     // of them, from the front
  uint64_t committed_ = 0;  // the last frame in which everything before them stands
  uint64_t until_ = 0;      // where this round ends
  int rounds_ = 0;
  bool stopped_ = false;
};

}  // namespace culprit::app
