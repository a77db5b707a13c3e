// Findings of a plugin: a state is raised once and cleared once, with hysteresis; an event is reported as it
// happens. Owned by the detector, on its thread.
#pragma once

#include <culprit/plugin.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace health {

using Values = std::vector<std::pair<std::string, double>>;

// A row of a plugin's table of findings. Everything about a fault but what was seen.
struct Kind {
  const char* id;
  const char* title;
  const char* category;
  const char* component;
  const char* symptom;
  const char* action;
  const char* remedy;
  uint32_t severity;
  double confidence;
  uint32_t raise_after = 1;  // bad looks in a row
  uint32_t clear_after = 1;  // good looks in a row
};

// What a finding is about: a part of the host, of a device, or both.
struct Subject {
  std::string part;
  int64_t device = CULPRIT_NONE;
};

struct Seen {
  std::string text;
  Values values;
};

class Report {
 public:
  explicit Report(const culprit::Host& host) : host_(host) {}

  // One look at a state. `seen` is called when it is raised or cleared: it returns Seen.
  template <class Describe>
  void state(const Kind& kind, const Subject& subject, bool bad, Describe seen) {
    if (changed(kind, subject, bad)) emit(kind, subject, bad ? CULPRIT_RAISED : CULPRIT_CLEARED, seen());
  }
  void happened(const Kind& kind, const Subject& subject, const Seen& seen) {
    emit(kind, subject, CULPRIT_HAPPENED, seen);
  }
  bool raised(const Kind& kind, const Subject& subject) const;

  // The raised states, for a later instance: it clears them when they end, and does not raise them again.
  std::string save() const;
  void load(const std::string& state);

  const culprit::Host& host() const { return host_; }

 private:
  struct Track {
    bool raised = false;
    uint32_t looks = 0;  // in a row that disagree with `raised`
  };
  bool changed(const Kind& kind, const Subject& subject, bool bad);
  void emit(const Kind& kind, const Subject& subject, uint32_t state, const Seen& seen);

  culprit::Host host_;
  std::unordered_map<std::string, Track> tracks_;  // of states that are raised or on the way to it
};

// A count that only grows, and its growth within a time. The value at the first look accuses no part: it
// may be years old. A count that fell was reset: that look is a first one too.
class Count {
 public:
  explicit Count(int64_t window_ns) : window_ns_(window_ns) {}
  // Returns how much it grew since the last look.
  uint64_t look(uint64_t value, int64_t now_ns);
  // Growth within the last window, estimated from this window and the one before.
  double recent(int64_t now_ns) const;
  uint64_t total() const { return total_; }  // growth since the first look
  bool known() const { return known_; }

 private:
  void roll(int64_t now_ns);
  int64_t window_ns_;
  int64_t start_ns_ = 0;
  uint64_t last_ = 0, total_ = 0, current_ = 0, previous_ = 0;
  bool known_ = false;
};

// Time for a detector: that of its ticks, so that tests decide it. A step of the wall clock is a second here.
class TickClock {
 public:
  int64_t advance(int64_t wall_ns) {
    constexpr int64_t kSecond = 1000000000;
    const int64_t delta = wall_ns - last_ns_;
    if (last_ns_ != 0) now_ns_ += delta < 0 || delta > 3600 * kSecond ? kSecond : delta;
    last_ns_ = wall_ns;
    return now_ns_;
  }

 private:
  int64_t last_ns_ = 0;
  int64_t now_ns_ = 1;
};

constexpr int64_t kSecond = 1000000000, kMinute = 60 * kSecond, kHour = 60 * kMinute;

}  // namespace health
