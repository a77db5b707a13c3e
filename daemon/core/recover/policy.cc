#include "core/recover/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"

namespace culprit::recover {
namespace {

constexpr std::array<std::string_view, kFaultClasses> kFaultWords = {
    "device",       "device-program",    "host-network",  "fabric",     "storage",   "host-memory",
    "node-failure", "hang-on-host",      "hang-in-group", "no-culprit", "slow-host", "software",
    "numeric",      "silent-corruption", "checkpoint",    "unknown"};
constexpr std::string_view kPluginPrefix = "plugin:";
constexpr size_t kCodeBytes = 24;  // Slurm shows about 20 characters of a reason in sinfo

bool is_plugin(const std::optional<std::string>& detector) {
  return detector && detector->starts_with(kPluginPrefix);
}

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

void add_name(std::vector<std::string>& list, const std::string& name) {
  if (!name.empty() && !names(list, name)) list.push_back(name);
}

// The accused hosts: the action's, else the advice's, else the suspects'.
std::vector<std::string> accused_hosts(const Diagnosis& d) {
  std::vector<std::string> out;
  if (d.action.kind == ActionKind::kIsolate || d.action.kind == ActionKind::kCheck)
    for (const std::string& host : d.action.targets) add_name(out, host);
  if (out.empty())
    for (const std::string& host : d.restart.hosts) add_name(out, host);
  if (out.empty())
    for (const Suspect& s : d.hosts)
      if (s.host) add_name(out, *s.host);
  return out;
}

std::vector<std::string> accused_devices(const Diagnosis& d) {
  std::vector<std::string> out = d.restart.devices;
  if (out.empty())
    for (const Suspect& s : d.hosts)
      for (const uint32_t device : s.devices) add_name(out, fmt::format("GPU {}", device));
  return out;
}

bool is_machine_part(Component c) {
  using enum Component;
  return c == kGpu || c == kGpuMemory || c == kNvlink || c == kPcie || c == kCpu || c == kHostKernel ||
         c == kDriver;
}

bool is_program_part(Component c) {
  using enum Component;
  return c == kUserCode || c == kUserConfig || c == kUserData || c == kDependency;
}

// By the number of accused hosts.
FaultClass by_hosts(size_t hosts, FaultClass none, FaultClass one, FaultClass several) {
  return hosts == 0 ? none : hosts == 1 ? one : several;
}

// The class where the component alone does not decide.
FaultClass class_by_symptom(const Diagnosis& d, size_t hosts) {
  using enum FaultClass;
  if (d.symptom == Symptom::kHang) return by_hosts(hosts, kNoCulprit, kHangOnHost, kHangInGroup);
  if (d.symptom == Symptom::kSlowdown) return by_hosts(hosts, kUnknown, kSlowHost, kFabric);
  const bool on_device = d.component == Component::kGpu || d.component == Component::kGpuMemory ||
                         d.component == Component::kCudaRuntime;
  if (on_device && d.restart.kind == Restart::kSame) return kDeviceProgram;
  if (d.category == Category::kFramework || d.category == Category::kUser) return kSoftware;
  return d.symptom == Symptom::kCrash ? kNoCulprit : kUnknown;
}

FaultClass class_of(const Diagnosis& d, size_t hosts) {
  using enum FaultClass;
  const bool hardware = d.category == Category::kHardware;
  const bool out = d.action.kind == ActionKind::kIsolate || d.restart.kind == Restart::kElsewhere;
  if (d.about == About::kCulprit) return kUnknown;
  if (d.symptom == Symptom::kNumeric || d.component == Component::kNumeric)
    return hardware && hosts > 0 ? kSilentCorruption : kNumeric;
  if (d.category == Category::kUser || is_program_part(d.component)) return kSoftware;
  if (d.restart.kind == Restart::kOlder) return kCheckpoint;
  if (d.symptom == Symptom::kSlowdown) return class_by_symptom(d, hosts);
  if (is_machine_part(d.component) && out && (hardware || d.action.kind == ActionKind::kIsolate))
    return kDevice;
  switch (d.component) {
    case Component::kHostMemory:
      return !hardware ? kSoftware : d.action.kind == ActionKind::kIsolate ? kDevice : kHostMemory;
    case Component::kStorage:
      return hosts > 0 && out ? kDevice : kStorage;
    case Component::kNetwork:
      return hosts == 1 ? kHostNetwork : kFabric;
    case Component::kPlatform:
      if (out && hosts > 0) return kNodeFailure;
      break;
    default:
      break;
  }
  return class_by_symptom(d, hosts);
}

std::string without_numbers_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < '0' || c > '9')
      out += c;
    else if (!out.ends_with('#'))
      out += '#';
  }
  return out;
}

// "nvidia.xid.79" gives "XID79", "kernel.mce.fatal" gives "MCE-FATAL", "plugin:gpu_health" "GPU_HEALTH".
std::string code_of(const Diagnosis& d) {
  std::string name = d.rule.value_or(d.detector.value_or("UNKNOWN"));
  if (const size_t colon = name.rfind(':'); colon != name.npos) name.erase(0, colon + 1);
  const size_t last = name.rfind('.');
  if (last != name.npos) {
    const size_t before = last == 0 ? name.npos : name.rfind('.', last - 1);
    const std::string tail = name.substr(last + 1);
    const bool number = !tail.empty() && tail.find_first_not_of("0123456789") == tail.npos;
    const size_t first = before == name.npos ? 0 : before + 1;
    name = name.substr(first, last - first) + (number ? "" : "-") + tail;
  }
  std::string out;
  for (const char c : name) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool same = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    out += lower ? static_cast<char>(c - 'a' + 'A') : same ? c : '_';
  }
  return out.substr(0, kCodeBytes);
}

class PolicyTable {
 public:
  PolicyTable(const Case& what, const Past& past, uint32_t before, const Policy& policy)
      : c_(what), past_(past), before_(before), p_(policy) {
    out_.restart = c_.restart;
  }

  Treatment treat() {
    by_class();
    // A slow host is better than none; whether the others may be left out, a check says in minutes.
    const bool in_doubt = out_.machine == Machine::kExclude || out_.machine == Machine::kGroup;
    if (in_doubt && past_.lacks_hosts && past_.may_check && c_.fault != FaultClass::kSlowHost)
      checks(fmt::format("too few hosts to leave out {} in doubt: node checks come first",
                         counted(c_.hosts.size(), "host")));
    const bool numbers = c_.fault == FaultClass::kNumeric || c_.fault == FaultClass::kSilentCorruption;
    if (numbers && p_.align && past_.may_check && out_.machine != Machine::kDevice)
      out_.check_first = out_.align = true;
    if (out_.restart.kind == Restart::kElsewhere && out_.restart.hosts.empty())
      out_.restart.hosts = out_.hosts;
    return std::move(out_);
  }

 private:
  void by_class() {
    switch (c_.fault) {
      case FaultClass::kDevice:
        return isolate_or_exclude(Machine::kIsolate,
                                  "a fault of the machine: another job would fail there too");
      case FaultClass::kDeviceProgram:
        return leave(Restart::kSame, "the program caused it, so the device is sound");
      case FaultClass::kHostNetwork:
        return host_network();
      case FaultClass::kFabric:
        return leave(Restart::kLater, "the network of several hosts: no host of them is at fault");
      case FaultClass::kStorage:
        return leave(Restart::kLater, "a storage service: no host is at fault");
      case FaultClass::kHostMemory:
        return host_memory();
      case FaultClass::kNodeFailure:
        return node_failure();
      case FaultClass::kHangOnHost:
        return hang_on_host();
      case FaultClass::kHangInGroup:
        return hang_in_group();
      case FaultClass::kNoCulprit:
        return no_culprit();
      case FaultClass::kSlowHost:
        return slow_host();
      case FaultClass::kSoftware:
        return leave(Restart::kNever, "software: no machine is touched");
      case FaultClass::kNumeric:
        return leave(Restart::kOlder, "numbers: no machine is touched");
      case FaultClass::kSilentCorruption:
        return silent_corruption();
      case FaultClass::kCheckpoint:
        return leave(Restart::kOlder, "a damaged checkpoint: no machine is touched");
      case FaultClass::kUnknown:
        break;
    }
    leave(Restart::kUnknown, "the cause is not known: no machine is touched");
  }

  // Nothing happens to the machine. The diagnosis's own advice counts; `otherwise` is for an unknown one.
  void leave(Restart otherwise, std::string why) {
    out_.machine = Machine::kNone;
    out_.why = std::move(why);
    // `elsewhere` without an accused machine of this class would exclude hosts for no reason.
    if (out_.restart.kind == Restart::kUnknown || out_.restart.kind == Restart::kElsewhere)
      out_.restart.kind = otherwise;
    out_.restart.hosts.clear();
    out_.restart.devices.clear();
  }

  void use_hosts(Machine machine, std::string why) {
    out_.machine = machine;
    out_.hosts = c_.hosts;
    out_.why = std::move(why);
  }

  void elsewhere() {
    if (out_.restart.kind == Restart::kNever) return;
    out_.restart.kind = Restart::kElsewhere;
    out_.restart.hosts = c_.hosts;
  }

  // The strong action where evidence and history permit it; else the hosts are out for this job alone.
  void isolate_or_exclude(Machine strong, std::string why) {
    elsewhere();
    use_hosts(strong, std::move(why));
    if (c_.hosts.empty()) {
      out_.machine = Machine::kNone;
      out_.restart.kind = Restart::kUnknown;
      out_.not_isolated = "no host is named";
    } else if (past_.cause_hosts + 1 >= cause_limit()) {
      weaken(fmt::format("the same cause isolated {} within {}, so it is not the hosts' (limit {})",
                         counted(past_.cause_hosts, "other host"), format_duration(p_.cause_window_ns),
                         cause_limit()));
    } else if (!c_.authors.independent()) {
      weaken("users of the host could have written all evidence");
    } else if (c_.confidence < p_.isolate_confidence && !past_.probation) {
      weaken(fmt::format("the confidence is {:.2f}, and an isolation needs {:.2f}", c_.confidence,
                         p_.isolate_confidence));
    } else if (strong != Machine::kGroup) {
      out_.hosts = c_.confirmed;
    }
  }

  uint32_t cause_limit() const {
    return std::max(p_.cause_hosts, static_cast<uint32_t>(p_.cause_share * past_.cluster_hosts));
  }

  void weaken(std::string why) {
    out_.machine = Machine::kExclude;
    out_.not_isolated = std::move(why);
  }

  // The first time: remembered, and the job runs again as it is.
  void suspect(std::string why, Restart restart) {
    use_hosts(Machine::kSuspect, std::move(why));
    out_.restart.kind = restart;
    out_.restart.hosts.clear();
    out_.restart.devices.clear();
  }

  bool is_repeated() const { return before_ > 0 || past_.probation; }

  void host_network() {
    if (past_.suspected_lately + 1 >= p_.network_repeat || is_repeated())
      return isolate_or_exclude(
          Machine::kIsolate, fmt::format("the network of the host failed {} times within {}",
                                         past_.suspected_lately + 1, format_duration(p_.network_window_ns)));
    // One failure is tolerated, and isolates nothing. An idle host in its place costs the job nothing.
    if (past_.may_check && past_.spares && !past_.lacks_hosts && p_.check_network) {
      elsewhere();
      use_hosts(Machine::kExclude,
                "the network of one host: another one takes its place while it is checked");
      out_.not_isolated = fmt::format("the network failed once, and {} within {} isolate the host",
                                      p_.network_repeat, format_duration(p_.network_window_ns));
      return;
    }
    suspect(fmt::format("the network of one host: {} within {} isolate it", p_.network_repeat,
                        format_duration(p_.network_window_ns)),
            Restart::kSame);
  }

  void host_memory() {
    if (is_repeated()) return isolate_or_exclude(Machine::kIsolate, "memory errors of the host came again");
    elsewhere();
    use_hosts(Machine::kExclude, "corrected memory errors: plan an exchange");
    out_.not_isolated = "the errors were corrected";
  }

  void node_failure() {
    elsewhere();
    use_hosts(
        c_.authors.scheduler ? Machine::kOut : Machine::kExclude,
        c_.authors.scheduler ? "the scheduler already took the host out" : "the host is said to have failed");
    if (!c_.authors.scheduler) out_.not_isolated = "the scheduler does not confirm it";
  }

  void hang_on_host() {
    if (c_.confidence < p_.stop_confidence && !is_repeated())
      return suspect("a weak suspicion", Restart::kSame);
    isolate_or_exclude(Machine::kIsolate, "the ranks of one host keep the others waiting");
    if (out_.machine == Machine::kIsolate && c_.sources < 2 && !is_repeated())
      weaken("one detector alone accuses the host, and an isolation needs two");
  }

  void hang_in_group() {
    const auto share = static_cast<uint32_t>(p_.group_share * past_.cluster_hosts);
    const uint32_t limit = std::min(p_.group_hosts, share);
    if (before_ > 0) return checks("the same hang again: node checks find the host");
    if (!p_.isolate_groups || c_.hosts.size() > limit) {
      checks(fmt::format("{} are too many to isolate for one fault (limit {})",
                         counted(c_.hosts.size(), "host"), limit));
      return;
    }
    isolate_or_exclude(Machine::kGroup,
                       fmt::format("the fault is on one of {}; node checks return the others",
                                   counted(c_.hosts.size(), "host")));
    out_.probably_innocent = static_cast<uint32_t>(c_.hosts.size()) - 1;
  }

  void checks(std::string why) {
    use_hosts(Machine::kCheck, std::move(why));
    out_.check_first = true;
    out_.not_isolated.clear();
    out_.probably_innocent = 0;
    out_.restart.kind = Restart::kSame;
    out_.restart.hosts.clear();
    out_.restart.devices.clear();
  }

  void no_culprit() {
    if (before_ > 0) return checks("no culprit, and it happened again: node checks come first");
    leave(Restart::kSame, "no culprit: once more as it is");
  }

  void slow_host() {
    const bool is_certain = c_.measured >= p_.slow_measured && c_.step_share > p_.slow_share;
    if (!is_certain)
      return suspect(fmt::format("a slow host counts when measured {} times at more than {:g} % of the step",
                                 p_.slow_measured, p_.slow_share * 100),
                     Restart::kSame);
    isolate_or_exclude(Machine::kIsolateLater,
                       fmt::format("the host costs {:.0f} % of each step", c_.step_share * 100));
  }

  void silent_corruption() {
    isolate_or_exclude(Machine::kDevice, "the device computes wrong values");
    out_.devices = c_.devices;
    out_.older = true;
    if (out_.machine == Machine::kDevice && c_.measured < p_.corruption_audits)
      weaken(fmt::format("one audit differs, and an isolation needs {}", p_.corruption_audits));
  }

  const Case& c_;
  const Past& past_;
  const uint32_t before_;
  const Policy& p_;
  Treatment out_;
};

}  // namespace

std::string_view to_string(FaultClass fault) { return kFaultWords[static_cast<size_t>(fault)]; }

std::string_view to_string(Machine machine) {
  switch (machine) {
    case Machine::kNone:
      return "none";
    case Machine::kSuspect:
      return "suspect";
    case Machine::kExclude:
      return "exclude";
    case Machine::kCheck:
      return "check";
    case Machine::kIsolate:
      return "isolate";
    case Machine::kIsolateLater:
      return "isolate-later";
    case Machine::kGroup:
      return "group";
    case Machine::kDevice:
      return "device";
    case Machine::kOut:
      break;
  }
  return "out";
}

Authors authors_of(const Diagnosis& d, const Origins& origins, const Authors& known_elsewhere) {
  Authors out = known_elsewhere;
  // The engine found users or hearsay to be the only authors: nothing in the diagnosis is independent.
  if (d.said_by) {
    out.user = true;
    return out;
  }
  const std::vector<std::string> accused = accused_hosts(d);
  std::set<std::string> peer_hosts;
  std::set<Principal> peer_users, own_users;
  for (const Evidence& e : d.evidence) {
    const bool on_accused = e.host && names(accused, *e.host);
    if (!e.uid && names(origins.kernel_files, e.file)) {
      out.kernel = out.kernel || on_accused;  // a kernel knows its own host only
      continue;
    }
    out.user = true;
    if (!e.uid || !e.host) continue;
    if (on_accused) {
      own_users.insert(*e.uid);
    } else {
      peer_hosts.insert(*e.host);
      peer_users.insert(*e.uid);
    }
  }
  // One user may run the job on all hosts: each peer needs another author.
  for (const Principal& user : own_users) peer_users.erase(user);
  out.peers = std::max(out.peers, static_cast<uint32_t>(std::min(peer_hosts.size(), peer_users.size())));
  out.plugin = out.plugin || is_plugin(d.detector) ||
               std::ranges::any_of(d.found_by, [](const auto& by) { return by.starts_with(kPluginPrefix); });
  return out;
}

std::string root_of(const Diagnosis& d) {
  return d.rule.value_or(d.detector.value_or("")) + ": " + without_numbers_of(d.title);
}

namespace {

// A plugin's evidence is data, not a line of text.
bool is_of_kernel_or_plugin(const Evidence& e, const Origins& origins, const Authors& by) {
  return names(origins.kernel_files, e.file) || (by.plugin && !e.line);
}

// A kernel and a plugin speak for their own host alone; the other authors name the hosts.
std::vector<std::string> confirmed_hosts(const Diagnosis& d, const Origins& origins, const Case& c,
                                         const Authors& known_elsewhere) {
  const Authors& by = c.authors;
  if (by.scheduler || by.peers >= 2) return c.hosts;
  std::vector<std::string> out;
  if (!by.kernel && !by.plugin) return out;
  for (const Evidence& e : d.evidence)
    if (!e.uid && e.host && names(c.hosts, *e.host) && is_of_kernel_or_plugin(e, origins, by))
      add_name(out, *e.host);
  return out.empty() && known_elsewhere.independent() ? c.hosts : out;
}

}  // namespace

Case case_of(const Diagnosis& d, const Origins& origins, const Authors& known_elsewhere) {
  Case out;
  out.hosts = accused_hosts(d);
  out.devices = accused_devices(d);
  out.fault = class_of(d, out.hosts.size());
  out.authors = authors_of(d, origins, known_elsewhere);
  out.confirmed = confirmed_hosts(d, origins, out, known_elsewhere);
  out.root = root_of(d);
  out.code = code_of(d);
  out.title = d.title;
  out.symptom = d.symptom;
  out.confidence = d.confidence;
  out.restart = d.restart;
  out.sources = std::max<uint32_t>(1, static_cast<uint32_t>(d.found_by.size()));
  out.iteration = d.iteration;
  out.newest_ns = d.time_ns;
  for (const Evidence& e : d.evidence)
    if (e.time_ns != kNoTime) out.newest_ns = std::max(out.newest_ns, e.time_ns);
  return out;
}

Treatment treat(const Case& what, const Past& past, uint32_t before, const Policy& policy) {
  return PolicyTable(what, past, before, policy).treat();
}

}  // namespace culprit::recover
