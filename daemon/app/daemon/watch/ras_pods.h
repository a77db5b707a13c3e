// Finds the jobs of this host whose processes listen as NCCL's RAS service in a network namespace other than
// the daemon's (a pod), and asks one of them through culprit-capture. Blocking, for the thread of RAS.
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
  capture::Target target;  // a process of the job in the namespace, of the user who listens there
  uint32_t uid = 0;
  uint16_t port = 0;
  bool operator==(const RasPod&) const = default;
};

// The ports of the loopback addresses among these.
std::vector<uint16_t> loopback_ports(const std::vector<std::string>& addresses);

// A process of a job in some network namespace.
struct PodProcess {
  std::string job;
  JobAliveness::JobProcess process;
};
// The first one of that user among all of a namespace; null: none, or they are of several jobs. Pure.
const PodProcess* listener_of(const std::vector<PodProcess>& all, uint32_t uid);

// By job, one entry for each namespace and port, by the kernel's tables, which need no right. A namespace in
// which a user has processes of several jobs is left out: whose answer it would be is not known.
std::map<std::string, std::vector<RasPod>> find_ras_pods(ProcessWatch& processes,
                                                         const std::vector<uint16_t>& ports, TimeNs since_ns);

// See capture::ask_pod_ras. `stop` ends the wait early.
Result<capture::PodRas> ask_ras_pod(const CaptureWay& way, const RasPod& pod, const std::atomic<bool>& stop);

}  // namespace culprit::app
