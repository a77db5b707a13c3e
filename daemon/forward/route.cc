#include "forward/route.h"

#include <algorithm>

#include "io/address.h"

namespace culprit::forward {

void Route::failed(TimeNs now) {
  for (auto& [job, known] : known_)
    if (known.address == at_) known.away_until_ns = now + kAwayNs;
  // From an owner outside the list back to the one that named it, which may know a newer one.
  if (at_ == to_[next_]) next_ = (next_ + 1) % to_.size();
  at_ = to_[next_];
}

std::optional<std::string> Route::owner(const std::vector<std::string>& jobs,
                                        const std::vector<peer::JobOwner>& others, TimeNs now) {
  std::erase_if(known_, [&](const auto& one) { return std::ranges::find(jobs, one.first) == jobs.end(); });
  std::map<std::string, size_t> owned;  // jobs by address
  for (const std::string& job : jobs) {
    const auto other = std::ranges::find(others, job, &peer::JobOwner::job);
    std::string address = at_;
    if (other != others.end() && may_follow(other->address)) {
      Known& known = known_[job];
      if (other->epoch > known.epoch) known = {other->address, other->epoch, 0};
      if (other->epoch == known.epoch && now >= known.away_until_ns) address = known.address;
    }
    ++owned[address];
  }
  const auto most = std::ranges::max_element(owned, {}, [](const auto& one) { return one.second; });
  if (most == owned.end() || most->first == at_ || most->second == owned[at_]) return std::nullopt;
  return most->first;
}

bool Route::may_follow(const std::string& to) const {
  const auto parts = io::split_address(to);
  if (!parts || parts->port == 0 || parts->host == "0.0.0.0" || parts->host == "::") return false;
  // Another host's loopback is not this one's.
  return io::is_loopback(to) ? io::is_loopback(at_) : tls_;
}

}  // namespace culprit::forward
