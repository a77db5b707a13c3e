// The types of formats.md section 7: places, links, diagnoses, the report. Plain values that own all their
// data. Times are nanoseconds since the epoch, kNoTime if unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/principal.h"
#include "base/time.h"
#include "model/code_place.h"

namespace culprit {

enum class Category : uint8_t { kHardware, kUser, kFramework, kPlatform, kUnknown };
enum class Component : uint8_t {
  kGpu,
  kGpuMemory,
  kNvlink,
  kPcie,
  kNetwork,
  kNcclComm,
  kHostMemory,
  kHostKernel,
  kStorage,
  kCpu,
  kCudaRuntime,
  kDriver,
  kFramework,
  kUserCode,
  kUserConfig,
  kUserData,
  kDependency,
  kPlatform,
  kNumeric,
  kUnknown
};
enum class Symptom : uint8_t { kLaunchFailure, kCrash, kHang, kSlowdown, kNumeric, kOther };
enum class Stage : uint8_t { kLaunch, kInit, kIterative, kCheckpoint, kTeardown };
enum class ActionKind : uint8_t { kIsolate, kCheck, kRestart, kRollback, kRetry, kMitigate, kFix, kNone };
enum class About : uint8_t { kJob, kCulprit };
// What must change before the next attempt of the job (formats.md section 7), strictest first.
enum class Restart : uint8_t { kNever, kElsewhere, kOlder, kLater, kSame, kUnknown };
// What slows a job's steps: a part of the machine, or the job as a whole.
enum class SlowPart : uint8_t { kGpu, kHost, kNic, kLink, kNvlink, kSwitch, kJob };
enum class NumericClass : uint8_t { kSdc, kData, kOptimizer, kSchedule, kUnknown };
// Why the ranks of a hang wait (docs/detectors.md).
enum class HangAnswer : uint8_t {
  kUnknown,
  kMissing,     // a rank never joined: stuck in host code, or dead
  kMismatch,    // ranks called different operations or sizes: a program fault
  kUnfinished,  // all ranks joined, but the operation did not finish: device or network
  kLeft,        // a rank was killed, raised an exception or exited
  kNoSingle,    // no single rank: all are late
};
enum class CallPlace : uint8_t { kUnknown, kWaits, kFinished, kElsewhere, kLeft };
enum class Severity : uint8_t { kInfo, kWarning, kError, kFatal };
// Conclusion of a report about the whole job.
enum class Conclusion : uint8_t { kFault, kNoFault, kCannotTell };
// State of a diagnosis: people confirm or refute a diagnosis; the engine withdraws it.
enum class VerdictState : uint8_t { kOpen, kWithdrawn, kConfirmed, kRefuted };
// Activity of a job during a period, derived from its progress and its log lines.
enum class PhaseKind : uint8_t { kStart, kTraining, kEvaluation, kCheckpoint, kRestart, kStall, kEnd };

// The words of formats.md; from_word returns nothing for other words.
std::string_view to_string(Category);
std::string_view to_string(Component);
std::string_view to_string(Symptom);
std::string_view to_string(Stage);
std::string_view to_string(ActionKind);
std::string_view to_string(About);
std::string_view to_string(Restart);
std::string_view to_string(SlowPart);
std::string_view to_string(NumericClass);
std::string_view to_string(HangAnswer);
std::string_view to_string(CallPlace);
std::string_view to_string(Severity);
std::string_view to_string(Conclusion);    // "fault", "no_fault", "cannot_tell"
std::string_view to_string(VerdictState);  // "open", "withdrawn", "confirmed", "refuted"
std::string_view to_string(PhaseKind);
template <class Enum>
std::optional<Enum> from_word(std::string_view word);
// All words of Category, Component, Symptom, ActionKind or Restart, in the order of the enum.
template <class Enum>
std::span<const std::string_view> words_of();

// A host, or devices or ranks on it, with the strength of the suspicion.
struct Suspect {
  std::optional<std::string> host;
  double score = 0;  // 0..1
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> devices;
  std::vector<std::string> why;  // one sentence each
  // Set only in irregularities and hangs: one Suspect per rank.
  bool single = false;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> device;
};

struct Link {
  std::string a, b;
  double score = 0;
};

struct Evidence {
  std::optional<std::string> host;
  std::string file;
  std::optional<uint64_t> line;    // from 1, in the decompressed text
  std::optional<uint64_t> offset;  // bytes, if the evidence is not text
  std::string text;
  TimeNs time_ns = kNoTime;  // by the clock of its line
  std::optional<uint32_t> rank;
  // The only user who wrote the source; in the JSON form where known. Unset for sources of the kernel, root
  // or the daemon's user, and for offline reports.
  std::optional<Principal> uid;
};

// The only authors of the evidence of an accusation, which is therefore no proof. Both empty: an independent
// author confirms the evidence.
struct SaidBy {
  std::vector<Principal> uids;     // users and containers, ascending
  std::vector<std::string> hosts;  // hosts whose logs accuse another host
};
// "said by uid 12002 alone", "hearsay: said by gpu-1, not by the accused host itself".
std::string sentence(const SaidBy& by);
// "uids 1, 2, 3 and 4 more", "pod:3f2a51e8c9d0".
std::string shown_list(const std::vector<Principal>& who);
std::string shown_list(const std::vector<std::string>& names);

struct Confirmation {
  std::string by;  // the person who judged last
  uint64_t hits = 0, right = 0;
  std::string first_by = {};  // first to confirm; for a rule made by `confirm`: its author; empty: none
  TimeNs first_ns = kNoTime;
  // Only in a daemon's report: the judgement of this diagnosis, not of its kind.
  std::optional<bool> right_here = {};
};

struct Action {
  ActionKind kind = ActionKind::kNone;
  std::vector<std::string> targets;
};

// Whether the job may run again, and what must change first; see model/restart.h.
struct RestartAdvice {
  Restart kind = Restart::kUnknown;
  // A specific fault with high confidence: kNever then stops the job at once. If false, one more attempt is
  // advised for every kind.
  bool sure = false;
  std::string why;                   // one sentence without a full stop; empty: nothing is stated
  std::vector<std::string> hosts;    // to exclude, named as in the logs; only with kElsewhere
  std::vector<std::string> devices;  // to exclude: "GPU 5", "0000:9b:00"; on `hosts`, if known
};

struct Diagnosis {
  std::string id;
  std::optional<std::string> rule;
  std::optional<std::string> detector;
  std::vector<std::string>
      found_by;  // detectors, plugins and rules that agree; empty: `rule` or `detector` alone
  About about = About::kJob;
  std::string title;
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Symptom symptom = Symptom::kOther;
  std::optional<Stage> stage;
  std::optional<int64_t> iteration;
  TimeNs time_ns = kNoTime;
  double confidence = 0;
  double step_share = 0;  // share of the step time that a slow part costs, 0..1; 0: unknown
  std::vector<Suspect> hosts;
  std::vector<Link> links;
  std::vector<std::string> why;
  std::vector<Evidence> evidence;
  std::optional<Confirmation> confirmed;
  std::string remedy;
  Action action;
  RestartAdvice restart;
  // Only in a daemon's report.
  std::optional<VerdictState> state;
  std::optional<SaidBy> said_by;  // set if it capped confidence and action
  std::optional<CodePlace> code;  // for an exception: the last frame in the program's own code
  std::string headline;           // see conclude()

  bool is_refuted() const { return state == VerdictState::kRefuted; }
};

struct LinePlace {
  std::optional<std::string> host;
  std::string file;
  uint64_t line = 0;
};

struct Indicating {
  std::string template_text;
  double score = 0;
  uint64_t count = 0;
  std::vector<std::string> why;  // cross-job, spatial, temporal, rule:ID
  std::vector<LinePlace> where;  // at most limits::kPlaces
  // For display only, not in the JSON form.
  std::string sample;
  TimeNs first_ns = kNoTime;
};

// A detector's finding in the form that rules with source "finding" match.
struct SeenFinding {
  std::string text;  // "comm: A host is slow as a whole"
  std::optional<std::string> host;
  std::optional<uint32_t> rank, device;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
};

struct IterationScore {
  int64_t iteration = 0;
  double score = 0;
  std::vector<std::string> hosts;
};

struct ChainLink {
  uint32_t rank = 0;
  std::string op;
  uint64_t comm = 0, seq = 0;
  double wait_ms = 0;
};

struct Irregularity {
  int64_t first_step = 0, last_step = 0;
  double slowdown = 1, cost_ms = 0;
  SlowPart kind = SlowPart::kJob;
  std::vector<Suspect> suspects;
  std::vector<Link> links;
  std::optional<uint64_t> comm;
  std::vector<ChainLink> chain;
  std::string sentence;  // suspects of single steps, if there is no verdict; else empty
};

struct NumericFault {
  int64_t step = 0, detected_at = 0;
  NumericClass kind = NumericClass::kUnknown;  // "class" in the report
  std::vector<uint32_t> ranks;
  std::vector<std::string> metrics;
  double confidence = 0;
  std::string mitigation;
};

struct StackCluster {
  std::vector<std::string> frames;
  std::vector<uint32_t> ranks;
  bool healthy = false;
};

// The daemon's stacks of a job, hung or not: from the newest capture or from several rounds.
struct StackPicture {
  uint32_t sample = 0;     // number of the newest capture; 0: unknown
  uint64_t processes = 0;  // processes with stacks in the newest capture
  uint32_t rounds = 0;     // number of compared captures
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::vector<StackCluster> clusters;  // of the newest capture, most ranks first
  std::vector<std::string> why;        // sentences: the ranks that others waited for in the rounds
};

// Ranks with the same last operation, or the same other place. All rows together are the state of a hang.
struct HangStateRow {
  std::string group, op;
  int64_t seq = -1;  // -1: unknown
  CallPlace place = CallPlace::kUnknown;
  std::string doing;            // a phrase, if more is known: "in dataloader.py:1122", "signal 9"
  std::vector<uint32_t> ranks;  // ascending
};

struct Hang {
  TimeNs since_ns = kNoTime;
  std::vector<StackCluster> clusters;
  std::vector<Suspect> suspects;
  HangAnswer answer = HangAnswer::kUnknown;
  std::string sentence = {};           // which ranks wait in which operation for which ranks; empty: unknown
  std::string op = {}, group = {};     // the operation in which the ranks wait
  int64_t seq = -1;                    // number of the operation within the group; -1: unknown
  std::vector<uint32_t> waiting = {};  // ranks that wait in the operation, ascending
  std::vector<uint32_t> waited_for = {};      // ascending; the ranks at fault in a mismatch
  std::vector<HangStateRow> hang_state = {};  // most ranks first
};

struct Problem {
  std::string file;  // empty: all logs of the job
  std::optional<uint64_t> offset;
  std::string what;
  About about = About::kJob;  // kCulprit: none of the job's data is missing
};

struct JobSummary {
  std::optional<std::string> id;
  uint64_t hosts = 0, ranks = 0, bytes = 0, lines = 0, unplaced_lines = 0, templates = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::optional<int64_t> iteration = {};  // the last iteration that a log line reports
  std::optional<uint32_t> run = {};       // only in a daemon's report
};

// Lines of a host over time, for the heat map: bin i covers [first_ns + i * bin_ns, + bin_ns).
struct HostActivity {
  std::string host;
  std::vector<uint32_t> lines;
  std::vector<uint32_t> indicating;  // the part of `lines` with indicating templates
};
struct JobPhase {
  PhaseKind kind = PhaseKind::kTraining;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
};
struct Activity {
  TimeNs first_ns = kNoTime;
  TimeNs bin_ns = 0;
  std::vector<HostActivity> hosts;  // all hosts, in natural order of their names
  // (time, iteration) of the job's progress, thinned to at most a few hundred points.
  std::vector<std::pair<TimeNs, int64_t>> progress;
  std::vector<JobPhase> phases = {};  // ascending, without overlap; a few hundred at most
  uint64_t hosts_all = 0;             // number of all hosts, if larger than hosts.size()
};

// One step, rank by rank: own work, waiting for others, and moving data. Times are in units of `unit_ms` from
// the step's beginning, on the clock of the first host.
struct StepPicture {
  // A rank's own work and the operation after it. Consecutive short operations form one part, with the
  // operation and the rank of their longest wait.
  struct Part {
    uint32_t own = 0, wait = 0, move = 0;
    uint32_t op = 0;    // index into `ops`
    int64_t last = -1;  // the last rank to arrive; -1: this rank, or unknown
  };
  struct Row {
    uint32_t rank = 0;
    std::optional<std::string> host;
    std::optional<uint32_t> device;
    // ranks of the host that this row represents; `rank` is the one with most waiting for it
    uint32_t of = 1;
    uint32_t begin = 0;     // start of the first part
    double wait_ms = 0;     // waiting of this rank for others
    double awaited_ms = 0;  // longest wait of another rank for this one, summed over operations
    double path_ms = 0;     // time that this rank adds to the step
    std::vector<Part> parts;
  };
  int64_t step = 0;
  double step_ms = 0, unit_ms = 0;
  std::vector<std::string> ops;
  std::vector<Row> rows;         // ascending by rank
  uint64_t ranks = 0;            // all ranks of the step; `rows` represent some of them
  std::vector<ChainLink> chain;  // chain of waits, from the step's end backwards
};

// Communication by step, for display: step times, and each rank's excess over its peers.
struct CommSteps {
  std::vector<int64_t> steps;      // ascending; the other vectors have one entry per step
  std::vector<double> step_ms;     // duration of the step, over all ranks
  std::vector<double> without_ms;  // duration of the step without the excess
  struct Row {
    uint32_t rank = 0;
    std::optional<std::string> host;
    std::optional<uint32_t> device;
    std::vector<float> excess_ms;  // by step: the rank's own time minus its peers' time; NaN: no data
  };
  std::vector<Row> rows;  // the ranks with most excess, ascending by rank; at most limits::kCommRows
  uint64_t ranks = 0;     // of the job; `rows` has some of them
  std::vector<StepPicture> pictures = {};  // the steps most slowed by single ranks, and a normal one
};

// Metrics of the loop over steps, for display.
struct NumericCurves {
  std::vector<int64_t>
      steps;  // ascending, thinned to at most limits::kNumericPoints; other vectors have one entry per step
  struct Curve {
    std::string metric;          // "loss", "grad_norm": reported metrics that formats.md section 4 names
    std::vector<double> median;  // over ranks; NaN: not reported
    std::vector<double> worst;   // value of the rank farthest from the median
    std::vector<uint32_t> not_finite =
        {};  // indices into `steps` with a number that is not finite, ascending
  };
  std::vector<Curve> curves;
  struct Row {
    uint32_t rank = 0;
    std::optional<std::string> host;
    std::vector<float> odd;  // by step: distance from its peers, 0 equal, 1 surely different; NaN: no data
  };
  std::vector<Row> rows;  // the most deviating ranks, ascending by rank; at most limits::kNumericRows
  uint64_t ranks = 0;     // of the job; `rows` has some of them
};

struct Report {
  JobSummary job;
  Conclusion conclusion = Conclusion::kCannotTell;  // see conclude()
  std::string headline;                             // one sentence, the same on every screen
  std::optional<size_t> verdict;                    // index into diagnoses
  std::optional<RestartAdvice> restart;             // for the job; see conclude(). Empty: no fault was found
  std::optional<bool> settled;                      // only in a daemon's report; false: may still change
  std::vector<std::string> missing;
  // failures that are no faults: survived by the job, or after its planned end
  std::vector<std::string> notes;
  std::vector<Diagnosis> diagnoses;
  std::vector<Suspect> suspects;
  std::vector<Indicating> indicating;
  std::vector<IterationScore> iterations;
  std::vector<Irregularity> irregularities;
  std::vector<NumericFault> numerics;
  std::vector<SeenFinding> findings;  // at most limits::kSeenFindings; in the JSON form if not empty
  std::optional<Hang> hang;
  std::optional<StackPicture> stacks;  // of a live job
  std::vector<Problem> problems;
  std::map<std::string, uint64_t> cut;
  // For display; `comm` and `curves` are in the JSON form as "charts".
  Activity activity;
  CommSteps comm;
  NumericCurves curves;
  bool interrupted = false;  // reading was stopped early; the report has the state at that time
};

// Cuts every list of the report to its best `top` entries, and counts the rest in `cut`.
void keep_top(Report& report, size_t top);

}  // namespace culprit
