// Wraps every call of a rule's function in the daemon: sets the black box and measures CPU time. A call that
// takes too long becomes an input of the engine (core::RuleOverran). The input is recorded like any other, so
// a replay gives the same results. The engine's thread only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/daemon/self/black_box.h"
#include "core/rules/run.h"

namespace culprit::app {

// CPU time of the calling thread, so a busy machine does not count against a rule.
TimeNs thread_time();

class RuleWatch : public rules::FunctionWatch {
 public:
  // The instruction limit (100,000) ends a function after about 1 ms. A longer call spends its time where
  // instructions are not counted.
  static constexpr TimeNs kOverrunNs = 2 * kNsPerMs;

  static constexpr size_t kOverrunsMax = 1000;  // limit until drain_overruns(), which follows each batch

  // `box` is borrowed and outlives this object.
  explicit RuleWatch(BlackBox& box, std::function<TimeNs()> clock = thread_time)
      : box_(box), clock_(std::move(clock)) {}

  void enter(const rules::Rule& rule) override;
  void leave() override;

  // Ids of rules that took too long since the last call, in order, with repetitions.
  std::vector<std::string> drain_overruns();

 private:
  BlackBox& box_;
  std::function<TimeNs()> clock_;
  const rules::Rule* running_ = nullptr;
  TimeNs entered_ns_ = 0;
  std::vector<std::string> overran_;
};

}  // namespace culprit::app
