// The results of a job's attempts, for the decision about the next one. Two ledgers: by root (the rule or
// detector and its title), and by root and place. Only attempts without progress count; progress empties
// both. Plain values; pure. Times are nanoseconds since the epoch.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit::recover {

// Whether the job advanced beyond all earlier attempts: a higher iteration, or a newer complete checkpoint.
enum class Progress : uint8_t { kNone, kMade, kUnknown };

// How an attempt ended, and why.
struct Failure {
  std::string root;                 // "nvidia.xid.79: GPU has fallen off the bus"; empty: no verdict
  RestartAdvice advice;             // of its leading diagnosis
  bool hang = false;                // the attempt was ended because it made no progress
  bool preempted = false;           // the scheduler took the hosts for another job: no failure of this one
  std::vector<std::string> ran_on;  // hosts of the attempt
  std::string first_to_fail;        // host of the first failure; empty: unknown
  Progress progress = Progress::kUnknown;
  std::optional<int64_t> iteration;  // the last one
  TimeNs begin_ns = kNoTime, end_ns = kNoTime;
};

// The effective restart kind: the advice's, adjusted by earlier failures. Two failures at one step are not
// chance.
Restart turned(const Failure& failure, std::optional<int64_t> failed_at_before);

// The place to blame: the advice's hosts and devices, else the host that failed first; empty: unknown.
std::string place_of(const Failure& failure);

class Ledger {
 public:
  struct Entry {
    uint32_t times = 0;                      // failures without progress between them
    std::map<std::string, uint32_t> places;  // number of times that each place_of() was blamed
    std::optional<int64_t> iteration;        // of the latest
    std::vector<std::string> ran_on;         // of the latest
    std::string first_to_fail;               // of the latest
    TimeNs first_ns = kNoTime;               // end of the first failure
  };

  // Adds a failed attempt. Call before decide() for this attempt.
  void add(const Failure& failure);

  // Entry of a root before the latest attempt; null: no such failure since the last progress.
  const Entry* before(const std::string& root) const;
  // Entry of a root including the latest attempt.
  const Entry& now(const std::string& root) const;
  // Consecutive attempts without known progress, including the latest. Waits for a service and preemptions
  // do not count.
  uint32_t fruitless() const { return fruitless_; }
  // Number of failures of any kind that ended within `span` before `until`.
  size_t ended_within(TimeNs span, TimeNs until) const;

 private:
  void add_end(TimeNs end_ns);

  std::map<std::string, Entry> roots_, before_;
  std::deque<TimeNs> ends_;  // the newest ones
  uint32_t fruitless_ = 0;
};

}  // namespace culprit::recover
