// The job's iterations, as its own progress lines number them, and what each writer did in each of them.
//
// A track is a number that counts up: all lines that name it alike ("step"), or one template of which one
// does. The job's track is the one that names a step or iteration and got furthest; where none is named, the
// one that counts most regularly (L4, section 4.4, takes the loop's own lines; which they are is not said
// there). Sequences of events between a writer's progress lines are compared by dynamic time warping with
// those of the ten iterations before (L4's window); see detect/temporal.h for what is made of it. Pure; one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "core/logs/drops.h"

namespace culprit::logs {

// An iteration of a writer that differs from its ten before by more than three sigma.
struct OddIteration {
  uint32_t writer = 0;
  int64_t iteration = 0;
  double distance = 0;  // mean DTW distance to the window, 0 (alike) .. 1
  double sigma = 0;     // standard deviations above the writer's mean
  TimeNs time_ns = kNoTime;
  std::vector<uint32_t> fresh;  // clusters in it that none of the window has
};

struct ProgressPoint {
  TimeNs time_ns = kNoTime;
  int64_t iteration = 0;
  uint32_t source = 0;
  uint32_t form = 0;  // of the line
  uint64_t line = 0;
};

// How sure it is that a number counts iterations: its words say so, a progress bar shows it, it only counts
// up.
enum class CounterKind : uint8_t { kCounts, kBar, kNamed };

// The progress that a writer's own lines state, within one source.
struct OwnStep {
  uint32_t track = 0xffffffff;
  int64_t iteration = -1;
};

class Iterations {
 public:
  Iterations();
  ~Iterations();

  // An event of `writer` that is no progress line.
  void event(uint32_t writer, uint32_t cluster);
  // A line that counts `point.iteration` in the track `key`. Whether it is further than the writer was
  // before.
  bool progress(uint32_t writer, uint32_t key, CounterKind kind, const ProgressPoint& point);
  // How often a line of a track that is named, a bar or the job's own got further than its writer was before:
  // it grows while the job makes progress.
  uint64_t moves() const;
  // Chooses the job's track among all that count. Call before what follows; repeatable.
  void choose();

  // The job's own track, by iteration, thinned to a bounded number of points; empty where nothing counts.
  const std::vector<ProgressPoint>& track() const;
  // The iteration under way at a place: by time where there is one, else by the progress lines of its source;
  // -1 before the first, or where nothing counts.
  int64_t iteration_at(TimeNs time, uint32_t source, uint64_t line) const;
  // What the writer's last progress line in this source says.
  OwnStep own_step(uint32_t writer, uint32_t source) const;
  // Its iteration, if the line was one of the job's own track; else -1.
  int64_t iteration_of(const OwnStep& step) const;
  // The job's last progress: when its furthest iteration was first told.
  ProgressPoint last() const;
  // The median time from one iteration to the next; 0 where unknown.
  TimeNs median_step_ns() const;
  // Iterations that the track spans; 0 where nothing counts.
  int64_t span() const;
  // The furthest iteration a writer has told of, -1 where it tells none.
  int64_t last_of(uint32_t writer) const;
  const std::vector<OddIteration>& odd() const;
  // What was lost to bounds.
  const Drops& drops() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
