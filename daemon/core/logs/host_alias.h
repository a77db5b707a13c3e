// Resolves the names of one host in the logs of a job: with and without domain, address, interface name, and
// pods or agents that run on it. Memory grows with the writers of a job. One thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

// The common part of a host's names: "node7" for "node7.cluster.local" and "node7-ib0", "10.0.2.7" for
// "ip-10-0-2-7".
std::string common_host_name(std::string_view name);

class HostAliases {
 public:
  // Counts lines of sources that belong to `owner` by their path or agent, and name `host` themselves.
  void count(const std::string& owner, const std::string& host, uint64_t lines);

  // For each host with several names: the name to use. Prefers `job_hosts`, then owners.
  std::map<std::string, std::string> resolve(const std::vector<std::string>& names,
                                             const std::vector<std::string>& job_hosts) const;

 private:
  struct Owner {
    uint64_t lines = 0;
    std::map<std::string, uint64_t> named;  // hosts in its lines, with line counts
  };
  std::map<std::string, std::string> machines_of_owners(const std::vector<std::string>& job_hosts) const;

  std::map<std::string, Owner> owners_;
  size_t entries_ = 0;
};

}  // namespace culprit::logs
