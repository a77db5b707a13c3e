#include "app/jobs/job_hosts.h"

#include <algorithm>

namespace culprit::app {
namespace {

// An agent reports a running job about every minute. A host that missed several reports, and had time to
// reconnect, no longer counts.
constexpr TimeNs kReportingNs = 300 * kNsPerSecond;

}  // namespace

void JobHosts::on_report(const std::string& host, TimeNs until, TimeNs now, bool active) {
  // The first report after a silence of all hosts: the network was down, and other hosts follow.
  const auto received = [&](const auto& of) { return is_reporting(of.second, now); };
  if (std::none_of(hosts_.begin(), hosts_.end(), received))
    for (auto& [name, other] : hosts_) other.last_received_ns = now;
  change(hosts_[host], [&](Host& h) {
    h.until_ns = std::max(h.until_ns, until);
    h.last_received_ns = now;
    if (active && h.exited()) h.alive.reset();  // the host sends lines again; its agent will report processes
  });
  most_ns_ = std::max(most_ns_, until);
  if (active) active_ns_ = std::max(active_ns_, now);
}

void JobHosts::alive(const std::string& host, bool alive) {
  change(hosts_[host], [&](Host& h) { h.alive = alive; });
}

bool JobHosts::away(const std::string& host, TimeNs since) {
  const auto known = hosts_.find(host);
  if (known == hosts_.end()) return false;
  const bool was = known->second.away_ns.value_or(kNoTime) != kNoTime;
  known->second.away_ns = since;
  return was != (since != kNoTime);
}

std::map<std::string, TimeNs> JobHosts::away(TimeNs now) const {
  std::map<std::string, TimeNs> out;
  for (const auto& [name, host] : hosts_) {
    if (host.exited()) continue;
    const bool silent = host.last_received_ns != kNoTime && !is_reporting(host, now);
    const TimeNs since = host.away_ns ? *host.away_ns : silent ? host.last_received_ns : kNoTime;
    if (since != kNoTime) out[name] = since;
  }
  return out;
}

template <class Change>
void JobHosts::change(Host& host, const Change& change) {
  by_until_.erase({host.until_ns, &host});
  alive_ -= host.alive == true ? 1 : 0;
  exited_ -= host.exited() ? 1 : 0;
  change(host);
  if (!host.exited()) by_until_.emplace(host.until_ns, &host);
  alive_ += host.alive == true ? 1 : 0;
  exited_ += host.exited() ? 1 : 0;
}

void JobHosts::back(TimeNs now) {
  for (auto& [name, host] : hosts_) host.last_received_ns = now;
  if (!hosts_.empty()) active_ns_ = now;
}

bool JobHosts::is_reporting(const Host& host, TimeNs now) {
  return host.last_received_ns != kNoTime && now - host.last_received_ns < kReportingNs;
}

const JobHosts::Host* JobHosts::last(TimeNs now) const {
  // Silent hosts have early times, so they come first, but they are few.
  for (const auto& [until, host] : by_until_)
    if (is_reporting(*host, now)) return host;
  return nullptr;
}

std::optional<bool> JobHosts::alive(TimeNs now) const {
  const auto lives = [&](const auto& h) { return h.second.alive == true && is_reporting(h.second, now); };
  if (alive_ > 0 && std::any_of(hosts_.begin(), hosts_.end(), lives)) return true;
  return !hosts_.empty() && exited_ == hosts_.size() ? std::optional(false) : std::nullopt;
}

bool JobHosts::somebody_missing(TimeNs now) const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& h) { return !h.second.exited() && !is_reporting(h.second, now); });
}

TimeNs JobHosts::known_until(TimeNs now) const {
  const Host* host = last(now);
  return std::min(host ? host->until_ns : most_ns_, now);
}

bool JobHosts::have_reported(TimeNs at, TimeNs now) const {
  const Host* host = last(now);
  return host == nullptr || host->until_ns >= at;
}

}  // namespace culprit::app
