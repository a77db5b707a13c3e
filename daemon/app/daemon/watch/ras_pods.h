// Finds the jobs of this host whose processes listen as NCCL's RAS service in a network namespace other than
// the daemon's (a pod), and queries one process of each through culprit-capture. Blocking, for the thread of
// RAS.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/daemon/intake/process_watch.h"
#include "app/daemon/watch/capture_link.h"
#include "base/status.h"
#include "capture/pod_ras.h"

namespace culprit::app {

struct RasPod {
  capture::Target target;  // a process of the job in the namespace, of the listening user
  uint32_t uid = 0;
  uint16_t port = 0;
  bool operator==(const RasPod&) const = default;
};

// The ports of those addresses that are loopback addresses.
std::vector<uint16_t> loopback_ports(const std::vector<std::string>& addresses);

// A process of a job in some network namespace.
struct PodProcess {
  std::string job;
  JobAliveness::JobProcess process;
};
// The user's first process among all of a namespace; null: none, or processes of several jobs. Pure.
const PodProcess* listener_of(const std::vector<PodProcess>& all, uint32_t uid);

// By job, one entry for each namespace and port, from the kernel's tables, which need no permission. A
// namespace in which a user has processes of several jobs is left out, since the answer's job would be
// unknown.
std::map<std::string, std::vector<RasPod>> find_ras_pods(ProcessWatch& processes,
                                                         const std::vector<uint16_t>& ports, TimeNs since_ns);

// See capture::ask_pod_ras. `stop` ends the wait early.
Result<capture::PodRas> ask_ras_pod(const HelperWay& way, const RasPod& pod, const std::atomic<bool>& stop);

}  // namespace culprit::app
