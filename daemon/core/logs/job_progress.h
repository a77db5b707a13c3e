// The numbers in a job's lines: its iterations, the training's own numbers, and the last progress lines as
// text. Owned by JobLog. One thread; pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/logs/counter.h"
#include "core/logs/job_log.h"

namespace culprit::logs {

// A line that is its own event.
struct EventLine {
  uint32_t index = 0;   // in its batch
  uint32_t form = 0;    // index into JobLog::forms()
  uint32_t symbol = 0;  // of the form in the iterations
  bool folded = false;  // `form` stands for all forms beyond the limit
  LogPlace place;
};

class JobProgress {
 public:
  // The lines of a new batch follow.
  void begin_batch() { next_number_ = 0; }
  // Adds a line, in the order of the batch. Returns whether the line counts up: its purpose is a number that
  // exceeds its writer's earlier ones.
  bool add_line(const LogBatch& batch, const EventLine& event);
  // Adds an event that is not a progress line.
  void add_event(uint32_t writer, uint32_t symbol) { iterations_.event(writer, symbol); }
  void keep_line(const LogPlace& place, std::string_view message);
  // Chooses the job's track; repeatable.
  void settle() { iterations_.choose(); }

  // See JobLog::steps_below.
  bool steps_below(const LogPlace& place) const;
  // See JobLog::step_since_restart.
  int64_t step_since_restart(const LogPlace& place) const;

  const Iterations& iterations() const { return iterations_; }
  const Numbers& numbers() const { return numbers_; }
  const std::vector<LogSample>& last_lines() const { return last_lines_; }  // oldest first

 private:
  // Restarts of a writer's named counter from a lower number, and the steps since.
  struct Restarts {
    uint32_t source = 0, counter = 0;  // hash of the counter's name and total
    int64_t iteration = -1, highest = -1;
    uint64_t fell = 0, steps = 0, falls = 0;  // fell: line of the last restart; 0: none
    bool goes_on() const;                     // made enough steps since the restart
  };
  static constexpr size_t kCountersOfWriter = 4;
  void note_step(const LogPlace& place, const Progress& progress);
  std::optional<Progress> counted(const LogBatch& batch, const EventLine& event, CounterKind& kind);

  std::vector<CounterWatch> counters_;  // by form
  Iterations iterations_;
  Numbers numbers_;
  std::vector<LogSample> last_lines_;
  std::vector<std::vector<Restarts>> restarts_;  // by writer
  size_t next_number_ = 0;                       // in the current batch
};

}  // namespace culprit::logs
