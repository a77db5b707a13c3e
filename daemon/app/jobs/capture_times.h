// When to capture the processes of a job. A hung job is captured at once and again at intervals, since
// several samples distinguish slow from stuck. A job with slower steps, or one requested by a person, is
// captured in rounds. A value of one run; one thread. Time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/time.h"

namespace culprit::app {

struct CapturePlan {
  uint32_t samples = 0;  // captures per hang; 0: none
  TimeNs every_ns = 10 * kNsPerSecond;
  uint32_t rounds = 0;  // rounds for a job that became slower; 0: none
  bool stacks = true;   // false: queries only NCCL RAS
};

class CaptureTimes {
 public:
  // State of the job: it hangs, or a standing diagnosis reports slower steps.
  struct JobPace {
    bool stalled = false, slow = false;
  };
  enum class Request : uint8_t { kTaken, kUnderWay, kTooSoon };

  // A person requests this many captures. `answer_ns`: how long hosts may take for one.
  Request request(uint32_t rounds, const CapturePlan& plan, TimeNs answer_ns, TimeNs now) {
    if (wanted_ > 0 || (stalled_ && taken_ > 0 && taken_ < plan.samples)) return Request::kUnderWay;
    const TimeNs passed = since_last(now);
    if (passed < std::min(answer_ns, plan.every_ns)) return Request::kUnderWay;
    if (asked_ns_ != kNoTime && now >= asked_ns_ && now - asked_ns_ < std::max(kFloorNs, plan.every_ns))
      return Request::kTooSoon;
    asked_ns_ = now;
    wanted_ = rounds;
    at_once_ = true;
    return Request::kTaken;
  }

  // The number of the capture that is due now. Numbers grow over the run; `known`: the highest number with
  // received stacks, for example from before a restart.
  std::optional<uint32_t> due(const JobPace& pace, const CapturePlan& plan, TimeNs now, uint32_t known = 0) {
    if (!pace.stalled) taken_ = 0;
    stalled_ = pace.stalled;
    notice_slow(pace, plan, now);
    const bool stop = pace.stalled && taken_ < plan.samples;
    if (!stop && wanted_ == 0) return std::nullopt;
    const bool first = at_once_ || (wanted_ == 0 && taken_ == 0);
    if (!first && since_last(now) < plan.every_ns) return std::nullopt;
    at_once_ = false;
    last_ns_ = now;
    if (stop) ++taken_;
    if (wanted_ > 0) --wanted_;
    number_ = std::max(number_, std::min(known, kNumberMax)) + 1;
    return number_;
  }

  uint32_t number() const { return number_; }  // number of the last capture; 0: none yet

 private:
  static constexpr TimeNs kFloorNs = 10 * kNsPerSecond;        // between two requests
  static constexpr TimeNs kSlowAgainNs = 1800 * kNsPerSecond;  // pause between two series of a slow job
  static constexpr uint32_t kNumberMax = 1 << 24;              // a user's line may name any number

  // Infinite without a capture, and after a clock was set back.
  TimeNs since_last(TimeNs now) const {
    return last_ns_ == kNoTime || now < last_ns_ ? INT64_MAX : now - last_ns_;
  }

  void notice_slow(const JobPace& pace, const CapturePlan& plan, TimeNs now) {
    const bool became = pace.slow && !slow_;
    slow_ = pace.slow;
    const bool again = slow_ns_ == kNoTime || now < slow_ns_ || now - slow_ns_ >= kSlowAgainNs;
    if (!became || !again || pace.stalled || !plan.stacks || plan.rounds == 0) return;
    slow_ns_ = now;
    at_once_ = at_once_ || wanted_ == 0;
    wanted_ = std::max(wanted_, plan.rounds);
  }

  uint32_t taken_ = 0;   // captures of the current hang
  uint32_t wanted_ = 0;  // remaining captures of a series
  uint32_t number_ = 0;
  bool at_once_ = false, stalled_ = false, slow_ = false;
  TimeNs last_ns_ = kNoTime, asked_ns_ = kNoTime, slow_ns_ = kNoTime;
};

}  // namespace culprit::app
