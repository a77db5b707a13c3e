// The engine: the same inputs in the same order give the same effects and the same report. No clock, file,
// socket or thread: time is an argument, text is parsed by parse() (any thread, one LineParser each) and
// taken by step() (one thread at a time).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/detect/analysis.h"
#include "core/detect/comm/asked.h"
#include "core/detect/comm/parallel.h"
#include "core/detect/comm/vectors.h"
#include "core/detect/rank_exits.h"
#include "core/detect/stall.h"
#include "core/detect/unheard.h"
#include "core/logs/batch.h"
#include "core/logs/line_parser.h"
#include "core/rules/run.h"
#include "model/comm.h"
#include "model/finding.h"
#include "model/flight.h"
#include "model/metric.h"
#include "model/report.h"
#include "model/topology.h"

namespace culprit::core {

struct EngineOptions {
  JobFile job;
  detect::Pool pool;                                // jobs == 0: no history
  detect::Steps steps;                              // all, but for experiments
  std::shared_ptr<rules::Ruleset> rules = nullptr;  // null: none
  rules::FunctionWatch* watch = nullptr;            // borrowed: round each call of a rule's function
  std::vector<std::string> quarantined;  // ids of rules that are not evaluated, and told as problems
  bool live = false;  // whether step() tells findings as they come; otherwise only the report does
  detect::StallOptions hang = {};  // of reports that are given the time
  comm::Parallel parallel = {};    // for what can be done at a time; the report does not depend on it
};

// Sources are numbered from 0 in the order of their SourceOpened.
struct SourceOpened {
  SourceInfo info;
};
struct LogInput {
  logs::LogBatch* batch;  // borrowed for the step; its leading times may be filled in
};
struct ProblemSeen {
  Problem problem;
};
// The shell saw a rule's function take too long. The third time ends it.
struct RuleOverran {
  std::string rule;  // its id
};
// A rank's dump. Of several of one rank the one that was written last counts.
struct FlightInput {
  FlightDump dump;
};
// Records of communication, in any order.
struct CommInput {
  std::string host;                     // that wrote them; empty: unknown
  std::span<const CommRecord> records;  // borrowed for the step
};
// What a host's agent tells of them instead.
struct CommCondensed {
  std::string host;
  const comm::HostVectors* told;                  // borrowed for the step
  const std::vector<comm::RankStreams>* streams;  // all of the session; the same
};
// What ranks told of their numbers (model/metric.h), and what their loops did.
struct MetricInput {
  std::span<const MetricRow> rows;  // borrowed for the step, with all that they point to
  bool afar = false;                // by a host that tells later than others
};
struct EventInput {
  LoopEvent event;  // the same
  bool afar = false;
};
// What was read that is no text of a log: counts for the report.
struct ReadBeside {
  uint64_t bytes = 0, lines = 0;
};
using Input = std::variant<SourceOpened, LogInput, ProblemSeen, RuleOverran, detect::ProgressSeen,
                           detect::PhaseSeen, CommInput, CommCondensed, FlightInput, MetricInput, EventInput,
                           ReadBeside, detect::RankExited>;

// What the shell is asked to do or may want to show: a rule of severity error or fatal fired.
using Effect = std::variant<Finding>;

// A rule that fired, and the event that made it.
struct RuleFired {
  logs::LogPlace place;
  rules::RuleHit hit;
  rules::Firing firing;
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(Engine&&) noexcept;

  // `now` is the time of the batch of inputs, for what depends on the passing of time; kNoTime offline.
  std::vector<Effect> step(std::span<Input> inputs, TimeNs now);

  // For reports from now on.
  void set_hang(const detect::StallOptions& hang);

  // What the line parsers of this engine's batches need to find its rules; null where it has none. For one
  // thread each.
  std::unique_ptr<logs::LineScanner> make_scanner() const;

  // Live: metrics that were told up to then have come, from all hosts, and need not wait for those of other
  // ranks. Whether something was taken.
  bool settle_loop(TimeNs until);

  // What is known so far. May be asked at any time, again and again. With the time, on the clock of step()'s,
  // a job that stopped making progress is reported too. `unheard`: hosts whose silence proves nothing.
  Report report(TimeNs now = kNoTime, const detect::Unheard& unheard = {});
  // Records that hosts' agents are to be asked for, by the reports since the last call.
  std::vector<comm::StepsWanted> take_wanted();
  // Cheap: whether a report at this time may tell of such a stop.
  bool may_stall(TimeNs now) const;
  // Time of the last sign of progress, on step()'s clock; kNoTime: none yet.
  TimeNs progressed_ns() const;
  // As the last report saw it: the job reached its planned end.
  bool ended_well() const;
  // The furthest iteration, as the last report saw it, or heartbeats since.
  std::optional<int64_t> iteration() const;

  // The UUID or serial number of the rank's device, where its loop told it.
  std::optional<std::string> device_name(uint32_t rank) const;

  // Other rules, for what comes from now on. What was found is kept where a rule of the same id and text is
  // there. Scanners made before are of the old rules: make new ones before the next step.
  void replace_rules(std::shared_ptr<rules::Ruleset> rules);

  // The rules that fired, by source and line, with all lines in order of their times.
  std::vector<RuleFired> firings();

  // What was read and is not kept in full, and rules that could not be asked: a sentence each.
  std::vector<std::string> told_drops() const;

  // What a normal pool takes from this job: call when it ended well.
  void add_to(detect::Pool& pool);

  // What was kept of the job's logs; its templates are settled by settled_log().
  const logs::JobLog& log() const;
  const logs::JobLog& settled_log();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::core
