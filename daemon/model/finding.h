// The result of a detector, in the common form for the correlator: logs, rules, communication, numerics,
// stacks, plugins. A plain value that owns all its data; nothing refers to the detector. Times are
// nanoseconds since the epoch, kNoTime if unknown. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit {

// A root explains later findings; a cascade only reports that something else failed, and never outranks a
// root.
enum class FindingRole : uint8_t { kRoot, kCascade };

enum class FindingKind : uint8_t {
  kFault,      // states a fault by itself: may become a diagnosis
  kNotice,     // what to plan for: a diagnosis below a verdict, where nothing else is found
  kSupport,    // weight against its subjects; other findings give the fault
  kIteration,  // `iteration` was unusual, on its subjects if any
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

// How the process that a finding is about ended, as the finding's rule declares it (`ends`).
enum class ProcessEnd : uint8_t {
  kUnknown,
  kKilled,  // from outside: by the kernel, a limit, a scheduler or a person
};

// What the lines of a rule show of ranks that wait (`observes`). The judge of a hang (core/fuse/hang_state)
// reads the lines themselves; no rule's id or title tells it what they are.
enum class Observes : uint8_t {
  kNothing,
  kCollective,  // a collective operation waits, times out or fails
  kOperations,  // which operations a rank began and completed
  kAbsent,      // which ranks did not join an operation, or joined another
  kFrames,      // the stack of a watchdog, without its message
  kMeeting,     // some did not arrive at a meeting of all
  kMembers,     // who arrived at a meeting of all
  kPeer,        // a peer closed its connection
  kSizes,       // ranks gave different sizes to one operation
  kRefusal,     // a peer refused the connection
  kLoopback,    // a rank offers its peers an address that only its own host has
};
std::string_view to_string(ProcessEnd);  // "killed"; kUnknown: empty
std::string_view to_string(Observes);    // "collective", …; kNothing: empty

// The subject of a finding: a host, a rank or device of it, or the link from it to `peer`. A rank without a
// known host has no host. Names as in logs and job.toml, ranks global, devices local.
struct FindingSubject {
  std::optional<std::string> host;
  std::optional<uint32_t> rank, device;
  std::optional<std::string> peer;
  // Weight against the subject: 1 is one certain line that only this subject has, 3 the most of a single
  // finding, 0 names the subject without further accusation.
  double strength = 0;
};

struct Finding {
  DetectorKind detector = DetectorKind::kNone;
  std::string plugin, id;                  // kPlugin: its name, and the fault that it states
  std::vector<TimeNs> times;               // kPlugin: each occurrence, the latest ones
  std::string rule;                        // id of its rule; empty: none. Decides nothing but what is shown
  ProcessEnd ends = ProcessEnd::kUnknown;  // as its rule declares
  Observes observes = Observes::kNothing;  // likewise
  // Of a fault that several found: each of them, "comm", "plugin:gpu_health", "rule:nvidia.xid.94".
  std::vector<std::string> found_by;
  FindingKind kind = FindingKind::kSupport;
  FindingRole role = FindingRole::kRoot;
  std::vector<FindingSubject> subjects;  // empty: unknown
  bool by_no_device = false;  // a fault of the program or cluster: no host is to blame, whichever shows it
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::optional<int64_t> iteration;  // current training iteration at first_ns
  std::vector<Evidence> evidence;    // the earliest ones, by time; the first gives the place of the finding
  uint64_t lines = 0;                // total; `evidence` has the first of them
  std::vector<std::string> why;      // a sentence for each reason; shown for a subject and for a diagnosis

  // kIteration: how unusual it was. kFault: probability that the job has this fault. 0..1
  double confidence = 0;

  // kFault: content of the diagnosis, as far as the detector knows.
  std::string title;
  bool fatal = false;         // no job continues after it
  bool general = false;       // gives way to any other root
  bool ends_process = false;  // a process ended with it: an uncaught exception
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Symptom symptom = Symptom::kOther;
  ActionKind action = ActionKind::kNone;
  std::string remedy;
  // What must differ for the next attempt, and the same once the job has made progress. Empty: by category
  // and action, and the same as before.
  std::optional<Restart> restart, restart_after_steps;
  // Who the lines name as the ones at fault, as they name them; `subjects` also has those known otherwise.
  std::vector<std::string> named_hosts, named_devices;

  std::optional<CodePlace> code;  // of an exception: the last frame in the program's own code
  SaidBy said_by;          // empty: the kernel, root or the accused host said it too, or it is not known
  bool as_kernel = false;  // every line has the form of a kernel message
};

// Whether a process was ended from outside.
inline bool is_kill(const Finding& f) { return f.ends == ProcessEnd::kKilled; }

// Whether it takes a process with it: a kill, or the host's memory.
inline bool takes_process(const Finding& f) { return is_kill(f) || f.component == Component::kHostMemory; }

// The finding becomes one of the other's rule.
inline void take_rule(const Finding& from, Finding& to) {
  to.rule = from.rule;
  to.ends = from.ends;
  to.observes = from.observes;
}

}  // namespace culprit
