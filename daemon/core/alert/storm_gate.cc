#include "core/alert/storm_gate.h"

#include <algorithm>

namespace culprit::alert {

void StormGate::forget_old(TimeNs now) {
  for (auto& [name, owner] : owners_)
    for (std::deque<TimeNs>* times : {&owner.came, &owner.sent}) {
      for (TimeNs& at : *times) at = std::min(at, now);
      while (!times->empty() && now - times->front() >= kWithin) times->pop_front();
    }
  std::erase_if(owners_, [](const auto& one) {
    return one.second.came.empty() && one.second.sent.empty() && one.second.held == 0;
  });
}

StormGate::Sum StormGate::sum() const {
  Sum out;
  for (const auto& [name, owner] : owners_) {
    out.came += owner.came.size();
    out.sent += owner.sent.size();
    out.held += owner.held;
    out.holders += owner.held > 0;
  }
  return out;
}

// If there are more owners than the limit, the storm covers all of them, and no owner has a share.
size_t StormGate::share() const { return most_ / std::max<size_t>(1, owners_.size()); }

void StormGate::forget_held() {
  for (auto& [name, owner] : owners_) owner.held = 0;
}

size_t StormGate::room(const std::string& name, TimeNs now) {
  forget_old(now);
  const Owner& owner = owners_[name];
  const Sum all = sum();
  const auto left = [](size_t most, size_t used) { return most - std::min(most, used); };
  if (all.came > most_) return owner.came.size() <= share() ? left(share(), owner.sent.size()) : 0;
  const size_t own = all.holders > 1 ? std::max<size_t>(1, share()) : most_;
  return std::min(left(most_, all.sent), left(own, owner.sent.size()));
}

bool StormGate::admit(const std::string& name, TimeNs now) {
  forget_old(now);
  Owner& owner = owners_[name];
  owner.came.push_back(now);
  if (owner.came.size() > most_ + 1) owner.came.pop_front();
  if (owner.held > 0) return false;
  const Sum all = sum();
  const bool quiet = all.held == 0 && all.sent < most_;
  if (!quiet && owner.sent.size() >= share()) return false;
  owner.sent.push_back(now);
  return true;
}

}  // namespace culprit::alert
