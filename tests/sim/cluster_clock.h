// Virtual time: events in order, and tasks that sleep in the middle of a call. So blocking code of the
// product runs for many processes at once, on one thread, and each run of a seed is the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/time.h"

namespace culprit::sim {

constexpr TimeNs kMs = kNsPerMs, kS = kNsPerSecond;

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(mix64(seed, 99)) {}
  uint64_t below(uint64_t n) { return (state_ = mix64(state_, 1)) % n; }
  TimeNs range(TimeNs from, TimeNs to) {
    return from + static_cast<TimeNs>(below(static_cast<uint64_t>(to - from) + 1));
  }
  bool chance(uint64_t per_cent) { return below(100) < per_cent; }
  bool per_mille(uint64_t n) { return below(1000) < n; }

 private:
  uint64_t state_;
};

class VirtualClock {
 public:
  VirtualClock();
  // Lets each task end: sleep() returns at once from now on, so a task must end by itself.
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;

  TimeNs now() const { return now_; }
  void at(TimeNs when, std::function<void()> what);
  void after(TimeNs span, std::function<void()> what) { at(now_ + span, std::move(what)); }
  // Begins a task now. It may sleep(); events may not.
  void start(std::function<void()> body);
  void sleep(TimeNs span);
  // The next event; false: there is none.
  bool step();
  // No further event happens but the ends of tasks.
  void end_tasks();

 private:
  struct Task;
  struct Event {
    TimeNs when = 0;
    uint64_t number = 0;
    Task* wakes = nullptr;
    std::shared_ptr<std::function<void()>> what;
    bool operator<(const Event& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };
  static void run_body(unsigned high, unsigned low);
  void prepare(Task& task);
  void enter(Task* task);
  void leave();

  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<Task>> tasks_, idle_;  // idle: their stacks are used again
  Task* running_ = nullptr;
  TimeNs now_ = 0;
  uint64_t number_ = 0;
  bool ending_ = false;
};

}  // namespace culprit::sim
