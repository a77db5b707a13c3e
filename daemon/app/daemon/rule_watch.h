// What goes round every call of a rule's function in the daemon: the black box, and the time that the call
// took. A call that took too long becomes an input of the engine (core::RuleOverran), recorded like any
// other, so that a replay does what was done. The engine's thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/daemon/black_box.h"
#include "core/rules/run.h"

namespace culprit::app {

// CPU time of the calling thread: a rule is not to blame for a busy machine.
TimeNs thread_time();

class RuleWatch : public rules::FunctionWatch {
 public:
  // The budgets inside (100,000 instructions) end a function after about 1 ms; what takes longer spends its
  // time where they do not count.
  static constexpr TimeNs kOverrunNs = 2 * kNsPerMs;

  static constexpr size_t kOverrunsKept = 1000;  // until they are taken: after each batch

  // `box` is borrowed and outlives this.
  explicit RuleWatch(BlackBox& box, std::function<TimeNs()> clock = thread_time)
      : box_(box), clock_(std::move(clock)) {}

  void enter(const rules::Rule& rule) override;
  void leave() override;

  // Ids of rules that took too long since the last call, in order, as often as they did.
  std::vector<std::string> take_overruns();

 private:
  BlackBox& box_;
  std::function<TimeNs()> clock_;
  const rules::Rule* running_ = nullptr;
  TimeNs entered_ns_ = 0;
  std::vector<std::string> overran_;
};

}  // namespace culprit::app
