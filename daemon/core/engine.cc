#include "core/engine.h"

#include <algorithm>
#include <tuple>

#include "core/diagnose/correlator.h"

namespace culprit::core {

struct Engine::Impl {
  EngineOptions options;
  logs::JobLog log;
  std::vector<Problem> problems;
  size_t told = 0;  // fault lines already given as effects

  explicit Impl(EngineOptions o) : options(std::move(o)), log(options.job) {
    for (const detect::PoolForm& f : options.pool.forms) log.add_pool_form(f.hash, f.text);
  }

  void take(SourceOpened& input) { log.open_source(input.info); }
  void take(LogInput& input) { log.add(*input.batch); }
  void take(ProblemSeen& input) { problems.push_back(std::move(input.problem)); }

  FindingSeen finding(const logs::FaultLine& line) const {
    FindingSeen out;
    if (line.shape.kind == logs::ShapeKind::kFault)
      out.title = logs::fault_shapes()[line.shape.fault].title;
    else
      out.title = line.text;
    const logs::WriterKey& key = log.writers()[line.place.writer].key;
    if (!key.host.empty()) out.evidence.host = key.host;
    out.evidence.file = log.sources()[line.place.source].file;
    out.evidence.line = line.place.line;
    out.evidence.text = line.text;
    out.evidence.time_ns = line.place.time_ns;
    return out;
  }
};

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

std::vector<Effect> Engine::step(std::span<Input> inputs, TimeNs) {
  for (Input& input : inputs) std::visit([this](auto& i) { impl_->take(i); }, input);
  std::vector<Effect> effects;
  const auto& lines = impl_->log.fault_lines();
  for (; impl_->told < lines.size(); ++impl_->told) effects.emplace_back(impl_->finding(lines[impl_->told]));
  return effects;
}

Report Engine::report() {
  Report report;
  impl_->log.settle();
  const detect::View view = detect::make_view(impl_->log);
  const detect::Analysis analysis = detect::analyse(view, impl_->options.pool, impl_->options.steps);
  diagnose::correlate(view, analysis, impl_->options.steps, report);
  report.problems = impl_->problems;
  // Threads tell them as they come.
  std::sort(report.problems.begin(), report.problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.offset, a.what) < std::tie(b.file, b.offset, b.what);
  });
  return report;
}

void Engine::add_to(detect::Pool& pool) {
  impl_->log.settle();
  pool.add(impl_->log);
}

const logs::JobLog& Engine::log() const { return impl_->log; }

const logs::JobLog& Engine::settled_log() {
  impl_->log.settle();
  return impl_->log;
}

}  // namespace culprit::core
