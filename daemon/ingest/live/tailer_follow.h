// Follows the sources through rotation, truncation and removal (tailer_follow.cc), and reads their bytes in
// order (tailer_take.cc). Its state is in the sources; borrows the context and the late files. The tailer's
// thread.
#pragma once

#include <cstdint>

#include "ingest/live/tailer_context.h"
#include "ingest/live/tailer_late.h"
#include "ingest/live/tailer_rotated.h"

namespace culprit::ingest {

class SourceFollower {
 public:
  SourceFollower(TailContext& tail, LateFiles& late) : tail_(tail), late_(late) {}

  // Checks the file at the path, and schedules the next check.
  void look(TailSource& source);
  AtPath at_path(const TailSource& source);
  // Up to `share` bytes; returns the cost.
  uint64_t read(TailSource& source, uint64_t share);

 private:
  void look_same(TailSource& source, const Look& at);
  void look_other(TailSource& source);
  void look_absent(TailSource& source);
  bool last_name_is_there(const TailSource& source);
  void end(TailSource& source);
  bool is_at_path(const TailSource& source, const RotationPlan& plan);
  void resolve(TailSource& source, bool rewritten);
  void carry_out(TailSource& source, RotationPlan plan);
  void watch_at(TailSource& source, RotationPlan& plan);
  void leave(TailSource& source);  // leaves the oldest generation, which was read to its end

  bool read_piece(TailSource& source, uint64_t max, uint64_t& taken);
  void begin_again(TailSource& source, Generation& generation);
  int find_again(TailSource& source, Generation& generation);
  bool ensure_open(TailSource& source, Generation& generation);
  void failed(TailSource& source, int error);
  bool may_wait(TailSource& source);

  TailContext& tail_;
  LateFiles& late_;
};

}  // namespace culprit::ingest
