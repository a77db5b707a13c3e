#include "core/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/limits.h"
#include "core/diagnose/correlator.h"
#include "core/diagnose/signs.h"

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

  // What was read and not kept in full: of each source, then of the job as a whole.
  void tell_drops(std::vector<Problem>& out) const {
    for (SourceId id = 0; id < log.sources().size(); ++id)
      if (const uint64_t n = log.cut_lines_of(id); n > 0)
        out.push_back({log.sources()[id].file, std::nullopt,
                       fmt::format("{} lines are longer than {} bytes: the rest of them was not looked at", n,
                                   limits::kLineBytes)});
    for (std::string& what : log.drops().sentences()) out.push_back({"", std::nullopt, std::move(what)});
  }
};

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

std::vector<Effect> Engine::step(std::span<Input> inputs, TimeNs) {
  for (Input& input : inputs) std::visit([this](auto& i) { impl_->take(i); }, input);
  std::vector<Effect> effects;
  const auto& lines = impl_->log.fault_lines();
  for (; impl_->told < lines.size(); ++impl_->told)
    effects.emplace_back(diagnose::finding_of(impl_->log, lines[impl_->told]));
  return effects;
}

Report Engine::report() {
  Report report;
  impl_->log.settle();
  const detect::View view = detect::make_view(impl_->log);
  detect::Analysis analysis = detect::analyse(view, impl_->options.pool, impl_->options.steps);
  if (impl_->options.steps.shapes)
    for (Finding& f : diagnose::find_signs(view, analysis)) analysis.findings.push_back(std::move(f));
  diagnose::correlate(view, analysis, report);
  report.problems = impl_->problems;
  impl_->tell_drops(report.problems);
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
