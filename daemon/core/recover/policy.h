// The policy: what a diagnosis means for the machine and for the job. One table by class of fault; its
// thresholds are configuration. Authors of the evidence decide whether a machine may be touched at all: what
// a user of the host can write never isolates a host.
//
// Pure; any thread. Times in nanoseconds, shares from 0 to 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit::recover {

// The rows of the table.
enum class FaultClass : uint8_t {
  kDevice,            // GPU gone, uncorrectable ECC, disk fault, NVLink down
  kDeviceProgram,     // a program's fault on a device: illegal access, Xid 13, 31, 43, 45
  kHostNetwork,       // network of one host
  kFabric,            // network of several hosts, or a switch
  kStorage,           // storage service
  kHostMemory,        // corrected memory errors of a host
  kNodeFailure,       // the scheduler names a failed node
  kHangOnHost,        // a hang whose outliers are on one host
  kHangInGroup,       // a hang whose outliers share a group of hosts
  kNoCulprit,         // a hang or crash without a suspect
  kSlowHost,          // a slow host or device
  kSoftware,          // user code, dependency, configuration, data
  kNumeric,           // NaN or spike: data, optimizer, learning rate
  kSilentCorruption,  // a named device that computes wrong values
  kCheckpoint,        // a damaged checkpoint
  kUnknown,
};
constexpr size_t kFaultClasses = static_cast<size_t>(FaultClass::kUnknown) + 1;
std::string_view to_string(FaultClass fault);  // "device", "device-program", …

// Who wrote the evidence. A user of the host can write job logs, trace sockets, rings, metrics, stacks of the
// own processes, and the system log by logger(1). A user cannot write the kernel's messages.
struct Authors {
  bool user = false;       // at least one source that a user can write, or whose writer is unknown
  bool kernel = false;     // the kernel's messages of the host
  bool plugin = false;     // a device plugin that the administrator installed
  bool scheduler = false;  // the scheduler's own statement about the host
  uint32_t peers = 0;      // other hosts whose evidence is by other users than the accused host's
  // Whether somebody else than a user of the host states it.
  bool independent() const { return kernel || plugin || scheduler || peers >= 2; }
};

// The sources of a live daemon, by their names in evidence.
struct Origins {
  std::vector<std::string> kernel_files = {"/dev/kmsg"};
};

// `known_elsewhere`: what the caller knows apart from the diagnosis, such as the scheduler's word.
Authors authors_of(const Diagnosis& diagnosis, const Origins& origins, const Authors& known_elsewhere = {});

// "chosen" marks a number without a source; `culprit simulate cluster` sweeps these.
struct Policy {
  double isolate_confidence = 0.85;  // named hardware rules give .88; at .85 and more 57 of 60 were right
  double stop_confidence = 0.75;     // as for `culprit run` (model/restart.h)
  // Network of one host: tolerate one, isolate after 2 in 5 min (ByteRobust).
  uint32_t network_repeat = 2;
  bool check_network = true;  // the first time: left out for a check, where hosts are idle
  TimeNs network_window_ns = 300 * kNsPerSecond;
  // A slow host: measured twice, and more than 10 % of the step (chosen).
  uint32_t slow_measured = 2;
  double slow_share = 0.10;
  uint32_t corruption_audits = 2;  // audits of one device that differ, or one recomputation
  // A group in place of one host: at most 16 hosts and 2 % of the cluster (chosen).
  uint32_t group_hosts = 16;
  double group_share = 0.02;
  // "third time in 7 days": a machine that comes back so often stays out until a person returns it (chosen).
  uint32_t machine_repeat = 3;
  TimeNs machine_window_ns = 7 * 24 * 3600 * kNsPerSecond;
  // The same cause on so many hosts within 24 h is not the hosts': the larger of 3 (as core/recover/decide
  // has it) and 1 % of the cluster, since a thousand hosts have the same fault thrice a day by chance (chosen
  // by the sweep in docs/simulated-cluster.md).
  uint32_t cause_hosts = 3;
  double cause_share = 0.01;
  TimeNs cause_window_ns = 24 * 3600 * kNsPerSecond;
  // A host that is left out for one job alone comes back to it after so long (chosen by the sweep in
  // docs/simulated-cluster.md: 24 h leave a job of months without hosts).
  TimeNs exclude_ns = 8 * 3600 * kNsPerSecond;
  // Wrong numbers without a certain host: an equal step on all hosts of the job finds one (docs/checks.md).
  bool align = false;
  bool isolate_groups = true;  // over-isolation; false: groups are checked only
};

// A diagnosis as the policy reads it.
struct Case {
  FaultClass fault = FaultClass::kUnknown;
  Authors authors;
  std::string root;  // "nvidia.xid.79: GPU has fallen off the bus", without numbers
  std::string code;  // for the scheduler's reason: "XID79"; letters, digits, "_" and "-", at most 24
  std::string title;
  Symptom symptom = Symptom::kOther;
  double confidence = 0;
  std::vector<std::string> hosts;  // accused, the strongest first
  // Those of `hosts` against which an independent author speaks; only these may be isolated, but for a group.
  std::vector<std::string> confirmed;
  std::vector<std::string> devices;  // "GPU 5", on `hosts`
  RestartAdvice restart;
  uint32_t sources = 0;   // detectors, plugins and rules that agree
  uint32_t measured = 1;  // times that the fault was measured
  double step_share = 0;  // kSlowHost: share of the step that it costs, 0..1; 0: unknown
  std::optional<int64_t> iteration;
  TimeNs newest_ns = kNoTime;  // of the newest evidence against a host
};

// Equal for equal failures: rule or detector, and the title without its numbers.
std::string root_of(const Diagnosis& diagnosis);

// `known_elsewhere`: as for authors_of.
Case case_of(const Diagnosis& diagnosis, const Origins& origins, const Authors& known_elsewhere = {});

// What is known of the accused machine and of the cause before this case.
struct Past {
  uint32_t suspected_lately = 0;  // earlier suspicions of this host by this class in network_window_ns
  uint32_t isolated_lately = 0;   // isolations in machine_window_ns
  uint32_t cause_hosts = 0;       // other hosts isolated for this root in cause_window_ns
  bool probation = false;         // returned less than the probation ago
  bool spares = false;            // idle hosts are known to exist
  bool lacks_hosts = false;       // without the accused hosts the job has too few
  bool may_check = false;         // node checks are possible
  uint32_t cluster_hosts = 0;     // 0: unknown
};

// What happens to the machine.
enum class Machine : uint8_t {
  kNone,          // nothing; also "never" for software
  kSuspect,       // remembered; the next suspicion weighs more
  kExclude,       // out for this job alone; no other job notices
  kCheck,         // a node check decides
  kIsolate,       // no new work, at once
  kIsolateLater,  // isolate at the job's next checkpoint
  kGroup,         // isolate the group, checks return the innocent
  kDevice,        // isolate the device where the scheduler can, else the host
  kOut,           // the scheduler already took it out
};
std::string_view to_string(Machine machine);  // "isolate", "exclude", …

struct Treatment {
  Machine machine = Machine::kNone;
  std::vector<std::string> hosts;    // of `machine`
  std::vector<std::string> devices;  // of kDevice
  RestartAdvice restart;             // for decide(); hosts are those that `machine` or the advice exclude
  bool check_first = false;          // no culprit twice: checks before the next attempt
  bool align = false;                // with check_first: an equal step on all hosts of the job
  bool older = false;                // also resume from before the first wrong step
  uint32_t probably_innocent = 0;    // kGroup: hosts of the group that are probably sound
  std::string why;                   // one sentence without a full stop
  std::string not_isolated;          // why no stronger action: names the limit; empty: nothing was held back
};

// `before` has the failures of this root without progress between: 0 for the first.
Treatment treat(const Case& what, const Past& past, uint32_t before, const Policy& policy);

}  // namespace culprit::recover
