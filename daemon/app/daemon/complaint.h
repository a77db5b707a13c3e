// When to say what is wrong with something that is looked at again and again: at once where it begins, in
// other words a minute later at the earliest, as it stands once an hour, and once when it is over. A trouble
// that comes and goes, or has other words at each attempt, is told more and more rarely, so it does not flood
// the log. A value; time is an argument.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/time.h"

namespace culprit::app {

class Complaint {
 public:
  static constexpr TimeNs kApartNs = 60 * kNsPerSecond, kAgainNs = 3600 * kNsPerSecond;

  // `trouble` empty: there is none, and `mended` is what to say of that. What is to be said now, or nothing.
  std::optional<std::string> look(const std::string& trouble, const std::string& mended, TimeNs mono_ns) {
    if (trouble.empty()) {
      if (told_.empty()) return std::nullopt;
      told_.clear();
      return mended;
    }
    const TimeNs since = told_ns_ == kNoTime ? kAgainNs : mono_ns - told_ns_;
    if (since < (trouble == told_ ? kAgainNs : apart_ns_)) return std::nullopt;
    if (since < kAgainNs)
      apart_ns_ = std::min(kAgainNs, 2 * apart_ns_);
    else if (since >= kAgainNs + kApartNs)  // it was quiet
      apart_ns_ = kApartNs;
    told_ = trouble;
    told_ns_ = mono_ns;
    return trouble;
  }

 private:
  std::string told_;  // empty: nothing, or that it is over
  TimeNs told_ns_ = kNoTime, apart_ns_ = kApartNs;
};

}  // namespace culprit::app
