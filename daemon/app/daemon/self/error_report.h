// Decides when a repeatedly checked problem is logged: a new problem at once, a changed text after a minute
// at the earliest, an unchanged problem once an hour, and its end once. A problem that comes and goes, or
// changes its text at each attempt, is logged less and less often, so it cannot flood the log. A value; time
// is an argument.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/time.h"

namespace culprit::app {

class ErrorReport {
 public:
  static constexpr TimeNs kApartNs = 60 * kNsPerSecond, kAgainNs = 3600 * kNsPerSecond;

  // Returns what to log now, if anything. Empty `trouble`: no problem; `mended` is the sentence for its end.
  std::optional<std::string> look(const std::string& trouble, const std::string& mended, TimeNs mono_ns) {
    if (trouble.empty()) {
      if (reported_.empty()) return std::nullopt;
      reported_.clear();
      return mended;
    }
    const TimeNs since = reported_ns_ == kNoTime ? kAgainNs : mono_ns - reported_ns_;
    if (since < (trouble == reported_ ? kAgainNs : apart_ns_)) return std::nullopt;
    if (since < kAgainNs)
      apart_ns_ = std::min(kAgainNs, 2 * apart_ns_);
    else if (since >= kAgainNs + kApartNs)  // no problem in the last hour
      apart_ns_ = kApartNs;
    reported_ = trouble;
    reported_ns_ = mono_ns;
    return trouble;
  }

 private:
  std::string reported_;  // empty: no problem was reported, or its end was reported
  TimeNs reported_ns_ = kNoTime, apart_ns_ = kApartNs;
};

}  // namespace culprit::app
