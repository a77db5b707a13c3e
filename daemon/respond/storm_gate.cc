#include "respond/storm_gate.h"

#include <algorithm>

namespace culprit::respond {

void StormGate::forget_old(TimeNs now) {
  for (std::deque<TimeNs>* times : {&came_, &sent_}) {
    for (TimeNs& at : *times) at = std::min(at, now);
    while (!times->empty() && now - times->front() >= kWithin) times->pop_front();
  }
}

bool StormGate::calm(TimeNs now) {
  forget_old(now);
  return came_.size() <= most_;
}

size_t StormGate::room(TimeNs now) { return calm(now) ? most_ - std::min(most_, sent_.size()) : 0; }

bool StormGate::admit(TimeNs now, bool held) {
  forget_old(now);
  came_.push_back(now);
  if (came_.size() > most_ + 1) came_.pop_front();
  if (held || sent_.size() >= most_) return false;
  sent_.push_back(now);
  return true;
}

}  // namespace culprit::respond
