// What a job's attempts came to, for the decision about the next one. Two ledgers: by root, which is the rule
// or detector with what it says, and by root and place. Only attempts without progress count, and progress
// empties both. Plain values; pure. Times are nanoseconds since the epoch.
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

// Whether the job came further than in any attempt before: an iteration above all, or a newer whole
// checkpoint.
enum class Progress : uint8_t { kNone, kMade, kUnknown };

// How an attempt ended, and why.
struct Failure {
  std::string root;                 // "nvidia.xid.79: GPU has fallen off the bus"; empty: no verdict
  RestartAdvice advice;             // of its leading diagnosis
  bool hang = false;                // it was ended because it stood
  std::vector<std::string> ran_on;  // the hosts of the attempt
  std::string first_to_fail;        // a host, if one was first; empty: not known
  Progress progress = Progress::kUnknown;
  std::optional<int64_t> iteration;  // the last one
  TimeNs begin_ns = kNoTime, end_ns = kNoTime;
};

// The value that counts: the advice's, turned by what happened before. Two failures at one step are no
// chance.
Restart turned(const Failure& failure, std::optional<int64_t> failed_at_before);

// Who is to blame: the hosts and devices of the advice, else the host that failed first; empty: not known.
std::string place_of(const Failure& failure);

class Ledger {
 public:
  struct Entry {
    uint32_t times = 0;                      // failures without progress between them
    std::map<std::string, uint32_t> places;  // how often each place_of() was to blame
    std::optional<int64_t> iteration;        // of the latest
    std::vector<std::string> ran_on;         // likewise
    std::string first_to_fail;               // likewise
    TimeNs first_ns = kNoTime;               // end of the first of them
  };

  // Adds an attempt that failed. Call before decide() for it.
  void add(const Failure& failure);

  // Of a root before the latest attempt; null: it did not fail that way since the last progress.
  const Entry* before(const std::string& root) const;
  // With the latest attempt.
  const Entry& now(const std::string& root) const;
  // Consecutive attempts without known progress, the latest included. Waiting for a service counts for none.
  uint32_t fruitless() const { return fruitless_; }
  // Failures that ended within `span` before `until`, of any kind.
  size_t ended_within(TimeNs span, TimeNs until) const;

 private:
  std::map<std::string, Entry> roots_, before_;
  std::deque<TimeNs> ends_;  // the newest ones
  uint32_t fruitless_ = 0;
};

}  // namespace culprit::recover
