#include "sim/cluster/diagnosis.h"

#include <fmt/format.h>

namespace culprit::sim {
namespace {

constexpr uint32_t kJobUser = 12'000;

struct Form {
  Looks looks;
  const char* rules[4];  // by variant
  const char* title;
  Category category;
  Component component;
  Symptom symptom;
  ActionKind action;
  Restart restart;
};

// As the shipped rules and detectors state these faults.
constexpr Form kForms[] = {
    {Looks::kGpu,
     {"nvidia.xid.79", "nvidia.xid.48", "nvidia.xid.95", "nvidia.xid.74"},
     "The GPU does not work",
     Category::kHardware,
     Component::kGpu,
     Symptom::kCrash,
     ActionKind::kIsolate,
     Restart::kElsewhere},
    {Looks::kUserGpuError,
     {"nvidia.xid.31", "nvidia.xid.13", "nvidia.xid.31", "nvidia.xid.13"},
     "A program accessed memory that is not its own",
     Category::kUnknown,
     Component::kGpu,
     Symptom::kCrash,
     ActionKind::kRetry,
     Restart::kSame},
    {Looks::kNetworkHost,
     {"network.link.down", "network.link.errors", "network.link.down", "network.link.errors"},
     "The link of one host fails",
     Category::kHardware,
     Component::kNetwork,
     Symptom::kCrash,
     ActionKind::kCheck,
     Restart::kElsewhere},
    {Looks::kNetworkMany,
     {"network.switch", "network.switch", "network.switch", "network.switch"},
     "The links of several hosts fail",
     Category::kHardware,
     Component::kNetwork,
     Symptom::kCrash,
     ActionKind::kCheck,
     Restart::kLater},
    {Looks::kStorage,
     {"storage.lustre", "storage.nfs", "storage.s3", "storage.full"},
     "The storage does not answer",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kCrash,
     ActionKind::kRetry,
     Restart::kLater},
    {Looks::kMemory,
     {"kernel.mce.corrected", "kernel.mce.corrected", "kernel.edac", "kernel.edac"},
     "Corrected memory errors",
     Category::kHardware,
     Component::kHostMemory,
     Symptom::kOther,
     ActionKind::kCheck,
     Restart::kUnknown},
    {Looks::kNodeDown,
     {"slurm.node.fail", "slurm.node.fail", "slurm.node.fail", "slurm.node.fail"},
     "The host failed",
     Category::kPlatform,
     Component::kPlatform,
     Symptom::kCrash,
     ActionKind::kIsolate,
     Restart::kElsewhere},
    {Looks::kHangHost,
     {},
     "Ranks of one host keep the others waiting",
     Category::kUnknown,
     Component::kNcclComm,
     Symptom::kHang,
     ActionKind::kIsolate,
     Restart::kElsewhere},
    {Looks::kHangGroup,
     {},
     "Ranks of one group keep the others waiting",
     Category::kUnknown,
     Component::kNcclComm,
     Symptom::kHang,
     ActionKind::kCheck,
     Restart::kElsewhere},
    {Looks::kHangUnknown,
     {},
     "The job hangs",
     Category::kUnknown,
     Component::kNcclComm,
     Symptom::kHang,
     ActionKind::kCheck,
     Restart::kUnknown},
    {Looks::kCrashUnknown,
     {},
     "The job failed",
     Category::kUnknown,
     Component::kUnknown,
     Symptom::kCrash,
     ActionKind::kRetry,
     Restart::kUnknown},
    {Looks::kTransient,
     {"nccl.peer-reset", "nccl.timeout", "cuda.late-oom", "nccl.peer-reset"},
     "A connection was reset",
     Category::kUnknown,
     Component::kNcclComm,
     Symptom::kCrash,
     ActionKind::kRetry,
     Restart::kSame},
    {Looks::kSlowHost,
     {},
     "One host is slow",
     Category::kHardware,
     Component::kGpu,
     Symptom::kSlowdown,
     ActionKind::kIsolate,
     Restart::kElsewhere},
    {Looks::kProgram,
     {"python.import", "python.shape", "python.key", "python.type"},
     "The program raises an exception",
     Category::kUser,
     Component::kUserCode,
     Symptom::kCrash,
     ActionKind::kFix,
     Restart::kNever},
    {Looks::kNumbers,
     {},
     "The loss is not finite",
     Category::kUser,
     Component::kNumeric,
     Symptom::kNumeric,
     ActionKind::kRollback,
     Restart::kOlder},
    {Looks::kTornCheckpoint,
     {"checkpoint.torn", "checkpoint.torn", "checkpoint.torn", "checkpoint.torn"},
     "The checkpoint is not whole",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kCrash,
     ActionKind::kRollback,
     Restart::kOlder},
};

const Form& form_of(Looks looks) {
  for (const Form& form : kForms)
    if (form.looks == looks) return form;
  return kForms[0];
}

void add_evidence(const ClusterVerdict& v, std::span<const std::string> names, TimeNs now, Diagnosis& out) {
  const auto add = [&](const std::string& host, const char* file, bool user) {
    Evidence e;
    e.host = host;
    e.file = file;
    e.time_ns = now;
    if (user) e.uid = Principal(kJobUser);
    out.evidence.push_back(std::move(e));
  };
  for (const uint32_t host : v.hosts) {
    if (v.sources & kFromKernel) add(names[host], "/dev/kmsg", false);
    if (v.sources & kUserSources) add(names[host], "rank.log", true);
  }
}

}  // namespace

Diagnosis diagnosis_of(const ClusterVerdict& v, std::span<const std::string> names, TimeNs now) {
  const Form& form = form_of(v.looks);
  Diagnosis out;
  out.id = "d1";
  const char* rule = form.rules[v.variant % 4];
  if (rule != nullptr) {
    out.rule = rule;
    out.found_by.emplace_back(rule);
  } else {
    out.detector = to_string(v.looks);
  }
  constexpr struct {
    Source bit;
    const char* name;
  } kDetectors[] = {{kFromPlugin, "plugin:device_health"},
                    {kFromPeers, "agents"},
                    {kFromStacks, "stacks"},
                    {kFromNumbers, "numerics"},
                    {kFromRings, "comm"}};
  for (const auto& one : kDetectors)
    if (v.sources & one.bit) out.found_by.emplace_back(one.name);
  out.title = form.title;
  out.category = form.category;
  out.component = form.component;
  out.symptom = form.symptom;
  out.time_ns = now;
  out.confidence = v.confidence_percent / 100.0;
  out.action.kind = form.action;
  out.restart.kind = form.restart;
  out.restart.sure = out.confidence >= 0.75;
  for (const uint32_t host : v.hosts) {
    Suspect suspect;
    suspect.host = names[host];
    suspect.score = out.confidence;
    out.hosts.push_back(std::move(suspect));
    if (form.action == ActionKind::kIsolate || form.action == ActionKind::kCheck)
      out.action.targets.push_back(names[host]);
    if (form.restart == Restart::kElsewhere) out.restart.hosts.push_back(names[host]);
  }
  add_evidence(v, names, now, out);
  return out;
}

recover::Authors authors_of(const ClusterVerdict& v) {
  recover::Authors out;
  out.user = (v.sources & kUserSources) != 0;
  out.plugin = (v.sources & kFromPlugin) != 0;
  out.scheduler = (v.sources & kFromScheduler) != 0;
  out.peers = v.sources & kFromPeers ? 2 : 0;
  return out;
}

}  // namespace culprit::sim
