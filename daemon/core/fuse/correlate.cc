#include "core/fuse/correlate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/restart.h"

namespace culprit::core::fuse {
namespace {

// A cause is observed some time before or after its effect: plugins sample every few seconds to a minute.
constexpr TimeNs kSeenNear = 120 * kNsPerSecond;
// For a hung job, the kernel reports a blocked task or an unresponsive server minutes later: its hung-task
// check runs every two minutes.
constexpr TimeNs kSeenLate = 300 * kNsPerSecond;
// The kernel reports a device when the program loses it; the program's last lines may be seconds older. The
// value is a choice, without a source.
constexpr TimeNs kSeenWith = 10 * kNsPerSecond;
constexpr int64_t kPlanSteps = 64;    // steps in which a planned change may move the numbers
constexpr double kJoinedMost = 0.97;  // two witnesses may share an error
constexpr double kPaceMost = 0.6;     // confidence limit if only a pace and a counter coincide
constexpr size_t kConfirming = 8;     // further findings that support a joined fault

// ---- the table of combinations

enum class Measured : uint8_t {
  kNone,
  kSlowWork,
  kSlowNetwork,
  kStalled,
  kWrongNumbers,
  kSlowJob,      // the job as a whole, by its pace alone
  kLostNumbers,  // on all ranks
};
using JoinBits = uint64_t;
template <class... Value>
constexpr JoinBits bits_of(Value... values) {
  return ((JoinBits{1} << static_cast<unsigned>(values)) | ...);
}
template <class Value>
constexpr bool has_bit(JoinBits bits, Value value) {
  return (bits >> static_cast<unsigned>(value) & 1) != 0;
}

using Seen = Symptom;
constexpr JoinBits kAnySymptom = ~JoinBits{0};
constexpr JoinBits kBreaks = bits_of(Seen::kHang, Seen::kCrash);

// A measured symptom and a machine-reported cause at the same place. The first matching row states what the
// measurement rules out.
struct Combination {
  Measured effect;
  JoinBits components, symptoms;  // of the cause
  std::string_view ruled_out;
};
constexpr Combination kCombinations[] = {
    {Measured::kSlowWork,
     bits_of(Component::kGpu, Component::kGpuMemory, Component::kPcie, Component::kCpu,
             Component::kHostMemory, Component::kPlatform),
     bits_of(Seen::kSlowdown), "its load is no explanation: peers with the same work are not slow"},
    {Measured::kSlowWork, bits_of(Component::kStorage), bits_of(Seen::kSlowdown, Seen::kHang, Seen::kCrash),
     "its device and its load are no explanation: it waits for storage where its peers do not"},
    {Measured::kSlowNetwork, bits_of(Component::kNetwork, Component::kNvlink, Component::kPcie), kAnySymptom,
     "the ranks are no explanation: what they compute takes no longer than on their peers"},
    {Measured::kStalled, bits_of(Component::kStorage), kAnySymptom,
     "the program is no explanation: no rank called another operation than its peers"},
    {Measured::kStalled, bits_of(Component::kNetwork, Component::kNvlink, Component::kPcie), kAnySymptom,
     "the program is no explanation: no rank called another operation than its peers"},
    {Measured::kStalled, bits_of(Component::kHostMemory), bits_of(Seen::kCrash),
     "its peers are no explanation: the process was gone, and they wait for it"},
    {Measured::kStalled, bits_of(Component::kGpu, Component::kGpuMemory, Component::kDriver), kBreaks,
     "the program is no explanation: no rank called another operation than its peers"},
    {Measured::kStalled, bits_of(Component::kHostMemory, Component::kGpu, Component::kCpu),
     bits_of(Seen::kHang), "the program is no explanation: no rank called another operation than its peers"},
    // Last row: if any source reports the resource for which a task is blocked in the kernel, that is the
    // cause.
    {Measured::kStalled, bits_of(Component::kHostKernel), bits_of(Seen::kHang),
     "the program is no explanation: its task waits in the kernel"},
    {Measured::kWrongNumbers, bits_of(Component::kGpuMemory), kAnySymptom,
     "data and program are no explanation: its peers computed other numbers from the same"},
    {Measured::kSlowJob,
     bits_of(Component::kGpu, Component::kGpuMemory, Component::kPcie, Component::kCpu,
             Component::kHostMemory, Component::kPlatform, Component::kStorage),
     bits_of(Seen::kSlowdown),
     "it is not proved: no trace shows which rank the others wait for; no other host reports such trouble"},
    {Measured::kLostNumbers, bits_of(Component::kGpuMemory), kAnySymptom,
     "data and program are less likely: memory of a device failed when the numbers were lost"},
};

// The effect has no measured place. So only one host may report a cause, at the time of the effect.
bool is_placeless(Measured effect) {
  return effect == Measured::kSlowJob || effect == Measured::kLostNumbers;
}

// A cause on the path between parts of one machine. Slowness of one path does not explain that of another.
constexpr JoinBits kWays = bits_of(Component::kNetwork, Component::kNvlink);

// A symptom too small to be a fault by itself becomes a fault if the machine reports the reason.
bool is_weak(const Finding& f) {
  return f.kind == FindingKind::kSupport && f.detector == DetectorKind::kComm && f.symptom == Seen::kSlowdown;
}

// The job became slower, by its own step times.
bool is_pace(const Finding& f) {
  return f.kind == FindingKind::kSupport && f.detector == DetectorKind::kTemporal &&
         f.symptom == Seen::kSlowdown && f.subjects.empty();
}

Measured effect_of(const Finding& f) {
  if (!f.rule.empty() || f.detector == DetectorKind::kPlugin) return Measured::kNone;
  if (is_pace(f)) return Measured::kSlowJob;
  if (f.kind != FindingKind::kFault && !is_weak(f)) return Measured::kNone;
  if (f.symptom == Seen::kSlowdown) {
    if (f.by_no_device) return Measured::kNone;
    return has_bit(kWays, f.component) ? Measured::kSlowNetwork : Measured::kSlowWork;
  }
  // A call that differs from the peers' is the program's fault. A standstill may have an external cause.
  const bool mismatch = f.by_no_device && f.component == Component::kUserCode;
  if (f.symptom == Seen::kHang) return mismatch ? Measured::kNone : Measured::kStalled;
  if (f.symptom == Seen::kCrash && f.detector == DetectorKind::kSilence) return Measured::kStalled;
  if (f.symptom == Seen::kNumeric && !f.subjects.empty()) return Measured::kWrongNumbers;
  if (f.symptom == Seen::kNumeric && f.component == Component::kNumeric) return Measured::kLostNumbers;
  return Measured::kNone;
}

// The table row for this effect and cause; null: none.
const Combination* row_of(const Finding& cause, Measured effect) {
  for (const Combination& row : kCombinations)
    if (row.effect == effect && has_bit(row.components, cause.component) &&
        has_bit(row.symptoms, cause.symptom))
      return &row;
  return nullptr;
}

// ---- place and time

bool same_place(const FindingSubject& cause, const FindingSubject& effect) {
  const bool host = cause.host && (effect.host == cause.host || effect.peer == cause.host);
  if (cause.rank && effect.rank && !cause.device) return cause.rank == effect.rank;
  if (!host) return false;
  if (cause.device && effect.device) return cause.device == effect.device;
  return !cause.device || !effect.rank || cause.rank == effect.rank;
}

// Whether a cause stops a job by itself, without stopping one rank first.
bool is_strong(const Finding& cause) {
  return cause.kind == FindingKind::kFault || cause.symptom == Seen::kHang;
}

bool same_place(const Finding& cause, const Finding& effect) {
  // Most hosts report it, so the place is common to all of them.
  if (cause.subjects.empty()) return cause.by_no_device && effect.symptom == Seen::kHang;
  const auto meet = [&](const FindingSubject& c) {
    return std::ranges::any_of(effect.subjects, [&](const FindingSubject& s) { return same_place(c, s); });
  };
  if (!effect.subjects.empty()) return std::ranges::any_of(cause.subjects, meet);
  return effect.symptom == Seen::kHang &&
         is_strong(cause);  // the whole job stands still: any of its hosts may be the reason
}

bool same_time(const Finding& cause, const Finding& effect, TimeNs stopped_ns) {
  TimeNs begin = effect.first_ns, end = std::max(effect.first_ns, effect.last_ns);
  TimeNs late = kSeenNear;
  // The first line is often that of a time-out, or has no time of its own.
  if (effect.symptom == Seen::kHang && stopped_ns != kNoTime) {
    begin = end = stopped_ns;
    // Another failure ended the job; later machine reports are not the reason.
    late = effect.role == FindingRole::kCascade ? kSeenWith : kSeenLate;
  }
  if (cause.first_ns == kNoTime || begin == kNoTime) return true;
  if (cause.last_ns != kNoTime && cause.last_ns + kSeenNear < begin) return false;
  return cause.first_ns <= end + late;
}

bool is_of_known_speaker(const Finding& f) { return !f.said_by.uids.empty() || !f.said_by.hosts.empty(); }

// Whether the finding is from the machine: from a plugin, or from a rule about hardware or the platform.
bool is_of_machine(const Finding& f) {
  if (f.confidence <= 0 || is_of_known_speaker(f) || f.category == Category::kFramework) return false;
  if (f.category == Category::kUser && f.component != Component::kHostMemory) return false;
  if (f.detector == DetectorKind::kPlugin) return !f.subjects.empty() && f.subjects[0].strength > 0;
  return !f.rule.empty() && f.role == FindingRole::kRoot && f.component != Component::kUnknown;
}

// For effects without a place: one host's counter that rose when the job became slower, or one host's fault
// when the numbers were lost.
bool is_at_moment(const Finding& cause, const Finding& effect) {
  const bool proves = is_pace(effect) ? cause.detector == DetectorKind::kPlugin && cause.rule.empty()
                                      : cause.kind == FindingKind::kFault;
  if (!proves || cause.subjects.size() != 1 || !cause.subjects[0].host) return false;
  if (cause.first_ns == kNoTime || effect.first_ns == kNoTime) return false;
  return std::abs(cause.first_ns - effect.first_ns) <= kSeenNear;
}

bool is_death(const Finding& f) { return takes_process(f) && f.symptom == Seen::kCrash; }

// Whether stacks of the hung job were taken: then its processes were alive.
bool saw_stacks(const Finding& f) {
  return f.symptom == Seen::kHang &&
         (f.detector == DetectorKind::kStacks ||
          std::ranges::find(f.found_by, to_string(DetectorKind::kStacks)) != f.found_by.end());
}

// A hung job is ended at last. A launcher's later report of a rank whose stack was taken is a consequence.
void follow_hangs(std::vector<Finding>& findings) {
  for (const Finding& hang : findings) {
    if (hang.kind != FindingKind::kFault || !saw_stacks(hang) || hang.subjects.empty()) continue;
    for (Finding& kill : findings)
      if (is_death(kill) && !kill.rule.empty() && !kill.as_kernel && same_place(kill, hang)) {
        kill.role = FindingRole::kCascade;
        kill.why.emplace_back("its stack was taken before: it hung, and was killed then");
      }
  }
}

const Combination* row_if_explains(const Finding& cause, const Finding& effect, TimeNs stopped_ns) {
  const Measured kind = effect_of(effect);
  if (kind == Measured::kNone || !is_of_machine(cause)) return nullptr;
  if (kind == Measured::kStalled && is_death(cause) && saw_stacks(effect)) return nullptr;
  const Combination* row = row_of(cause, kind);
  if (is_placeless(kind)) return row && is_at_moment(cause, effect) ? row : nullptr;
  const bool meets = row && same_place(cause, effect) && same_time(cause, effect, stopped_ns);
  return meets ? row : nullptr;
}

// Two machine reports about one part. The kernel outranks a launcher that saw a process end; a rule outranks
// a plugin. A line that is no fault by itself supports a plugin's finding.
bool confirms(const Finding& cause, const Finding& fault, TimeNs stopped_ns) {
  if (fault.kind != FindingKind::kFault || fault.role != FindingRole::kRoot) return false;
  if (cause.component == Component::kUnknown || cause.component != fault.component) return false;
  if (!is_of_machine(cause) || is_of_known_speaker(fault)) return false;
  const bool plugin = cause.detector == DetectorKind::kPlugin && cause.rule.empty();
  const bool less = fault.rule.empty()
                        ? fault.detector == DetectorKind::kPlugin && !cause.rule.empty() &&
                              cause.kind == FindingKind::kSupport
                        : plugin || (fault.as_kernel && !cause.as_kernel && cause.category == fault.category);
  // A message logged by most hosts has no place, and any host may count it.
  const bool meets = fault.by_no_device ? fault.subjects.empty() : same_place(cause, fault);
  return less && meets && same_time(cause, fault, stopped_ns);
}

// ---- joining

// The more drastic action: isolate before check before all others.
ActionKind stronger(ActionKind a, ActionKind b) {
  for (const ActionKind kind : {ActionKind::kIsolate, ActionKind::kCheck})
    if (a == kind || b == kind) return kind;
  return a == ActionKind::kNone ? b : a;
}

double both(double a, double b) { return std::min(kJoinedMost, 1 - (1 - a) * (1 - b)); }

void add_name(const Finding& f, std::vector<std::string>& names) {
  const auto add = [&](std::string name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  for (const std::string& name : f.found_by) add(name);
  if (!f.found_by.empty()) return;
  if (f.detector == DetectorKind::kPlugin)
    add("plugin:" + f.plugin);
  else if (f.rule.empty())
    add(std::string(to_string(f.detector)));
  else
    add("rule:" + f.rule);
}

void add_why(std::vector<std::string> from, std::vector<std::string>& to) {
  for (std::string& why : from)
    if (std::ranges::find(to, why) == to.end()) to.push_back(std::move(why));
}

void add_evidence(Finding&& cause, Finding& effect) {
  effect.found_by = joined_names(effect, cause);
  effect.confidence = both(effect.confidence, cause.confidence);
  effect.lines += cause.lines;
  std::ranges::move(cause.evidence, std::back_inserter(effect.evidence));
  // The machine itself confirms the fault, so it no longer depends on a user's claim.
  effect.said_by = {};
}

// If the other finding names a rank or device on the fault's host, that is the fault's place.
void name_part(const Finding& cause, Finding& fault) {
  for (FindingSubject& s : fault.subjects) {
    if (!s.host || s.rank || s.device || s.peer) continue;
    const FindingSubject* only = nullptr;
    size_t named = 0;
    for (const FindingSubject& c : cause.subjects)
      if (c.host == s.host && (c.rank || c.device)) only = &c, ++named;
    if (named == 1) s.rank = only->rank, s.device = only->device;
  }
}

// The fault keeps its kind; the other finding supports it.
void join_confirming(Finding&& cause, Finding& fault) {
  if (cause.confidence > 0 && cause.symptom == fault.symptom) name_part(cause, fault);
  add_why(std::move(cause.why), fault.why);
  fault.fatal = fault.fatal || cause.fatal;
  fault.action = stronger(fault.action, cause.action);
  // If two reports describe one fault, the stricter one counts.
  for (const bool progress : {false, true})
    (progress ? fault.restart_after_steps : fault.restart) =
        stricter(restart_of(fault, progress), restart_of(cause, progress));
  add_evidence(std::move(cause), fault);
}

// Whether the cause is about the host of a subject; true if the cause names no host.
bool speaks_of(const Finding& cause, const FindingSubject& s) {
  bool named = false;
  for (const FindingSubject& c : cause.subjects) {
    if (c.host && (c.host == s.host || c.host == s.peer)) return true;
    named = named || c.host.has_value();
  }
  return !named;
}

// Where one of several subjects is at fault, a cause on one of them decides which. True: it did.
bool decide_between(const Finding& cause, Finding& effect) {
  const auto is_other = [&](const FindingSubject& s) { return !speaks_of(cause, s); };
  const auto others = std::ranges::count_if(effect.subjects, is_other);
  if (!effect.one_of || others == 0 || static_cast<size_t>(others) == effect.subjects.size()) return false;
  std::erase_if(effect.subjects, is_other);
  for (FindingSubject& s : effect.subjects) s.strength = effect.confidence;
  effect.one_of = false;
  return true;
}

// The fault takes the cause's place but keeps its measured rank. Subjects on other hosts stay without weight.
void take_place(const Finding& cause, Finding& effect) {
  if (cause.by_no_device || (cause.category == Category::kPlatform && effect.subjects.empty())) return;
  const bool nowhere = effect.subjects.empty();
  effect.by_no_device = false;
  if (nowhere) effect.subjects = cause.subjects;
  for (FindingSubject& s : effect.subjects)
    if (s.strength <= 0 && speaks_of(cause, s) && (is_weak(effect) || effect.symptom != Seen::kSlowdown))
      s.strength = effect.confidence;
}

void join_explaining(Finding&& cause, const Combination& row, Finding& effect) {
  const bool pace = row.effect == Measured::kSlowJob;
  std::vector<std::string> why = cause.why;
  why.push_back(effect.title);
  add_why(std::move(effect.why), why);
  why.emplace_back(row.ruled_out);
  effect.why = std::move(why);
  effect.title = fmt::format("{}: {}", cause.title, effect.title);
  take_place(cause, effect);
  effect.kind = FindingKind::kFault;
  effect.category = cause.category;
  effect.component = cause.component;
  if (decide_between(cause, effect) && effect.iteration)
    effect.remedy = fmt::format("Take the device out, and roll back to a checkpoint from before step {}.",
                                *effect.iteration);
  if (!cause.remedy.empty()) effect.remedy = cause.remedy;
  effect.fatal = effect.fatal || cause.fatal;
  effect.general = false;
  effect.role = cause.role;
  take_rule(cause, effect);
  effect.action = stronger(effect.action, cause.action);
  effect.restart = restart_of(cause, false);
  effect.restart_after_steps = restart_of(cause, true);
  std::ranges::move(cause.named_hosts, std::back_inserter(effect.named_hosts));
  std::ranges::move(cause.named_devices, std::back_inserter(effect.named_devices));
  add_evidence(std::move(cause), effect);
  if (!pace) return;
  effect.confidence = std::min(effect.confidence, kPaceMost);
  for (FindingSubject& s : effect.subjects) s.strength = std::max(s.strength, effect.confidence);
}

// Joins the findings of one report.
class Joiner {
 public:
  Joiner(std::vector<Finding>& findings, size_t own, TimeNs stopped_ns)
      : all_(findings), own_(own), stopped_ns_(stopped_ns), spent_(findings.size()) {}

  void run() {
    for (size_t i = 0; i < own_; ++i) explain(i);
    for (size_t i = 0; i < own_; ++i)
      if (!all_[i].rule.empty()) confirm(i);
    for (size_t i = 0; i < own_; ++i) confirm(i);
    for (size_t i = own_; i < all_.size(); ++i) spent_[i] = true;
    size_t retained = 0;
    for (size_t i = 0; i < all_.size(); ++i)
      if (!spent_[i]) {
        if (retained != i) all_[retained] = std::move(all_[i]);
        ++retained;
      }
    all_.resize(retained);
  }

 private:
  // Preference: the earliest table row, then the most certain cause, then a plugin's.
  bool is_better(size_t a, const Combination* row_a, size_t b, const Combination* row_b) const {
    if (row_a != row_b) return row_a < row_b;
    if (all_[a].confidence != all_[b].confidence) return all_[a].confidence > all_[b].confidence;
    return false;
  }

  void explain(size_t at) {
    if (spent_[at] || effect_of(all_[at]) == Measured::kNone) return;
    std::optional<size_t> best;
    const Combination* best_row = nullptr;
    std::vector<size_t> causes;
    for (size_t i = 0; i < all_.size(); ++i) {
      const Combination* row =
          i == at || spent_[i] ? nullptr : row_if_explains(all_[i], all_[at], stopped_ns_);
      if (!row) continue;
      causes.push_back(i);
      if (!best || is_better(i, row, *best, best_row)) best = i, best_row = row;
    }
    if (!best || (is_placeless(effect_of(all_[at])) && !of_one_host(causes))) return;
    const Finding lead = all_[*best];
    const bool rule = !lead.rule.empty();
    // A fault that stopped the job is not slowness; earlier slowness supports it.
    if (rule && lead.kind == FindingKind::kFault && lead.fatal && all_[at].symptom == Seen::kSlowdown) {
      join_confirming(std::move(all_[at]), all_[*best]);
      spent_[at] = true;
      return;
    }
    join_explaining(std::move(all_[*best]), *best_row, all_[at]);
    spent_[*best] = true;
    if (rule)
      all_[at].detector = DetectorKind::kNone;
    else
      all_[at].detector = DetectorKind::kPlugin, all_[at].plugin = lead.plugin;
    // Other machine reports about this part, or about parts that depend on it.
    size_t more = 0;
    for (const size_t i : causes) {
      if (spent_[i] || is_rival(all_[i], lead)) continue;
      if (++more > kConfirming) break;
      join_confirming(std::move(all_[i]), all_[at]);
      spent_[i] = true;
    }
  }

  bool of_one_host(const std::vector<size_t>& causes) const {
    return std::ranges::all_of(
        causes, [&](size_t i) { return all_[i].subjects[0].host == all_[causes.front()].subjects[0].host; });
  }

  // A fault of another part of the machine stays separate. A task blocked in the kernel waits for this part.
  static bool is_rival(const Finding& other, const Finding& lead) {
    return other.component != lead.component && other.component != Component::kHostKernel;
  }

  void confirm(size_t at) {
    size_t more = 0;
    for (size_t i = 0; i < all_.size() && more < kConfirming; ++i) {
      if (i == at || spent_[at] || spent_[i] || !confirms(all_[i], all_[at], stopped_ns_)) continue;
      join_confirming(std::move(all_[i]), all_[at]);
      spent_[i] = true;
      ++more;
    }
  }

  std::vector<Finding>& all_;
  const size_t own_;  // index of the first witness: own findings precede it
  const TimeNs stopped_ns_;
  std::vector<bool> spent_;
};

// A planned change: of the training's own numbers, or announced by a line. It needs no action.
bool is_planned_change(const Finding& f) {
  return f.kind == FindingKind::kSupport && f.component == Component::kUserConfig &&
         f.action == ActionKind::kNone && !is_of_known_speaker(f) &&
         (f.detector == DetectorKind::kNumerics || !f.rule.empty());
}

bool follows(const Finding& effect, const Finding& plan) {
  if (effect.iteration && plan.iteration) {
    const int64_t after = *effect.iteration - *plan.iteration;
    return after >= -1 && after <= kPlanSteps;
  }
  if (effect.first_ns == kNoTime || plan.first_ns == kNoTime) return false;
  return plan.first_ns <= effect.first_ns + kSeenNear && effect.first_ns <= plan.last_ns + kSeenNear;
}

// Numbers that move after a planned change are no fault, unless they ended the job or affect one rank alone.
void excuse_planned(std::vector<Finding>& findings) {
  for (Finding& plan : findings) {
    if (!is_planned_change(plan)) continue;
    for (Finding& f : findings) {
      const bool moves = f.kind == FindingKind::kFault && f.symptom == Seen::kNumeric && f.by_no_device;
      if (!moves || f.fatal || !follows(f, plan)) continue;
      f.kind = FindingKind::kSupport;
      f.why.push_back("no fault: " + plan.title);
      add_why(plan.why, f.why);
    }
  }
}

// Several warnings about one host often have one cause.
void weigh_warnings(std::vector<Finding>& findings) {
  std::map<std::string, FindingSubject*> strongest;
  for (Finding& f : findings) {
    if (f.detector != DetectorKind::kPlugin || f.kind != FindingKind::kSupport) continue;
    for (FindingSubject& s : f.subjects) {
      FindingSubject*& best = strongest[s.host.value_or("")];
      if (best == nullptr) {
        best = &s;
        continue;
      }
      FindingSubject* const less = s.strength > best->strength ? std::exchange(best, &s) : &s;
      less->strength = 0;
    }
  }
}

}  // namespace

std::vector<std::string> joined_names(const Finding& effect, const Finding& cause) {
  std::vector<std::string> names;
  add_name(effect, names);
  add_name(cause, names);
  return names;
}

void join_causes(std::vector<Finding>& findings, std::vector<Finding> witnesses, TimeNs stopped_ns) {
  const size_t own = findings.size();
  std::ranges::move(witnesses, std::back_inserter(findings));
  excuse_planned(findings);
  follow_hangs(findings);
  Joiner(findings, own, stopped_ns).run();
  std::erase_if(findings, is_pace);  // by itself it is no finding
  weigh_warnings(findings);
}

}  // namespace culprit::core::fuse
