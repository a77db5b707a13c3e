#include "app/daemon/job_hosts.h"

#include <algorithm>

namespace culprit::app {
namespace {

// An agent tells of a running job every minute or so: whoever missed some of these, and the time to connect
// again, is waited for no longer.
constexpr TimeNs kHeardNs = 300 * kNsPerSecond;

}  // namespace

void JobHosts::told(const std::string& host, TimeNs until, TimeNs now, bool active) {
  // The first one after nobody was heard: the network was cut, and the others are on their way.
  const auto heard = [&](const auto& of) { return is_heard(of.second, now); };
  if (std::none_of(hosts_.begin(), hosts_.end(), heard))
    for (auto& [name, other] : hosts_) other.heard_ns = now;
  Host& h = hosts_[host];
  h.until_ns = std::max(h.until_ns, until);
  h.heard_ns = now;
  if (!active) return;
  active_ns_ = std::max(active_ns_, now);
  if (h.gone()) h.alive.reset();  // it came back; its agent will tell
}

void JobHosts::alive(const std::string& host, bool alive) { hosts_[host].alive = alive; }

void JobHosts::back(TimeNs now) {
  for (auto& [name, host] : hosts_) host.heard_ns = now;
  if (!hosts_.empty()) active_ns_ = now;
}

bool JobHosts::is_heard(const Host& host, TimeNs now) {
  return host.heard_ns != kNoTime && now - host.heard_ns < kHeardNs;
}

std::optional<bool> JobHosts::alive(TimeNs now) const {
  bool all_gone = true;
  for (const auto& [name, host] : hosts_) {
    if (host.alive == true && is_heard(host, now)) return true;
    all_gone = all_gone && host.gone();
  }
  return all_gone && !hosts_.empty() ? std::optional(false) : std::nullopt;
}

bool JobHosts::somebody_missing(TimeNs now) const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& h) { return !h.second.gone() && !is_heard(h.second, now); });
}

TimeNs JobHosts::known_until(TimeNs now) const {
  TimeNs least = kNoTime, most = kNoTime;
  for (const auto& [name, host] : hosts_) {
    most = std::max(most, host.until_ns);
    if (host.gone() || !is_heard(host, now)) continue;
    least = least == kNoTime ? host.until_ns : std::min(least, host.until_ns);
  }
  return std::min(least == kNoTime ? most : least, now);
}

bool JobHosts::have_told_of(TimeNs at, TimeNs now) const {
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& h) {
    return h.second.gone() || !is_heard(h.second, now) || h.second.until_ns >= at;
  });
}

}  // namespace culprit::app
