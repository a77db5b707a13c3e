#include "core/logs/host_alias.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/limits.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// Minimum share of an owner's lines that name its machine. NCCL names the machine in each of its lines, which
// make up half of a log's beginning. Few lines name a host that is only mentioned.
constexpr double kNamedShare = 0.25;

std::string_view without_domain(std::string_view name) {
  return is_ipv4(name) || is_ipv6(name) ? name : name.substr(0, name.find('.'));
}

// Names of one host are interchangeable unless two have the same kind: "node7.a.org" and "node7.b.org" are
// two hosts.
bool are_one(const std::vector<std::string>& names) {
  const auto domains = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return without_domain(name).size() < name.size();
  });
  return domains < 2;
}

}  // namespace

std::string common_host_name(std::string_view name) {
  const std::string_view label = without_domain(name);
  if (label.starts_with("ip-")) {
    std::string address(label.substr(3));
    std::replace(address.begin(), address.end(), '-', '.');
    if (is_ipv4(address)) return address;
  }
  const size_t dash = label.rfind('-');
  const bool interface = dash != std::string_view::npos && is_interface_name(label.substr(dash + 1));
  return std::string(interface ? label.substr(0, dash) : label);
}

void HostAliases::count(const std::string& owner, const std::string& host, uint64_t lines) {
  if (entries_ >= limits::kWriters) return;
  const auto [at, fresh] = owners_.try_emplace(owner);
  entries_ += fresh;
  at->second.lines += lines;
  if (host == owner || host.empty()) return;
  const auto [named, first] = at->second.named.try_emplace(host, 0);
  entries_ += first;
  named->second += lines;
}

// Pairs owners with machines, if each owner names exactly one machine and no two owners the same one. Each
// pair is one host with two names.
std::map<std::string, std::string> HostAliases::machines_of_owners(
    const std::vector<std::string>& job_hosts) const {
  std::map<std::string, std::string> owner_of;
  for (const auto& [name, owner] : owners_) {
    if (owner.named.size() != 1) return {};
    const auto& [host, lines] = *owner.named.begin();
    const bool known = owners_.contains(host) || std::ranges::find(job_hosts, host) != job_hosts.end();
    const bool rare = static_cast<double>(lines) < kNamedShare * static_cast<double>(owner.lines);
    if (known || rare || !owner_of.emplace(host, name).second) return {};
  }
  if (owner_of.size() < 2) return {};
  return owner_of;
}

std::map<std::string, std::string> HostAliases::resolve(const std::vector<std::string>& names,
                                                        const std::vector<std::string>& job_hosts) const {
  std::map<std::string, std::string> out = machines_of_owners(job_hosts);
  std::map<std::string, std::vector<std::string>> groups;
  for (const std::string& name : std::set<std::string>(names.begin(), names.end()))
    groups[common_host_name(name)].push_back(name);
  const auto rank = [&](const std::string& name) {
    const bool given = std::ranges::find(job_hosts, name) != job_hosts.end();
    const int kind = given ? 0 : owners_.contains(name) ? 1 : is_ipv4(name) ? 3 : 2;
    return std::tuple(kind, name.size(), std::string_view(name));
  };
  for (const auto& [common, group] : groups) {
    if (group.size() < 2 || !are_one(group)) continue;
    const std::string& best = *std::min_element(
        group.begin(), group.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    for (const std::string& name : group)
      if (name != best) out[name] = out.contains(best) ? out[best] : best;
  }
  return out;
}

}  // namespace culprit::logs
