// Decides from its form alone whether a word is a host name. Host names: letters then a number (node-3,
// r7i4n4, worker_3, x4616c3s4b0n0, ip-10-0-3-7), names from clouds and Kubernetes (gke-…-pool-1-abcd,
// aks-…-vmss000001, pods), full domain names, addresses. Not host names: numbered parts of jobs (steps,
// attempts, parts), models (llama-70b), parts of hosts (eth0, mlx5_0). Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

// Ascending certainty.
enum class HostForm : uint8_t {
  kNone,
  kPossible,  // letters and a number, as in many other names: a host only where only hosts are expected
  kNumbered,  // letters and a number, or a domain name of that form
  kRole,      // a numbered role that runs on its own host: worker_3, trainer-0; a pod
  kMachine,   // a numbered word for a machine; a cloud's name; an address
};

HostForm host_form(std::string_view name);

// A name that is a host at any position.
inline bool is_host_name(std::string_view name) { return host_form(name) >= HostForm::kNumbered; }

// Whether a name is complete without a further number: "node-17", "ip-10-0-3-7", "trainer-0"; but not
// "dgx-h100".
bool is_whole_host_name(std::string_view name);

// A word that jobs, programs or hosts often number or write: train, log, rank, llama, stdout.
bool is_common_word(std::string_view word);

// The first word of cloud names for the nodes of a pool: gke, aks.
bool is_pool_word(std::string_view word);

// The suffix of a network interface in a host name: "ib0", "eth1", "mgmt".
bool is_interface_name(std::string_view part);

// "10.0.3.7"
bool is_ipv4(std::string_view text);
// "fd00:10::72": at least one "::" or eight groups, and a first group as in addresses of hosts.
bool is_ipv6(std::string_view text);

}  // namespace culprit::logs
