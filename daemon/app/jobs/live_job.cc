#include "app/jobs/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "base/hash.h"
#include "model/headline.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

core::EngineOptions engine_options(const std::string& id, const LiveOptions& options) {
  core::EngineOptions out;
  out.job.id = id;
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
  if (out.starts_with("plugin:")) out += ":" + d.title;  // a plugin may report several faults
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

void note_attempts(std::optional<JobAttempts> attempts, TimeNs now, LiveJob::Due& due) {
  if (!attempts) return;
  attempts->at_ns = now;
  due.attempts = std::move(attempts);
}

}  // namespace

LiveJob::LiveJob(std::string id, uint32_t run, const Parts& parts)
    : options_(parts.options),
      pools_(parts.pools),
      engine_(std::make_unique<MeteredEngine>([&] { return engine_options(id, parts.options); })),
      sink_(*engine_),
      sources_(id, sink_, parts.parsing),
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
  const auto before = pool_owner_.name();
  pool_owner_.add(stream.info, piece, options_.uid);
  on_owner(before);
}

void LiveJob::add_remote_owner(std::optional<Principal> uid) {
  const auto before = pool_owner_.name();
  pool_owner_.add_remote(uid);
  on_owner(before);
}

// Adds the forms of the owner's pools to the engine before the owner's first lines.
void LiveJob::on_owner(const std::optional<std::string>& before) {
  const auto now = pool_owner_.name();
  if (now != before && engine_) use_kinds(pools_.kinds(now.value_or("")));
}

void LiveJob::use_kinds(std::vector<uint64_t> kinds) {
  if (kinds == kinds_ && pools_version_ == pools_.version()) return;
  kinds_ = std::move(kinds);
  pools_version_ = pools_.version();
  engine_->use_pool(pools_.merged(kinds_));
  dirty_ = true;
}

void LiveJob::choose_pool() {
  if (engine_) use_kinds(pools_.kinds(pool_owner_.name().value_or(""), &engine_->read().log()));
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
  note_attempts(std::move(batch.attempts), now, due);
  sources_.ingest_trace(stream, batch, now);
  reported_end_ = reported_end_ || batch.ends;
  reported_failure_ = reported_failure_ || batch.failed;
  reported_success_ = reported_success_ || batch.succeeded;
  vouched_ = vouched_ || (batch.succeeded && is_trusted(stream.info, options_.uid));
  if (batch.ends) due.end_ns = now + kLastWords;
}

void LiveJob::keep_out(Principal user, const LiveStream& stream, const Piece& piece) {
  if (piece.bytes.empty()) return;
  owner.refused(user, piece, stream.info.kind);
  dirty_ = true;
}

void LiveJob::ingest_host_lines(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now) {
  if (lines.empty()) return;
  dirty_ = true;
  sources_.ingest_host_lines(stream, lines, now);
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
  if (auto* finding = std::get_if<core::FindingInput>(&input)) finding->agent = host;
  if (const auto* event = std::get_if<core::EventInput>(&input))
    note_attempts(attempts_of(event->event, at), at, due);
  dirty_ = true;
  if (std::holds_alternative<core::FlightInput>(input) || std::holds_alternative<detect::RankExited>(input))
    due.urgent = true;
  const TimeNs before = engine_ ? engine_->read().progressed_ns() : kNoTime;
  sources_.feed(std::move(input), at);
  if (engine_ && engine_->read().progressed_ns() != before) agents_.note_progress(host);
}

void LiveJob::agent_away(const std::string& host, TimeNs since) {
  if (agents_.hosts().away(host, since) && running()) dirty_ = due.urgent = true;
}

void LiveJob::remote_ends(bool failed, TimeNs at, TimeNs now) {
  reported_end_ = true;
  reported_failure_ = reported_failure_ || failed;
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

void LiveJob::make_report(TimeNs now, ReportOptions options, std::vector<LiveEvent>& out) {
  if (!engine_) return;
  choose_pool();
  const JobAgents::Away away = agents_.hosts().away(now);
  const bool may_hang = options.hangs && (is_local() || agents_.hears_progress(away));
  report_ = engine_->report(may_hang ? agents_.known_until(now) : kNoTime, agents_.unheard(away));
  report_away(away, report_);
  sources_.report_broken(report_);
  std::vector<Problem> of_others;
  for (const auto& [user, retained] : owner.all_refused())
    of_others.push_back({"", std::nullopt, owner.sentence(user)});
  report_.problems.insert(report_.problems.begin(), of_others.begin(), of_others.end());
  dirty_ = false;
  name_diagnoses(summary_.run, report_);
  apply_judgements(judgements_, report_);
  conclude(report_);
  if (may_hang) due.hung_before = false;
  const bool whole = may_hang || options.last;
  events_.add_diagnoses(report_, &engine_->read(), {now, options.at_once, whole}, out);
  for (comm::StepsWanted& wanted : engine_->drain_requests()) {
    LiveEvent e = events_.event(LiveEventKind::kStepsWanted, now);
    e.hosts = std::move(wanted.hosts);
    e.steps = std::move(wanted.steps);
    out.push_back(std::move(e));
  }
}

void LiveJob::ask_for_stacks(TimeNs now, std::vector<LiveEvent>& out) {
  if (!running()) return;
  CaptureTimes::JobPace pace;
  pace.stalled = report_.hang && may_stall(now);
  pace.slow = std::ranges::any_of(report_.diagnoses,
                                  [](const Diagnosis& d) { return d.symptom == Symptom::kSlowdown; });
  const auto sample = captures_.due(pace, options_.capture, now, engine_->read().last_capture());
  if (!sample) return;
  LiveEvent e = events_.event(LiveEventKind::kStacksWanted, now);
  e.hosts = agents_.hosts().present();
  e.here = is_local();
  e.stacks = {id(), *sample, !pace.stalled, !options_.capture.stacks};
  out.push_back(std::move(e));
}

Result<CaptureOrder> LiveJob::order_capture(uint32_t rounds, TimeNs now, std::vector<LiveEvent>& out) {
  const CapturePlan& plan = options_.capture;
  if (!running()) return fail(ErrorCode::kNotFound, fmt::format("job {} does not run", id()));
  if (!plan.stacks) return fail(ErrorCode::kDenied, "[capture] enabled is false: no stacks are taken");
  const std::vector<std::string> hosts = agents_.hosts().present();
  if (!is_local() && hosts.empty())
    return fail(ErrorCode::kNotFound, fmt::format("no host of job {} is known to run it", id()));
  switch (captures_.request(rounds, plan, kCaptureAnswer, now)) {
    case CaptureTimes::Request::kTaken:
      break;
    case CaptureTimes::Request::kUnderWay:
      return fail(ErrorCode::kBusy, fmt::format("job {} is captured just now", id()));
    case CaptureTimes::Request::kTooSoon:
      return fail(ErrorCode::kTooSoon,
                  fmt::format("job {} was captured a moment ago: ask again in {} or less", id(),
                              format_duration(std::max(10 * kNsPerSecond, plan.every_ns))));
  }
  ask_for_stacks(now, out);
  return CaptureOrder{run(), captures_.number(), rounds, plan.every_ns, now, hosts, is_local()};
}

// Applies to ended runs too: the API still serves the report.
void LiveJob::judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out) {
  judgements_ = judgements;
  apply_judgements(judgements_, report_);
  conclude(report_);
  events_.add_diagnoses(report_, engine_ ? &engine_->read() : nullptr, {now, true, false}, out);
  if (!running()) summary_.verdict = announced_verdict(events_.announcer());
}

// The end is usually reported by the job itself, so a job teaches at most its owner's pool.
std::string LiveJob::why_healthy(bool named) const {
  if (named) return "the configuration names it";
  if (vouched_) return "root or the daemon's user reports a good end";
  if (due.lived && due.alive == false) return "its processes ended under watch, and nothing was found";
  return agents_.hosts().empty() ? "its own word alone, and nothing was found"
                                 : "the word of its agents, and nothing was found";
}

void LiveJob::teach(bool named, TimeNs now, std::vector<LiveEvent>& out) {
  const auto of = pool_owner_.name();
  if (!of) return;
  auto change = std::make_shared<PoolChange>();
  TaughtJob& taught = change->taught;
  taught.pool.learned = true;
  engine_->add_to(taught.pool);
  if (taught.pool.forms.empty()) return;
  taught.job = summary_.id;
  taught.run = summary_.run;
  taught.owner = *of;
  taught.why = why_healthy(named);
  taught.time_ns = now;
  change->removed = pools_.add(taught);
  out.push_back(events_.event(LiveEventKind::kPoolChanged, now));
  out.back().content = std::shared_ptr<const PoolChange>(std::move(change));
}

void LiveJob::end(TimeNs now, std::vector<LiveEvent>& out) {
  sources_.end(now);
  emit_findings(now, out);
  engine_->settle_loop(std::numeric_limits<TimeNs>::max());
  // Stopping a hung job does not clear the hang.
  make_report(now, {report_.hang || due.hung_before, true, true}, out);
  const bool reached = engine_->read().ended_well() || reported_end_;
  const bool nothing = report_.diagnoses.empty() && report_.suspects.empty() && report_.missing.empty();
  const bool well = reached && nothing && !reported_failure_ && engine_->read().log().events() > 0;
  const auto& healthy = options_.healthy;
  const bool named = std::find(healthy.begin(), healthy.end(), summary_.id) != healthy.end();
  std::vector<LiveEvent> taught;
  if ((well || named) && engine_->read().log().events() > 0) teach(named, now, taught);
  summary_ = summary();
  summary_.well = well;
  // A job did not fail if all its processes exited with 0, even with a verdict.
  const bool crashed = !reached && std::ranges::any_of(report_.diagnoses, [](const Diagnosis& d) {
    return d.symptom == Symptom::kCrash || d.symptom == Symptom::kLaunchFailure;
  });
  const bool failed = reported_failure_ || (!reported_success_ && (report_.verdict || crashed));
  summary_.state = failed ? JobState::kFailed : JobState::kEnded;
  close(now, out);
  std::move(taught.begin(), taught.end(), std::back_inserter(out));
}

void LiveJob::close(TimeNs now, std::vector<LiveEvent>& out) {
  engine_.reset();
  LiveEvent e = events_.event(LiveEventKind::kJobEnded, now);
  e.content = JobChange{summary_, std::make_shared<const Report>(report_)};
  e.last_ns = summary_.last_ns;
  out.push_back(std::move(e));
}

// Makes no new report: a report would take memory and time that other jobs need.
void LiveJob::give_way(TimeNs now, const std::string& why, std::vector<LiveEvent>& out) {
  emit_findings(now, out);
  summary_ = summary();
  summary_.state = JobState::kEnded;
  summary_.note = why;
  report_.job.id = summary_.id;
  report_.problems.insert(report_.problems.begin(), {"", std::nullopt, why});
  conclude(report_);
  close(now, out);
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
  engine_->step(core::RuleOverran{rule}, kNoTime);
}

LiveJobSummary LiveJob::summary() const {
  LiveJobSummary out = summary_;
  out.attempts = due.attempts;
  if (!running()) return out;
  out.hangs = report_.hang.has_value();
  out.headline = report_.headline;
  out.hosts = std::max<uint64_t>(report_.job.hosts, agents_.hosts().size());
  out.ranks = report_.job.ranks;
  out.sources = sources_.size();
  out.lines = engine_->read().log().lines();
  out.iteration = engine_->read().iteration();
  out.saved = engine_->read().saves().saved();
  for (const auto& [id, advice] : engine_->read().saves().advice()) out.advice.push_back(advice);
  out.verdict = announced_verdict(events_.announcer());
  return out;
}

std::map<StreamId, uint64_t> LiveJob::lines_of_streams() const {
  std::map<StreamId, uint64_t> out;
  for (const StreamId stream : streams_.ids())
    if (const auto source = sources_.source_of(stream))
      if (const uint64_t lines = engine_->read().log().lines_of(*source); lines > 0) out[stream] = lines;
  return out;
}

}  // namespace culprit::app
