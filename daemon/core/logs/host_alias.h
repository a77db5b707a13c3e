// The names of one host in the logs of a job: with and without its domain, its address, the name of an
// interface, and a pod or an agent whose lines name the machine that it runs on. Memory is bounded by the
// writers of a job. One thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// What the names of one host have in common: "node7.cluster.local" and "node7-ib0" are "node7", "ip-10-0-2-7"
// is "10.0.2.7".
std::string common_host_name(std::string_view name);

class HostAliases {
 public:
  // Lines of sources that belong to `owner` by their path or agent, and name `host` themselves.
  void count(const std::string& owner, const std::string& host, uint64_t lines);

  // For each name of a host that has several: the name to use. `job_hosts` are preferred to all others, then
  // owners.
  std::map<std::string, std::string> resolve(const std::vector<std::string>& names,
                                             const std::vector<std::string>& job_hosts) const;

 private:
  struct Owner {
    uint64_t lines = 0;
    std::map<std::string, uint64_t> named;  // hosts that its lines name, and how many
  };
  std::map<std::string, std::string> machines_of_owners(const std::vector<std::string>& job_hosts) const;

  std::map<std::string, Owner> owners_;
  size_t entries_ = 0;
};

}  // namespace culprit::logs
