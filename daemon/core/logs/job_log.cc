#include "core/logs/job_log.h"

#include <utility>

#include "core/logs/job_events.h"
#include "core/logs/job_progress.h"
#include "core/logs/job_templates.h"
#include "core/logs/job_writers.h"

namespace culprit::logs {

struct JobLog::Impl {
  JobFile job;
  std::vector<SourceInfo> sources;
  JobWriters writers;
  JobTemplates templates;
  JobProgress progress;
  JobEvents events{writers, templates, progress};
  uint64_t lines = 0, bytes = 0;
};

JobLog::JobLog(const JobFile& job) : impl_(std::make_unique<Impl>()) { impl_->job = job; }
JobLog::~JobLog() = default;

SourceId JobLog::open_source(const SourceInfo& info) {
  impl_->events.open_source(info);
  impl_->sources.push_back(info);
  return static_cast<SourceId>(impl_->sources.size() - 1);
}

void JobLog::add_pool_form(uint64_t hash, std::string_view form) {
  impl_->templates.add_pool_form(hash, form);
}

void JobLog::add(LogBatch& batch) {
  impl_->events.add(batch);
  impl_->lines += batch.lines.size() - batch.skipped_lines;
  impl_->bytes += batch.range_bytes;
}

void JobLog::mark_alarm(uint32_t form) { impl_->templates.mark_alarm(form); }

void JobLog::renumber_rules(const std::vector<uint32_t>& to) { impl_->events.renumber_rules(to); }

void JobLog::settle() {
  impl_->events.trim();
  impl_->templates.settle(impl_->events.quoted());
  impl_->writers.resolve(impl_->job);
  impl_->progress.settle();
}

const std::vector<SourceInfo>& JobLog::sources() const { return impl_->sources; }
uint64_t JobLog::lines_of(SourceId source) const { return impl_->events.counts(source).lines; }
bool JobLog::steps_below(const LogPlace& place) const { return impl_->progress.steps_below(place); }
int64_t JobLog::step_since_restart(const LogPlace& place) const {
  return impl_->progress.step_since_restart(place);
}
std::vector<std::string> JobLog::reported_since_progress() const {
  return impl_->events.reported_since_progress();
}
const LastTrouble& JobLog::last_trouble_of(SourceId source) const {
  return impl_->events.last_trouble(source);
}
uint64_t JobLog::events_of(SourceId source) const { return impl_->events.counts(source).events; }
const std::vector<WriterStats>& JobLog::writers() const { return impl_->writers.all(); }
const std::vector<TemplateStats>& JobLog::templates() const { return impl_->templates.all(); }
const std::vector<ClusterId>& JobLog::clusters() const { return impl_->templates.clusters(); }
const Miner& JobLog::miner() const { return impl_->templates.miner(); }
const std::vector<JobLog::FormStats>& JobLog::forms() const { return impl_->templates.forms(); }
const std::vector<uint32_t>& JobLog::last_forms() const { return impl_->events.last_forms(); }
const Iterations& JobLog::iterations() const { return impl_->progress.iterations(); }
const Numbers& JobLog::numbers() const { return impl_->progress.numbers(); }
const std::vector<LogSample>& JobLog::last_progress() const { return impl_->progress.last_lines(); }
const std::vector<RuleLine>& JobLog::rule_lines() const {
  return impl_->events.rule_lines().of_rules().lines();
}
const std::vector<RuleLine>& JobLog::uncaught() const {
  return impl_->events.rule_lines().uncaught().lines();
}
uint64_t JobLog::rule_lines_added() const { return impl_->events.rule_lines().of_rules().added(); }
std::span<const RuleLine> JobLog::rule_lines_since(uint64_t added) const {
  return impl_->events.rule_lines().of_rules().since(added);
}
uint64_t JobLog::dropped_of_rule(uint32_t rule) const {
  const RuleLines& lines = impl_->events.rule_lines();
  return rule == kNoRule ? lines.uncaught().dropped() : lines.of_rules().dropped_of(rule);
}
const std::vector<ActivityBins>& JobLog::activity() const { return impl_->writers.activity(); }
uint64_t JobLog::lines() const { return impl_->lines; }
uint64_t JobLog::bytes() const { return impl_->bytes; }
uint64_t JobLog::events() const { return impl_->templates.events(); }
uint64_t JobLog::unplaced_lines() const { return impl_->writers.unplaced_lines(); }

Drops JobLog::drops() const {
  Drops all = impl_->writers.drops();
  all += impl_->templates.drops();
  all += impl_->progress.iterations().drops();
  all += impl_->events.drops();
  return all;
}

std::pair<TimeNs, TimeNs> JobLog::span_of(SourceId source) const {
  const SourceCounts& counts = impl_->events.counts(source);
  return {counts.first_ns, counts.last_ns};
}

uint64_t JobLog::cut_lines_of(SourceId source) const { return impl_->events.counts(source).cut_lines; }
TimeNs JobLog::first_ns() const { return impl_->events.first_ns(); }
TimeNs JobLog::last_ns() const { return impl_->events.last_ns(); }
const JobFile& JobLog::job() const { return impl_->job; }
std::string JobLog::host_called(std::string_view name) const { return impl_->writers.host_called(name); }

}  // namespace culprit::logs
