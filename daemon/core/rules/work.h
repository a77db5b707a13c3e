// The budget of one load of rules: what reading and proving all of them may cost. Work is counted and never
// timed, so that the same files are taken or refused on every machine; a unit is about a nanosecond. The
// caller's `stop` is asked along the way and ends the load early. One thread.
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

  // False once the budget is spent or the caller stops the load: the work under way ends then.
  bool spend(uint64_t units) {
    spent_ += units;
    if (!ended_ && stop_ && stop_()) ended_ = stopped_ = true;
    if (spent_ > budget_) ended_ = true;
    return !ended_;
  }
  bool ended() const { return ended_; }
  uint64_t spent() const { return spent_; }

  // Why it ended: an error's code, and the sentence.
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
