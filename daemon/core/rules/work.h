// The budget of one load of rules, for reading and proving all of them. Work is counted, never timed, so that
// every machine accepts or rejects the same files; a unit is about a nanosecond. The caller's `stop` is
// polled and ends the load early. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace culprit::rules {

// Some ten seconds.
constexpr uint64_t kLoadWork = 10'000'000'000;

class LoadWork {
 public:
  LoadWork(uint64_t budget, std::function<bool()> stop) : budget_(budget), stop_(std::move(stop)) {}

  // False once the budget is spent or the caller stopped the load; the current work then ends.
  bool spend(uint64_t units) {
    spent_ += units;
    if (!ended_ && stop_ && stop_()) ended_ = stopped_ = true;
    if (spent_ > budget_) ended_ = true;
    return !ended_;
  }
  bool ended() const { return ended_; }
  uint64_t spent() const { return spent_; }

  // The reason of the end: an error's code, and its sentence.
  std::string_view code() const { return stopped_ ? "stopped" : "over-budget"; }
  std::string_view why() const {
    return stopped_ ? "stopped before all rules were proven"
                    : "reading and proving the rules takes more work than one load may";
  }

 private:
  uint64_t budget_, spent_ = 0;
  std::function<bool()> stop_;
  bool ended_ = false, stopped_ = false;
};

}  // namespace culprit::rules
