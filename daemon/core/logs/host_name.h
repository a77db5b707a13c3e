// Whether a word names a host, judged by its form alone: letters then a number (node-3, r7i4n4, worker_3,
// x4616c3s4b0n0, ip-10-0-3-7), a full domain name, an address. What jobs number (steps, attempts, parts) and
// what hosts call their own parts (eth0, mlx5_0) is none. Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::logs {

// The higher, the surer.
enum class HostForm : uint8_t {
  kNone,
  kNumbered,  // letters and a number, or a domain name of one
  kRole,      // a role that runs on a host of its own, numbered: worker_3, trainer-0, pod-7
  kMachine,   // a word for a machine, numbered, or an address: node-3, nid000123, 10.0.3.7
};

HostForm host_form(std::string_view name);

// "10.0.3.7"
bool is_ipv4(std::string_view text);

}  // namespace culprit::logs
