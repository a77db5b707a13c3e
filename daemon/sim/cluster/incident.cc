#include "sim/cluster/incident.h"

#include "base/check.h"
#include "sim/cluster/draw.h"

namespace culprit::sim {
namespace {

using P = ClusterParams;
constexpr int64_t kAlways = 1'000'000;
// ByteRobust's 19 largest jobs: closed by eviction 32.5 %, plain retry 22.7 %, rollback 9.2 %, replay 1.2 %.
constexpr const char* kEviction = "part of ByteRobust's 32.5 % (eviction)";
constexpr const char* kRetry = "part of ByteRobust's 22.7 % (plain retry)";
constexpr const char* kRollback = "part of ByteRobust's 9.2 % (rollback)";
constexpr const char* kReplay = "ByteRobust's 1.2 % (replay)";
constexpr const char* kRest = "part of the other 34.4 %, chosen";

constexpr IncidentKind kKinds[] = {
    {"gpu-lost", 180'000, Onset::kExits, Lasts::kAtStart, kAlways, Looks::kGpu, kFromKernel, Names::kHost,
     &P::kernel_s, 93, kEviction},
    {"nvlink-down", 50'000, Onset::kExits, Lasts::kAtStart, kAlways, Looks::kGpu, kFromKernel | kFromPlugin,
     Names::kHost, &P::kernel_s, 90, kEviction},
    {"disk-fault", 25'000, Onset::kExits, Lasts::kAtStart, kAlways, Looks::kGpu, kFromKernel, Names::kHost,
     &P::kernel_s, 90, kEviction},
    {"node-down", 40'000, Onset::kDown, Lasts::kAtStart, kAlways, Looks::kNodeDown, kFromScheduler,
     Names::kHost, &P::scheduler_s, 95, kEviction},
    {"link-flaps", 30'000, Onset::kExits, Lasts::kOnAndOff, kAlways, Looks::kNetworkHost,
     kFromKernel | kFromPeers, Names::kHost, &P::peers_s, 90, kEviction},
    {"peer-reset", 160'000, Onset::kExits, Lasts::kNot, 0, Looks::kTransient, kFromLogs, Names::kHost,
     &P::logs_s, 80, kRetry},
    {"link-blip", 47'000, Onset::kExits, Lasts::kNot, 0, Looks::kNetworkHost, kFromKernel | kFromPeers,
     Names::kHost, &P::peers_s, 88, kRetry},
    {"illegal-access", 20'000, Onset::kExits, Lasts::kNot, 0, Looks::kUserGpuError, kFromKernel, Names::kHost,
     &P::kernel_s, 90, kRetry},
    {"program", 62'000, Onset::kExits, Lasts::kProgram, kAlways, Looks::kProgram, kFromLogs, Names::kNothing,
     &P::logs_s, 92, kRollback},
    {"loss-spike", 30'000, Onset::kExits, Lasts::kCheckpoint, 500'000, Looks::kNumbers, kFromNumbers,
     Names::kNothing, &P::logs_s, 85, kRollback},
    {"silent-corruption", 12'000, Onset::kExits, Lasts::kOnAndOff, kAlways, Looks::kCrashUnknown,
     kFromNumbers, Names::kNothing, &P::logs_s, 40, kReplay},
    {"hang-host", 80'000, Onset::kStuck, Lasts::kAtStart, 500'000, Looks::kHangHost, kFromStacks | kFromRings,
     Names::kHost, &P::stacks_s, 88, kRest},
    {"hang-group", 20'000, Onset::kStuck, Lasts::kAtStart, 500'000, Looks::kHangGroup,
     kFromStacks | kFromPeers, Names::kGroup, &P::stacks_s, 80, kRest},
    {"hang-unknown", 40'000, Onset::kStuck, Lasts::kNot, 0, Looks::kHangUnknown, kFromStacks, Names::kNothing,
     &P::stacks_s, 40, kRest},
    {"slow-host", 40'000, Onset::kSlow, Lasts::kAtStart, kAlways, Looks::kSlowHost, kFromRings, Names::kHost,
     &P::slow_s, 88, kRest},
    {"storage-outage", 60'000, Onset::kExits, Lasts::kOutage, kAlways, Looks::kStorage, kFromLogs,
     Names::kNothing, &P::logs_s, 90, kRest},
    {"switch-outage", 20'000, Onset::kExits, Lasts::kOutage, kAlways, Looks::kNetworkMany,
     kFromKernel | kFromPeers, Names::kSwitch, &P::peers_s, 88, kRest},
    {"corrected-errors", 14'000, Onset::kQuiet, Lasts::kNot, 0, Looks::kMemory, kFromKernel, Names::kHost,
     &P::kernel_s, 90, kRest},
    {"torn-checkpoint", 10'000, Onset::kExits, Lasts::kCheckpoint, kAlways, Looks::kTornCheckpoint, kFromLogs,
     Names::kNothing, &P::logs_s, 90, kRest},
    {"forged", 10'000, Onset::kQuiet, Lasts::kNot, 0, Looks::kGpu, kFromLogs | kFromRings, Names::kForged,
     &P::logs_s, 93, kRest},
    {"forged-crash", 10'000, Onset::kExits, Lasts::kNot, 0, Looks::kGpu, kFromLogs | kFromRings,
     Names::kForged, &P::logs_s, 93, kRest},
    {"intermittent-gpu", 20'000, Onset::kExits, Lasts::kOnAndOff, kAlways, Looks::kGpu, kFromKernel,
     Names::kHost, &P::kernel_s, 90, kRest},
    {"late-memory", 20'000, Onset::kExits, Lasts::kNot, 0, Looks::kTransient, kFromLogs, Names::kNothing,
     &P::logs_s, 85, kRest},
};

}  // namespace

const char* to_string(Looks looks) {
  switch (looks) {
    case Looks::kGpu:
      return "gpu";
    case Looks::kUserGpuError:
      return "user-gpu-error";
    case Looks::kNetworkHost:
      return "network-host";
    case Looks::kNetworkMany:
      return "network-many";
    case Looks::kStorage:
      return "storage";
    case Looks::kMemory:
      return "memory";
    case Looks::kNodeDown:
      return "node-down";
    case Looks::kHangHost:
      return "hang-host";
    case Looks::kHangGroup:
      return "hang-group";
    case Looks::kHangUnknown:
      return "hang-unknown";
    case Looks::kCrashUnknown:
      return "crash-unknown";
    case Looks::kTransient:
      return "transient";
    case Looks::kSlowHost:
      return "slow-host";
    case Looks::kProgram:
      return "program";
    case Looks::kNumbers:
      return "numbers";
    case Looks::kTornCheckpoint:
      return "torn-checkpoint";
  }
  return "";
}

std::span<const IncidentKind> incident_kinds() { return kKinds; }

int64_t lasting_host_faults_ppm() {
  int64_t sum = 0;
  for (const IncidentKind& k : kKinds)
    if (k.lasts == Lasts::kAtStart || k.lasts == Lasts::kOnAndOff) sum += k.share_ppm * k.lasts_ppm / kAlways;
  return sum;
}

std::vector<Incident> draw_incidents(const ClusterParams& params, int64_t hosts_and_spares, uint64_t seed) {
  int64_t all = 0;
  for (const IncidentKind& k : kKinds) all += k.share_ppm;
  CULPRIT_CHECK(all == kAlways);
  std::vector<Incident> out;
  if (params.incidents_per_day == 0) return out;
  Random random = Random(seed).fork(1);
  const TimeNs day = 86'400 * kNsPerSecond, end = params.days * day;
  for (TimeNs at = exponential(random, day / params.incidents_per_day); at < end;
       at += exponential(random, day / params.incidents_per_day)) {
    auto left = static_cast<int64_t>(random.below(kAlways));
    uint32_t kind = 0;
    while (left >= kKinds[kind].share_ppm) left -= kKinds[kind++].share_ppm;
    const auto host = static_cast<uint32_t>(random.below(static_cast<uint64_t>(hosts_and_spares)));
    const auto job = static_cast<uint32_t>(random.below(static_cast<uint64_t>(params.jobs)));
    const uint64_t own = random.next();
    const bool lasts = happens_ppm(random, kKinds[kind].lasts_ppm);
    out.push_back({at, kind, host, job, own, lasts});
  }
  return out;
}

}  // namespace culprit::sim
