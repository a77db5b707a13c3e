// What can be left out of the controller, and its thresholds. The world has none of them.
#include "sim/cluster/controlled.h"

namespace culprit::sim {
namespace {

using C = ControlOptions;
constexpr uint32_t kNoLimit = 1'000'000'000;

constexpr uint32_t bit(Looks looks) { return 1u << static_cast<uint32_t>(looks); }

// A verdict of these classes comes without a culprit, so their row of the policy is never reached.
template <Looks... looks>
void blind(C& c) {
  c.blind_to |= (bit(looks) | ...);
}

constexpr Ablation kAblations[] = {
    {"device", "policy: hardware named by the kernel", blind<Looks::kGpu>},
    {"device-program", "policy: Xid 13 and 31 touch no machine", blind<Looks::kUserGpuError>},
    {"host-network", "policy: a host's link", blind<Looks::kNetworkHost>},
    {"network-repeat", "policy: tolerate one alert of a link",
     [](C& c) { c.controller.policy.network_repeat = 1; }},
    {"network-check", "policy: a host with one alert of its link is left out for a check",
     [](C& c) { c.controller.policy.check_network = false; }},
    {"fabric", "policy: links of several hosts", blind<Looks::kNetworkMany>},
    {"storage", "policy: storage service", blind<Looks::kStorage>},
    {"node-failure", "policy: a host that the scheduler names", blind<Looks::kNodeDown>},
    {"hang-on-host", "policy: a hang with outliers on one host", blind<Looks::kHangHost>},
    {"hang-in-group", "policy: a hang with outliers in one group", blind<Looks::kHangGroup>},
    {"over-isolation", "policy: isolate a group; without: checks",
     [](C& c) { c.controller.policy.isolate_groups = false; }},
    {"slow-host", "policy: a slow host", blind<Looks::kSlowHost>},
    {"software", "policy: a fault of the program", blind<Looks::kProgram>},
    {"older", "policy: an older checkpoint", [](C& c) { c.newest_checkpoint = true; }},
    {"cause-hosts", "policy: a third host with one cause is not the hosts'",
     [](C& c) { c.controller.policy.cause_hosts = kNoLimit; }},
    {"machine-repeat", "policy: a machine that comes back often stays out",
     [](C& c) { c.controller.policy.machine_repeat = kNoLimit; }},
    {"hang-detection", "the hang limit; without: the job's own watchdog",
     [](C& c) { c.ignores_hangs = true; }},
    {"isolate", "stage isolate; without: exclude for the job",
     [](C& c) { c.controller.guard.stages.isolate = false; }},
    {"check", "stage check", [](C& c) { c.controller.guard.stages.check = false; }},
    {"return", "stage return; without: people return hosts",
     [](C& c) { c.controller.guard.stages.give_back = false; }},
    {"breaker", "guard: limits of isolations in 10 min, in 24 h and at once",
     [](C& c) {
       auto& guard = c.controller.guard;
       guard.short_limit.hosts = guard.long_limit.hosts = guard.at_once_limit.hosts = kNoLimit;
     }},
    {"breaker-short", "guard: limit of isolations in 10 min",
     [](C& c) { c.controller.guard.short_limit.hosts = kNoLimit; }},
    {"corroboration", "guard: evidence that a user can write isolates nothing",
     [](C& c) { c.trusts_users = true; }},
    {"confidence", "guard: confidence of an isolation",
     [](C& c) { c.controller.policy.isolate_confidence = c.controller.policy.stop_confidence = 0; }},
    {"probation", "guard: a returned host on probation", [](C& c) { c.controller.guard.probation_ns = 0; }},
    {"evidence-age", "guard: old evidence decides nothing",
     [](C& c) { c.controller.guard.evidence_max_ns = TimeNs{kNoLimit} * kNsPerSecond; }},
    {"exclusion-end", "policy: an exclusion for a job ends",
     [](C& c) { c.controller.policy.exclude_ns = TimeNs{kNoLimit} * kNsPerSecond; }},
    {"attempt-limits", "limits of attempts: retries, a day's, storm",
     [](C& c) {
       auto& limits = c.controller.limits;
       limits.retries = limits.attempts_per_day = limits.storm = kNoLimit;
     }},
};

double to_s(TimeNs ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }
TimeNs from_s(double s) { return static_cast<TimeNs>(s * static_cast<double>(kNsPerSecond)); }
uint32_t whole(double value) { return value < 1 ? 1 : static_cast<uint32_t>(value); }

#define CULPRIT_TIME(name, path, chosen)                              \
  {                                                                   \
    name, [](const C& c) { return to_s(c.controller.path); },         \
        [](C& c, double v) { c.controller.path = from_s(v); }, chosen \
  }
#define CULPRIT_COUNT(name, path, chosen)                                    \
  {                                                                          \
    name, [](const C& c) { return static_cast<double>(c.controller.path); }, \
        [](C& c, double v) { c.controller.path = whole(v); }, chosen         \
  }
#define CULPRIT_SHARE(name, path, chosen)                                                              \
  {                                                                                                    \
    name, [](const C& c) { return c.controller.path; }, [](C& c, double v) { c.controller.path = v; }, \
        chosen                                                                                         \
  }

constexpr Threshold kThresholds[] = {
    CULPRIT_SHARE("policy.isolate_confidence", policy.isolate_confidence, false),
    CULPRIT_SHARE("policy.stop_confidence", policy.stop_confidence, false),
    CULPRIT_COUNT("policy.network_repeat", policy.network_repeat, false),
    CULPRIT_TIME("policy.network_window_s", policy.network_window_ns, false),
    CULPRIT_COUNT("policy.slow_measured", policy.slow_measured, true),
    CULPRIT_SHARE("policy.slow_share", policy.slow_share, true),
    CULPRIT_COUNT("policy.group_hosts", policy.group_hosts, true),
    CULPRIT_SHARE("policy.group_share", policy.group_share, true),
    CULPRIT_COUNT("policy.machine_repeat", policy.machine_repeat, true),
    CULPRIT_TIME("policy.machine_window_s", policy.machine_window_ns, true),
    CULPRIT_COUNT("policy.cause_hosts", policy.cause_hosts, true),
    CULPRIT_SHARE("policy.cause_share", policy.cause_share, true),
    CULPRIT_TIME("policy.cause_window_s", policy.cause_window_ns, true),
    CULPRIT_COUNT("guard.short_limit.hosts", guard.short_limit.hosts, true),
    CULPRIT_SHARE("guard.short_limit.share", guard.short_limit.share, true),
    CULPRIT_TIME("guard.short_window_s", guard.short_window_ns, true),
    CULPRIT_COUNT("guard.long_limit.hosts", guard.long_limit.hosts, true),
    CULPRIT_SHARE("guard.long_limit.share", guard.long_limit.share, true),
    CULPRIT_SHARE("guard.at_once_limit.share", guard.at_once_limit.share, false),
    CULPRIT_TIME("guard.undo_s", guard.undo_ns, true),
    CULPRIT_TIME("guard.probation_s", guard.probation_ns, false),
    CULPRIT_TIME("guard.evidence_max_s", guard.evidence_max_ns, true),
    CULPRIT_COUNT("limits.retries", limits.retries, true),
    CULPRIT_COUNT("limits.attempts_per_day", limits.attempts_per_day, true),
    CULPRIT_COUNT("limits.storm", limits.storm, false),
    CULPRIT_TIME("limits.storm_s", limits.storm_ns, false),
    CULPRIT_TIME("limits.later_max_s", limits.later_max_ns, true),
    CULPRIT_TIME("bounds.suspect_s", bounds.suspect_ns, true),
    CULPRIT_TIME("bounds.stop_s", bounds.stop_ns, false),
    CULPRIT_TIME("bounds.check_s", bounds.check_ns, true),
    CULPRIT_TIME("bounds.isolate_s", bounds.isolate_ns, false),
    CULPRIT_TIME("bounds.restart_s", bounds.restart_ns, false),
    CULPRIT_TIME("bounds.verify_min_s", bounds.verify_min_ns, false),
    CULPRIT_TIME("bounds.verdict_s", bounds.verdict_ns, true),
    CULPRIT_TIME("bounds.pending_s", bounds.pending_ns, true),
    CULPRIT_TIME("policy.exclude_s", policy.exclude_ns, true),
};

#undef CULPRIT_TIME
#undef CULPRIT_COUNT
#undef CULPRIT_SHARE

}  // namespace

ControlOptions control_defaults() {
  ControlOptions out;
  out.controller.guard.mode = recover::Mode::kAct;
  out.controller.guard.stages = {true, true, true, true};
  return out;
}

std::span<const Ablation> cluster_ablations() { return kAblations; }
std::span<const Threshold> cluster_thresholds() { return kThresholds; }

}  // namespace culprit::sim
