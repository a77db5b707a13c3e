// The analysis engine. Deterministic: equal inputs in equal order give equal effects and an equal report. It
// uses no clock, file, socket or thread; time is an argument. parse() may run on any thread with one
// LineParser per thread; step() runs on one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/detect/comm/parallel.h"
#include "core/detect/comm/record_requests.h"
#include "core/detect/comm/step_summary.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/rank_exits.h"
#include "core/detect/logs/save_watch.h"
#include "core/detect/logs/stall.h"
#include "core/detect/logs/unheard.h"
#include "core/detect/ras/ras_states.h"
#include "core/logs/batch.h"
#include "core/logs/line_parser.h"
#include "core/plugin_findings.h"
#include "core/rules/run.h"
#include "model/comm.h"
#include "model/finding.h"
#include "model/flight.h"
#include "model/metric.h"
#include "model/report.h"
#include "model/stack.h"
#include "model/topology.h"

namespace culprit::core::fuse {
class PassObserver;  // core/fuse/pass.h
}
namespace culprit::core {

struct EngineOptions {
  JobFile job;
  detect::Pool pool = {};                           // jobs == 0: no history
  detect::Steps steps = {};                         // all, except in experiments
  std::shared_ptr<rules::Ruleset> rules = nullptr;  // null: none
  rules::FunctionWatch* watch = nullptr;            // borrowed; called around each call of a rule's function
  std::vector<std::string> quarantined = {};  // ids of rules that are not evaluated, reported as problems
  bool live = false;                     // step() emits findings at once; else only report() returns them
  detect::StallOptions hang = {};        // for reports with a time
  comm::Parallel parallel = {};          // for parallel work; the report does not depend on it
  fuse::PassObserver* passes = nullptr;  // borrowed; observes how a report is made
};

// Sources are numbered from 0 in the order of their SourceOpened.
struct SourceOpened {
  SourceInfo info;
};
struct LogInput {
  logs::LogBatch* batch;  // borrowed for the step; step() may fill in its leading times
};
struct ProblemSeen {
  Problem problem;
};
// The shell measured that a function of a rule exceeded its time. The third overrun disables the rule.
struct RuleOverran {
  std::string rule;  // the rule's id
};
// The dump of one rank. The newest dump of a rank counts.
struct FlightInput {
  FlightDump dump;
};
// The stacks of one process. The newest ones of a process count.
struct StackInput {
  StackDump dump;
};
// Communication records, in any order.
struct CommInput {
  std::string host;                     // the writer's host; empty: unknown
  std::span<const CommRecord> records;  // borrowed for the step
};
// Summaries from a host's agent in place of the records.
struct CommCondensed {
  std::string host;
  const comm::HostVectors* reported;              // borrowed for the step
  const std::vector<comm::RankStreams>* streams;  // of the whole session; borrowed for the step
};
// Metrics of ranks (model/metric.h), and events of their loops.
struct MetricInput {
  std::span<const MetricRow> rows;  // borrowed for the step, with all names and values
  bool remote = false;              // from a host that reports later than others
};
struct EventInput {
  LoopEvent event;  // borrowed for the step
  bool remote = false;
};
// Counts of read data that is not log text, for the report.
struct NonLogRead {
  uint64_t bytes = 0, lines = 0;
};
// Live: the user behind data other than log text, once per user; none: root, the daemon's user, or unknown.
struct ReceivedTraceCount {
  enum class Of : uint8_t { kComm, kLoop, kDumps, kStacks } of = Of::kComm;
  std::optional<Principal> user;
};
using Input = std::variant<SourceOpened, LogInput, ProblemSeen, RuleOverran, detect::ProgressSeen,
                           detect::PhaseSeen, CommInput, CommCondensed, FlightInput, MetricInput, EventInput,
                           NonLogRead, detect::RankExited, ReceivedTraceCount, FindingInput, ras::RasInput,
                           StackInput, StackRefusal>;

// Output of a step: a rule of severity error or fatal fired.
using Effect = std::variant<Finding>;

// A rule that matched, with its event; or a rule whose text an event only mentions, which is no match.
struct RuleFired {
  logs::LogPlace place;
  rules::RuleHit hit;
  rules::Firing firing;
  bool mentioned = false;
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(Engine&&) noexcept;

  // `now` is the time of the inputs; kNoTime offline.
  std::vector<Effect> step(std::span<Input> inputs, TimeNs now);

  // Applies to later reports.
  void set_hang(const detect::StallOptions& hang);

  // A scanner for the line parser of one thread, to find this engine's rules; null without rules.
  std::unique_ptr<logs::LineScanner> make_scanner() const;

  // Live: all hosts' metrics reported until `until` have arrived, so rows need not wait for other ranks.
  // Returns whether rows were processed.
  bool settle_loop(TimeNs until);

  // The findings so far; may be called at any time and repeatedly. With `now`, on the clock of step(), the
  // report also covers a job that stopped making progress. `unheard`: hosts whose silence proves nothing.
  Report report(TimeNs now = kNoTime, const detect::Unheard& unheard = {});
  // Records to request from agents, collected by the reports since the last call.
  std::vector<comm::StepsWanted> drain_requests();
  // Cheap check: whether a report at this time may contain a standstill.
  bool may_stall(TimeNs now) const;
  // Time of the last sign of progress, on step()'s clock; kNoTime: none yet.
  // The highest number among captures that gave stacks; 0: none.
  uint32_t last_capture() const;
  TimeNs progressed_ns() const;
  // Whether the job reached its planned end, according to the last report.
  bool ended_well() const;
  // The highest iteration of the last report or of later heartbeats.
  std::optional<int64_t> iteration() const;

  // Finished checkpoints, and what the loop did with advice.
  const detect::SaveWatch& saves() const;

  // The UUID or serial number of the rank's device, if its loop reported one.
  std::optional<std::string> device_name(uint32_t rank) const;

  // Uses other rules for later inputs. Findings stay for rules of equal id and text. Earlier scanners have
  // the old rules: create new ones before the next step.
  void replace_rules(std::shared_ptr<rules::Ruleset> rules);

  // The rules that fired, by source and line, with all lines in order of their times.
  std::vector<RuleFired> firings();

  // A sentence for each kind of data that was not kept in full, and for each rule that could not run.
  std::vector<std::string> drop_sentences() const;

  // Adds this job to a normal pool; call after a good end.
  void add_to(detect::Pool& pool);
  // Uses this pool for later reports in place of EngineOptions::pool.
  void use_pool(detect::Pool pool);

  // The kept data of the job's logs; settled_log() settles its templates.
  const logs::JobLog& log() const;
  const logs::JobLog& settled_log();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::core
