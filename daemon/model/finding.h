// The common form of detector results for the correlator: logs, rules, communication, numerics, stacks,
// plugins. A plain value that owns all its data, independent of the detector. Times are nanoseconds since the
// epoch, kNoTime if unknown. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit {

// A root explains later findings. A cascade only reports a failure elsewhere and never outranks a root.
enum class FindingRole : uint8_t { kRoot, kCascade };

enum class FindingKind : uint8_t {
  kFault,      // states a fault: may become a diagnosis
  kNotice,     // advice for planning: a diagnosis that is no verdict, if nothing else is found
  kSupport,    // adds weight against its subjects; other findings state the fault
  kIteration,  // an unusual `iteration`, on its subjects if any
};

// The detectors of formats.md section 7. kNone: a rule made the finding.
enum class DetectorKind : uint8_t {
  kNone,
  kSpatial,
  kTemporal,
  kCrossJob,
  kSilence,
  kTraceback,
  kComm,
  kFlight,
  kNumerics,
  kStacks,
  kPlugin
};
std::string_view to_string(DetectorKind);  // "spatial", "cross-job", …; kNone: empty

// How the finding's process ended, as declared by its rule (`ends`).
enum class ProcessEnd : uint8_t {
  kUnknown,
  kKilled,  // from outside: by the kernel, a limit, a scheduler or a person
};

// What a rule's lines show about waiting ranks (`observes`). The hang judge (core/fuse/hang_state) reads the
// lines and uses this kind, never a rule's id or title.
enum class Observes : uint8_t {
  kNothing,
  kCollective,  // a collective operation waits, times out or fails
  kOperations,  // which operations a rank began and completed
  kAbsent,      // which ranks did not join an operation, or joined another
  kFrames,      // the stack of a watchdog, without its message
  kMeeting,     // some ranks did not arrive at a barrier or rendezvous
  kMembers,     // ranks that arrived at a barrier or rendezvous
  kPeer,        // a peer closed its connection
  kSizes,       // ranks gave different sizes to one operation
  kRefusal,     // a peer refused the connection
  kLoopback,    // a rank advertises an address that only its own host can reach
};
std::string_view to_string(ProcessEnd);  // "killed"; kUnknown: empty
std::string_view to_string(Observes);    // "collective", …; kNothing: empty

// The subject of a finding: a host, a rank or device of it, or the link from it to `peer`. A rank without a
// known host has no host. Names are as in logs and job.toml; ranks are global, devices local.
struct FindingSubject {
  std::optional<std::string> host;
  std::optional<uint32_t> rank, device;
  std::optional<std::string> peer;
  // Weight against the subject: 1 is one certain line that only this subject has; 3 is the maximum of one
  // finding; 0 names the subject without accusing it.
  double strength = 0;
};

struct Finding {
  DetectorKind detector = DetectorKind::kNone;
  std::string plugin, id;                  // kPlugin: the plugin's name and the fault that it reports
  std::vector<TimeNs> times;               // kPlugin: times of the latest occurrences
  std::string rule;                        // id of its rule; empty: none. For display only
  ProcessEnd ends = ProcessEnd::kUnknown;  // as its rule declares
  Observes observes = Observes::kNothing;  // as its rule declares
  // The detectors, plugins and rules that found one fault: "comm", "plugin:gpu_health", "rule:nvidia.xid.94".
  std::vector<std::string> found_by;
  FindingKind kind = FindingKind::kSupport;
  FindingRole role = FindingRole::kRoot;
  std::vector<FindingSubject> subjects;  // empty: unknown
  bool one_of = false;                   // one of the subjects is at fault; which one is not known
  bool by_no_device = false;  // a fault of the program or cluster: no host is at fault, even if it reports it
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  bool dated = true;  // false: first_ns is the time of an earlier line, so the fault may be later
  std::optional<int64_t> iteration;  // current training iteration at first_ns
  std::vector<Evidence> evidence;    // earliest lines, by time; the first gives the finding's place
  uint64_t lines = 0;                // total number of lines; `evidence` has the first
  std::vector<std::string> why;      // one sentence per reason; shown with a subject and a diagnosis

  // kIteration: how unusual the iteration was. kFault: probability that the job has this fault. 0..1.
  double confidence = 0;
  // Of a slow part: its share of all step time that was measured, 0..1; 0: unknown.
  double step_share = 0;

  // kFault: content of the diagnosis, as far as known.
  std::string title;
  bool fatal = false;         // no job continues after this fault
  bool general = false;       // any other root outranks this finding
  bool ends_process = false;  // the fault ended a process: an uncaught exception
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Symptom symptom = Symptom::kOther;
  ActionKind action = ActionKind::kNone;
  std::string remedy;
  // What must change before the next attempt, and what if the job has made progress. `restart` empty: by
  // category and action; `restart_after_steps` empty: as `restart`.
  std::optional<Restart> restart, restart_after_steps;
  // Hosts and devices that the lines name as faulty, as spelled there; `subjects` also has those known from
  // elsewhere.
  std::vector<std::string> named_hosts, named_devices;
  // Hosts that a runtime reports as lost: left out if a hardware fault of the job names no host or device.
  std::vector<std::string> lost_hosts;

  std::optional<CodePlace> code;  // for an exception: the last frame in the program's own code
  SaidBy said_by;                 // empty: the kernel, root or the accused host reports it too, or unknown
  bool as_kernel = false;         // every line has the form of a kernel message
};

// Whether the process was killed from outside.
inline bool is_kill(const Finding& f) { return f.ends == ProcessEnd::kKilled; }

// Whether the finding implies the end of a process: a kill, or exhausted host memory.
inline bool takes_process(const Finding& f) { return is_kill(f) || f.component == Component::kHostMemory; }

// Gives finding `to` the rule of finding `from`.
inline void take_rule(const Finding& from, Finding& to) {
  to.rule = from.rule;
  to.ends = from.ends;
  to.observes = from.observes;
}

}  // namespace culprit
