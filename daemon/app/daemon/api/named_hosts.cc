#include "app/daemon/api/named_hosts.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace culprit::app {
namespace {

constexpr TimeNs kOddFor = 24 * 3600 * kNsPerSecond;

// Adds each host named by a standing diagnosis, unless a person cleared the host after its newest evidence.
void add_named(const Verdict& v, const std::map<std::string, TimeNs>& cleared, std::vector<NamedHost>& out) {
  if (!v.is_open() || !v.settled) return;
  const Diagnosis& d = v.diagnosis;
  const bool leads = v.state == VerdictState::kConfirmed || v.leads;
  std::vector<Principal> users;
  if (d.said_by) users = d.said_by->uids;
  for (const Suspect& place : d.hosts) {
    const std::string host = place.host.value_or("");
    if (host.empty()) continue;
    const auto since = v.accused_ns.find(host);
    const TimeNs last = since != v.accused_ns.end() && since->second != kNoTime ? since->second : v.last_ns;
    const auto at = cleared.find(host);
    if (at != cleared.end() && (last == kNoTime || last <= at->second)) continue;
    out.push_back({host, leads, users, place, last, v.job, v.run, v.id(), d.title, d.confidence});
  }
}

}  // namespace

std::vector<NamedHost> named_hosts(std::span<const Verdict> verdicts,
                                   const std::map<std::string, uint32_t>& last_run,
                                   const std::map<std::string, TimeNs>& cleared) {
  std::vector<NamedHost> out;
  for (const Verdict& v : verdicts)
    if (const auto run = last_run.find(v.job); run != last_run.end() && run->second == v.run)
      add_named(v, cleared, out);
  std::stable_sort(out.begin(), out.end(), [](const NamedHost& a, const NamedHost& b) {
    return std::tuple(a.claimed(), !a.verdict, -a.place.score) <
           std::tuple(b.claimed(), !b.verdict, -b.place.score);
  });
  std::set<std::pair<std::string, std::vector<Principal>>> claims;
  std::erase_if(out, [&](const NamedHost& one) {
    return one.claimed() && !claims.emplace(one.host, one.claimed_by).second;
  });
  return out;
}

std::vector<const NamedHost*> worst_by_host(const std::vector<NamedHost>& named, TimeNs now) {
  std::vector<const NamedHost*> out;
  std::set<std::string> seen;
  for (const NamedHost& one : named) {
    const bool old = one.last_ns == kNoTime || one.last_ns < now - kOddFor;
    if ((!one.verdict || one.claimed()) && old) continue;
    if (seen.insert(one.host).second) out.push_back(&one);
  }
  return out;
}

}  // namespace culprit::app
