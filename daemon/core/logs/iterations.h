// The job's iterations, numbered by its own progress lines, and the events of each writer per iteration.
//
// A track is a number that counts up: all lines with the same name for it ("step"), or one template with a
// counting number. The job's track is the track that names a step or iteration and counts highest. Without
// names, it is the most regular counter. (L4, section 4.4, uses the loop's own lines, but does not say how to
// find them.) Dynamic time warping compares the events of an iteration with those of the ten iterations
// before (L4's window). The detector in core/detect/logs/temporal.cc uses the distances. Pure; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "core/logs/drops.h"

namespace culprit::logs {

// An iteration of a writer that differs from the ten previous iterations by more than three sigma.
struct OddIteration {
  uint32_t writer = 0;
  int64_t iteration = 0;
  double distance = 0;  // mean DTW distance to the window, 0 (alike) .. 1
  double sigma = 0;     // standard deviations above the writer's mean
  TimeNs time_ns = kNoTime;
  std::vector<uint32_t> fresh;  // clusters of this iteration that no iteration of the window has
};

struct ProgressPoint {
  TimeNs time_ns = kNoTime;
  int64_t iteration = 0;
  uint32_t source = 0;
  uint32_t form = 0;  // form of the line
  uint64_t line = 0;
};

// Evidence that a number counts iterations, ascending: the number only rises; a progress bar shows it; its
// words name it.
enum class CounterKind : uint8_t { kCounts, kBar, kNamed };

// The last progress line of a writer within one source.
struct OwnStep {
  uint32_t track = 0xffffffff;
  int64_t iteration = -1;
};

class Iterations {
 public:
  Iterations();
  ~Iterations();

  // An event of `writer` that is not a progress line.
  void event(uint32_t writer, uint32_t cluster);
  // A line that counts `point.iteration` in the track `key`. Returns whether this exceeds the writer's
  // earlier iterations.
  bool progress(uint32_t writer, uint32_t key, CounterKind kind, const ProgressPoint& point);
  // Number of lines that exceeded their writer's earlier iterations, in the job's track, a named track or a
  // bar. Grows while the job makes progress.
  uint64_t moves() const;
  // Chooses the job's track. Call before the functions below; repeatable.
  void choose();

  // The points of the job's track by iteration, thinned to a bounded number; empty without a counter.
  const std::vector<ProgressPoint>& track() const;
  // The current iteration at a place: by time if known, else by its source's progress lines. -1 before the
  // first progress line, or without a counter.
  int64_t iteration_at(TimeNs time, uint32_t source, uint64_t line) const;
  // The writer's last progress line in this source.
  OwnStep own_step(uint32_t writer, uint32_t source) const;
  // The iteration of `step`, if its line belongs to the job's track; else -1.
  int64_t iteration_of(const OwnStep& step) const;
  // The job's last progress: the first line with its highest iteration.
  ProgressPoint last() const;
  // The median time per iteration; 0: unknown.
  TimeNs median_step_ns() const;
  // Number of iterations in the track; 0 without a counter.
  int64_t span() const;
  // The highest iteration of a writer; -1: the writer reports none.
  int64_t last_of(uint32_t writer) const;
  const std::vector<OddIteration>& odd() const;
  // Data dropped because of limits.
  const Drops& drops() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
