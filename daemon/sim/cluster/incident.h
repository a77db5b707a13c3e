// Incidents of a simulated cluster: what breaks, how a job notices, which evidence it gives and what really
// has to change. Constant tables; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "sim/cluster/params.h"

namespace culprit::sim {

// What a verdict states, in the classes of the policy.
enum class Looks : uint8_t {
  kGpu,           // lost, uncorrectable memory, NVLink, disk: a host's hardware, by name
  kUserGpuError,  // Xid 13, 31: a program's access
  kNetworkHost,   // an alert of one host's link
  kNetworkMany,   // links of several hosts
  kStorage,
  kMemory,    // corrected errors
  kNodeDown,  // named by the scheduler
  kHangHost,  // outlier ranks on one host
  kHangGroup,
  kHangUnknown,
  kCrashUnknown,
  kTransient,  // peer reset: the same again
  kSlowHost,
  kProgram,
  kNumbers,
  kTornCheckpoint,
};
const char* to_string(Looks looks);

// Who wrote the evidence. Bits of a set.
enum Source : uint32_t {
  kFromKernel = 1,
  kFromPlugin = 2,
  kFromPeers = 4,  // agents of other hosts: a silent host, counters of links
  kFromScheduler = 8,
  // A user of the host can write these:
  kFromStacks = 16,
  kFromNumbers = 32,
  kFromLogs = 64,
  kFromRings = 128
};
constexpr uint32_t kUserSources = kFromStacks | kFromNumbers | kFromLogs | kFromRings;

// How a job notices.
enum class Onset : uint8_t {
  kExits,  // its processes end
  kStuck,  // no progress until something ends it
  kDown,   // as kStuck, until the scheduler declares the host down
  kSlow,
  kQuiet,  // not at all
};
// What is broken, and for how long.
enum class Lasts : uint8_t {
  kNot,         // nothing is left
  kAtStart,     // the host, until repaired; each start fails
  kOnAndOff,    // the host, until repaired; fails again some time after a start
  kOutage,      // a service or switch, for a random time; each start fails meanwhile
  kProgram,     // the program, until a person mends it
  kCheckpoint,  // the newest checkpoint; an older one is needed
};
// Whom the verdict names.
enum class Names : uint8_t { kNothing, kHost, kGroup, kSwitch, kForged };

struct IncidentKind {
  const char* name;
  int64_t share_ppm;
  Onset onset;
  Lasts lasts;
  int64_t lasts_ppm;  // share of such incidents that last; the others leave nothing
  Looks looks;
  uint32_t sources;
  Names names;
  int64_t ClusterParams::*delay_s;  // of the verdict after the onset; of a hang: after it is noticed
  uint32_t confidence_percent;
  const char* source;  // of the share
};
std::span<const IncidentKind> incident_kinds();
// Share of incidents that leave a fault of a host to be repaired.
int64_t lasting_host_faults_ppm();

struct Incident {
  TimeNs at_ns;
  uint32_t kind;  // index into incident_kinds()
  uint32_t host;
  uint32_t job;   // hit if the kind is not of a host
  uint64_t seed;  // of what it draws later, so that two supervisors meet the same incidents
  bool lasts;
};
// The incidents of all days, in order of time. Equal seeds give equal lists.
std::vector<Incident> draw_incidents(const ClusterParams& params, int64_t hosts_and_spares, uint64_t seed);

}  // namespace culprit::sim
