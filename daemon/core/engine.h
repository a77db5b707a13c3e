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
#include "core/logs/batch.h"
#include "core/logs/line_parser.h"
#include "model/finding.h"
#include "model/report.h"
#include "model/topology.h"

namespace culprit::core {

struct EngineOptions {
  JobFile job;
  detect::Pool pool;    // jobs == 0: no history
  detect::Steps steps;  // all, but for experiments
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
using Input = std::variant<SourceOpened, LogInput, ProblemSeen>;

// What the shell is asked to do or may want to show: a line of a known kind of fault was seen.
using Effect = std::variant<Finding>;

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(Engine&&) noexcept;

  // `now` is the time of the batch of inputs, for what depends on the passing of time; kNoTime offline.
  std::vector<Effect> step(std::span<Input> inputs, TimeNs now);

  // What is known so far. May be asked at any time, again and again.
  Report report();

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
