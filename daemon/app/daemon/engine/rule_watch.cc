#include "app/daemon/engine/rule_watch.h"

#include <ctime>
#include <utility>

namespace culprit::app {

TimeNs thread_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

void RuleWatch::enter(const rules::Rule& rule) {
  running_ = &rule;
  box_.enter(BlackBox::Kind::kRule, rule.id, rule.text_hash);
  entered_ns_ = clock_();
}

void RuleWatch::leave() {
  const TimeNs took = clock_() - entered_ns_;
  box_.leave();
  if (running_ && took > kOverrunNs && overran_.size() < kOverrunsMax) overran_.push_back(running_->id);
  running_ = nullptr;
}

std::vector<std::string> RuleWatch::drain_overruns() { return std::exchange(overran_, {}); }

}  // namespace culprit::app
