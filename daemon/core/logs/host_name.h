// Whether a word names a host, judged by its form alone: letters then a number (node-3, r7i4n4, worker_3,
// x4616c3s4b0n0, ip-10-0-3-7), what clouds and Kubernetes name (gke-…-pool-1-abcd, aks-…-vmss000001, pods), a
// full domain name, an address. What jobs number (steps, attempts, parts), models (llama-70b) and what hosts
// call their own parts (eth0, mlx5_0) are none. Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

// The higher, the surer.
enum class HostForm : uint8_t {
  kNone,
  kPossible,  // letters and a number that much else has too: a host's name where only hosts stand
  kNumbered,  // letters and a number, or a domain name of one
  kRole,      // a role that runs on a host of its own, numbered: worker_3, trainer-0; a pod
  kMachine,   // a word for a machine, numbered; a name that a cloud gives; an address
};

HostForm host_form(std::string_view name);

// A name that means a host at any place.
inline bool is_host_name(std::string_view name) { return host_form(name) >= HostForm::kNumbered; }

// Whether a name needs no further number: "node-17", "ip-10-0-3-7", "trainer-0"; "dgx-h100" does.
bool is_whole_host_name(std::string_view name);

// A word for what a job, a program or a host numbers or writes: train, log, rank, llama, stdout.
bool is_common_word(std::string_view word);

// The first word of the names that a cloud gives to the nodes of a pool: gke, aks.
bool is_pool_word(std::string_view word);

// The end of a name that an interface of the network has: "ib0", "eth1", "mgmt".
bool is_interface_name(std::string_view part);

// "10.0.3.7"
bool is_ipv4(std::string_view text);
// "fd00:10::72": at least one "::" or eight groups, and a first group that hosts' addresses have.
bool is_ipv6(std::string_view text);

}  // namespace culprit::logs
