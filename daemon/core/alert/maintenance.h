// Maintenance windows: the hosts, jobs and times for which alerts are suppressed. Pure: time is an argument.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/alert.h"

namespace culprit::alert {

// Whether the whole text matches: * any characters, ? one. All other characters are literal.
bool matches_glob(std::string_view pattern, std::string_view text);

struct Window {
  int64_t id = 0;
  std::string hosts, jobs;  // globs; at least one is set; with both, both must match
  TimeNs from_ns = kNoTime, until_ns = kNoTime;
  std::string reason, by;
  bool ended = false;  // by a person, before `until_ns`
  uint64_t held = 0;   // issues that it suppressed

  bool open(TimeNs now) const { return !ended && from_ns <= now && now < until_ns; }
  bool over(TimeNs now) const { return ended || until_ns <= now; }
  // A host pattern must match every accused host: another host may still need a person.
  bool covers(const Fault& fault) const;
};
std::string to_json(const Window& window);
Result<Window> window_from_json(std::string_view text);

// The reason why the window cannot be added; empty: it can.
std::string trouble_of(const Window& window, TimeNs now);

constexpr size_t kWindows = 1000;      // not yet ended: one per rack of a large cluster
constexpr size_t kPatternBytes = 256;  // of hosts and jobs
constexpr size_t kReasonBytes = 1000;  // one or two sentences
constexpr TimeNs kWindowLongest = TimeNs{366} * 24 * 3600 * kNsPerSecond;  // people forget longer ones

}  // namespace culprit::alert
