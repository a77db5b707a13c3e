#include "app/jobs/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/hash.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

core::EngineOptions engine_options(const std::string& id, const LiveOptions& options) {
  core::EngineOptions out;
  out.job.id = id;
  out.pool = options.pool;
  out.rules = options.rules;
  out.live = true;
  out.hang = options.hang;
  out.watch = options.watch;
  out.quarantined = options.quarantined;
  return out;
}

// Identifies a diagnosis across reports.
std::string key_of(const Diagnosis& d) {
  if (d.rule) return "rule:" + *d.rule;
  std::string out = fmt::format("{}:{}", d.detector.value_or(""), to_string(d.symptom));
  // Numeric faults that begin at different steps are separate faults.
  if (d.detector == to_string(DetectorKind::kNumerics) && d.iteration)
    out += fmt::format(":{}", *d.iteration);
  return out;
}

// Gives diagnoses ids that are constant for the job, also after restarts. The report numbers diagnoses by
// their order, which changes while the job runs.
void name_diagnoses(uint32_t run, Report& report) {
  std::set<std::string> names;
  for (Diagnosis& d : report.diagnoses) {
    uint64_t hash = hash64(key_of(d)) + run;  // each run has its own
    do d.id = fmt::format("d{:08x}", hash++ & 0xffffffff);
    while (!names.insert(d.id).second);
  }
}

std::optional<std::string> announced_verdict(const Announcer& announcer) {
  return announcer.verdict().empty() ? std::nullopt : std::optional(announcer.verdict());
}

}  // namespace

LiveJob::LiveJob(std::string id, uint32_t run, const LiveOptions& options, LiveParsing& parsing)
    : options_(options),
      engine_(std::make_unique<core::Engine>(engine_options(id, options))),
      sink_(*engine_),
      sources_(sink_, parsing),
      events_(summary_, agents_) {
  summary_.id = std::move(id);
  summary_.run = run;
}

void LiveJob::note(const LiveStream& stream, const Piece& piece, TimeNs now) {
  if (summary_.first_ns == kNoTime) summary_.first_ns = now;
  local_ns_ = std::max(local_ns_, now);
  if (shows_life(stream.info, piece)) summary_.last_ns = std::max(summary_.last_ns, now);
  summary_.bytes += piece.bytes.size();
  dirty_ = true;
  streams_.note(stream.info, piece);
}

void LiveJob::ingest(const LiveStream& stream, const Piece& piece, TimeNs now) {
  note(stream, piece, now);
  const bool ring_ends = stream.info.kind == OriginKind::kRing && piece.ends;
  if (sources_.ingest(stream, piece, now) || ring_ends) due.urgent = true;
}

void LiveJob::settle(TimeNs now) {
  if (sources_.settle_dumps(now)) due.urgent = dirty_ = true;
  if (engine_ && engine_->settle_loop(agents_.known_until(now))) dirty_ = true;
  if (sources_.settle_files(now).news) due.urgent = dirty_ = true;
}

void LiveJob::ingest_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) {
  note(stream, piece, now);
  if (piece.gap) sources_.ingest_gap(stream, piece, now);
  sources_.ingest_trace(stream, batch, now);
  said_end_ = said_end_ || batch.ends;
  said_failed_ = said_failed_ || batch.failed;
  said_success_ = said_success_ || batch.succeeded;
  if (batch.ends) due.end_ns = now + kLastWords;
}

void LiveJob::ingest_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now) {
  if (lines.empty()) return;
  dirty_ = true;
  sources_.ingest_kernel(stream, lines, now);
}

std::optional<SourceId> LiveJob::open_remote(const std::string& host, SourceInfo info, TimeNs at) {
  if (info.host) agents_.note_host(host, *info.host);
  const JobAgents::SourceKey key(host, info.file, info.kind);
  if (const auto known = agents_.source(key)) return known;
  const auto here = sources_.open_other(std::move(info), at);
  if (here) agents_.add_source(key, *here);
  return here;
}

void LiveJob::ingest_remote(const std::string& host, core::Input input, TimeNs at) {
  if (const auto* lines = std::get_if<core::LogInput>(&input))
    for (const logs::WriterKey& writer : lines->batch->writers) agents_.note_host(host, writer.host);
  dirty_ = true;
  if (std::holds_alternative<core::FlightInput>(input) || std::holds_alternative<detect::RankExited>(input))
    due.urgent = true;
  const TimeNs before = engine_ ? engine_->progressed_ns() : kNoTime;
  sources_.feed(std::move(input), at);
  if (engine_ && engine_->progressed_ns() != before) agents_.note_progress(host);
}

void LiveJob::agent_away(const std::string& host, TimeNs since) {
  if (agents_.hosts().away(host, since) && running()) dirty_ = due.urgent = true;
}

void LiveJob::remote_ends(bool failed, TimeNs at, TimeNs now) {
  said_end_ = true;
  said_failed_ = said_failed_ || failed;
  end_reported_ns_ = std::max(end_reported_ns_, at);
  due.end_ns = now;
}

void LiveJob::on_agent_report(const std::string& host, TimeNs until, TimeNs now, bool active) {
  agents_.hosts().on_report(host, until, now, active);
  if (!active) return;
  if (summary_.first_ns == kNoTime) summary_.first_ns = until;
  summary_.first_ns = std::min(summary_.first_ns, until);
  summary_.last_ns = std::max(summary_.last_ns, until);
}

TimeNs LiveJob::silent_since() const {
  const JobHosts& hosts = agents_.hosts();
  return hosts.empty() ? summary_.last_ns : std::max(hosts.active_ns(), local_ns_);
}

bool LiveJob::emit_findings(TimeNs now, std::vector<LiveEvent>& out) {
  return events_.add_findings(sources_.take_findings(), now, out);
}

void LiveJob::make_report(TimeNs now, bool hangs, bool at_once, std::vector<LiveEvent>& out) {
  if (!engine_) return;
  const JobAgents::Away away = agents_.hosts().away(now);
  const bool may_hang = hangs && (is_local() || agents_.hears_progress(away));
  report_ = engine_->report(may_hang ? agents_.known_until(now) : kNoTime, agents_.unheard(away));
  report_away(away, report_);
  report_.activity = {};  // only shown by offline readers of files
  sources_.report_broken(report_);
  dirty_ = false;
  name_diagnoses(summary_.run, report_);
  apply_judgements(judgements_, report_);
  events_.add_diagnoses(report_, engine_.get(), {now, at_once}, out);
  for (comm::StepsWanted& wanted : engine_->drain_requests()) {
    LiveEvent e = events_.event(LiveEventKind::kStepsWanted, now);
    e.hosts = std::move(wanted.hosts);
    e.steps = std::move(wanted.steps);
    out.push_back(std::move(e));
  }
}

// Applies to ended runs too: the API still serves the report.
void LiveJob::judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out) {
  judgements_ = judgements;
  apply_judgements(judgements_, report_);
  events_.add_diagnoses(report_, engine_.get(), {now, true}, out);
  if (!running()) summary_.verdict = announced_verdict(announcer());
}

bool LiveJob::end(TimeNs now, detect::Pool& pool, std::vector<LiveEvent>& out) {
  sources_.end(now);
  emit_findings(now, out);
  engine_->settle_loop(std::numeric_limits<TimeNs>::max());
  // Stopping a job that hangs does not clear the hang.
  make_report(now, report_.hang.has_value(), true, out);
  const bool reached = engine_->ended_well() || said_end_;
  const bool nothing = report_.diagnoses.empty() && report_.suspects.empty() && report_.missing.empty();
  const bool well = reached && nothing && !said_failed_ && engine_->log().events() > 0;
  const auto& healthy = options_.healthy;
  const bool learned = (well || std::find(healthy.begin(), healthy.end(), summary_.id) != healthy.end()) &&
                       engine_->log().events() > 0;
  if (learned) engine_->add_to(pool);
  summary_ = summary();
  summary_.well = well;
  // A job did not fail if all its processes exited with 0, even with diagnoses.
  const bool failed = said_failed_ || (!said_success_ && !report_.diagnoses.empty());
  summary_.state = failed ? JobState::kFailed : JobState::kEnded;
  engine_.reset();
  LiveEvent e = events_.event(LiveEventKind::kJobEnded, now);
  e.content = JobChange{summary_, std::make_shared<const Report>(report_)};
  e.last_ns = summary_.last_ns;
  out.push_back(std::move(e));
  if (learned) out.push_back(events_.event(LiveEventKind::kPoolChanged, now));
  return learned;
}

void LiveJob::replace_rules(const std::shared_ptr<rules::Ruleset>& rules) {
  if (!engine_) return;
  engine_->replace_rules(rules);
  dirty_ = true;
}

void LiveJob::set_hang(const detect::StallOptions& hang) {
  if (engine_) engine_->set_hang(hang);
}

void LiveJob::overran(const std::string& rule) {
  if (!engine_) return;
  core::Input input = core::RuleOverran{rule};
  engine_->step({&input, 1}, kNoTime);
}

LiveJobSummary LiveJob::summary() const {
  LiveJobSummary out = summary_;
  if (!running()) return out;
  out.hangs = report_.hang.has_value();
  out.hosts = std::max<uint64_t>(report_.job.hosts, agents_.hosts().size());
  out.ranks = report_.job.ranks;
  out.sources = sources_.size();
  out.lines = engine_->log().lines();
  out.iteration = engine_->iteration();
  out.verdict = announced_verdict(announcer());
  return out;
}

std::map<StreamId, uint64_t> LiveJob::lines_of_streams() const {
  std::map<StreamId, uint64_t> out;
  for (const StreamId stream : streams_.ids())
    if (const auto source = sources_.source_of(stream))
      if (const uint64_t lines = engine_->log().lines_of(*source); lines > 0) out[stream] = lines;
  return out;
}

}  // namespace culprit::app
