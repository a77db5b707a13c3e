#include "app/jobs/live_jobs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "app/config/rule_json.h"
#include "app/jobs/batch_ahead.h"
#include "app/jobs/live_jobs_impl.h"
#include "base/check.h"
#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::app {

LiveJobs::LiveJobs(LiveOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LiveJobs::~LiveJobs() = default;

void LiveJobs::ingest(const PieceBatch& batch, TimeNs now, std::shared_ptr<const PieceBatch> next) {
  CULPRIT_CHECK(impl_->owner.here());
  for (const StreamInfo& info : batch.opened) {
    impl_->streams[info.id].info = info;
    impl_->names.note(info);
  }
  const auto stream_of = [this](StreamId id) -> const LiveStream* {
    const auto known = impl_->streams.find(id);
    return known == impl_->streams.end() ? nullptr : &known->second;
  };
  const BatchAhead ahead({*impl_, impl_->parsing, stream_of}, {batch, 0, std::move(next)}, now);
  for (const Piece& piece : batch.pieces) impl_->ingest(piece, now);
  impl_->count_lines_taken();
}

void LiveJobs::ingest(const RemoteBatch& batch, TimeNs now) {
  // A new session ends the job's earlier one, whose last block may be in the same batch.
  std::map<StreamId, const StreamInfo*> opened;
  for (const StreamInfo& info : batch.batch.opened)
    if (info.kind == OriginKind::kCondensed) opened.emplace(info.id, &info);  // others are marks
  // A name that another user owns here belongs to that user on all hosts.
  const auto open = [&](StreamInfo info) {
    info.job = impl_->names.id_of(info, {});
    impl_->remote.open({batch.epoch, info.id}, batch.host, info,
                       wire::rule_finder(impl_->options.rules.get()));
  };
  for (const Piece& piece : batch.batch.pieces) {
    if (const auto known = opened.extract(piece.stream)) open(*known.mapped());
    impl_->ingest_remote(batch, piece, now);
  }
  for (const auto& [id, info] : opened) open(*info);
  impl_->count_lines_taken();
}

void LiveJobs::agent_away(const std::string& host, TimeNs since) {
  CULPRIT_CHECK(impl_->owner.here());
  constexpr size_t kAgents = 16'384;
  if (impl_->agents.size() < kAgents || impl_->agents.contains(host)) impl_->agents[host] = since;
  for (auto& [id, job] : impl_->jobs)
    if (job->running()) job->agent_away(host, since);
}

std::optional<TimeNs> LiveJobs::tick(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->parsing.settle(now);
  if (!impl_->behind) impl_->without_engine.forget(now, impl_->options.ended_after_ns);
  impl_->count_engines();
  if (impl_->behind) return std::nullopt;
  const auto next = impl_->tick_jobs(now);
  impl_->balance_memory(now);
  return next;
}

void LiveJobs::restoring(std::span<const RunEnd> ends, std::vector<Verdict> before) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->restoring = impl_->behind = true;
  impl_->before.add(std::move(before));
  for (const RunEnd& end : ends) {
    TimeNs& ended = impl_->ended_ns.try_emplace(end.job, end.last_ns).first->second;
    ended = std::max(ended, end.last_ns);
    TimeNs& last = impl_->over.try_emplace(end.job, end.last_ns).first->second;
    last = std::max(last, end.last_ns);
    uint32_t& next = impl_->next_run[end.job];
    next = std::max(next, end.run + 1);
  }
}

void LiveJobs::replayed(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  for (auto& [id, job] : impl_->jobs)
    if (job->running()) impl_->report(*job, now, false, true);
  impl_->events.replayed();
  impl_->restoring = false;
  impl_->over.clear();
}

// Data written while the daemon was down is still being read, so checks for hangs start a little later.
void LiveJobs::caught_up(TimeNs now, const LiveJobs* replaces) {
  CULPRIT_CHECK(impl_->owner.here());
  if (replaces)
    for (const auto& [host, since] : replaces->impl_->agents) agent_away(host, since);
  impl_->behind = false;
  for (auto& [id, job] : impl_->jobs) {
    if (job->running()) impl_->load_before(*job);
    job->due.asked_stall_ns = now;
    job->hosts().back(now);
  }
}

void LiveJobs::lacks_evidence(StreamId stream) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto known = impl_->streams.find(stream);
  const bool of_all = known == impl_->streams.end() || is_of_host(known->second.info.kind);
  impl_->before.forget(of_all ? "" : job_of(known->second));
}

std::vector<std::string> LiveJobs::begin_reading(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->behind ? std::vector<std::string>() : impl_->begin_reading(now);
}

bool LiveJobs::open_to_read(const StreamInfo& info) {
  CULPRIT_CHECK(impl_->owner.here());
  if (info.job.empty() || is_of_host(info.kind) || !impl_->reading.contains(info.job)) return false;
  const auto [at, is_new] = impl_->streams.try_emplace(info.id);
  at->second.info = info;
  at->second.late = true;
  at->second.stored = at->second.stored || is_new;
  return true;
}

void LiveJobs::read(const Piece& piece) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->read(piece);
}

bool LiveJobs::end_reading(bool at_most) {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->end_reading(at_most);
}

std::vector<LiveEvent> LiveJobs::poll_events() {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->events.drain();
}

std::optional<Report> LiveJobs::report(const std::string& job, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return impl_->report_without_engine(job);
  LiveJob& j = *known->second;
  if (impl_->reading.contains(job)) return impl_->unread_report(j.report(), job, "it is read just now");
  if (j.running() && j.dirty() && impl_->schedule.may_report(j, now))
    impl_->report(j, now, impl_->schedule.may_hang(j, now));
  if (impl_->passed_over.has(j)) return impl_->unread_report(j.report(), job, impl_->passed_over.sentence(j));
  const JobsWithoutEngine::Job* waits = impl_->without_engine.find(job);
  return waits && waits->waits() ? impl_->unread_report(j.report(), job, waits->note) : j.report();
}

std::optional<uint32_t> LiveJobs::run_of(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  if (known != impl_->jobs.end()) return known->second->run();
  const JobsWithoutEngine::Job* waits = impl_->without_engine.find(job);
  if (!waits || !waits->waits()) return std::nullopt;
  const auto next = impl_->next_run.find(job);
  return next == impl_->next_run.end() ? 0 : next->second;
}

std::string LiveJobs::owner_of_job(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() ? "" : known->second->claim.owner;
}

std::string LiveJobs::user_of_job(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return "";
  const std::string name = known->second->pool_owner().value_or("");
  return name.starts_with("user ") ? name : "";
}

std::vector<std::string> LiveJobs::hosts_of_job(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return {};
  std::vector<std::string> out = known->second->hosts().names();
  if (known->second->runs_here()) out.push_back(impl_->options.host);
  return out;
}

std::optional<LiveJobs::AttemptsOfRun> LiveJobs::attempts_of_job(const std::string& job, uint32_t run) const {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end() || known->second->run() != run) return std::nullopt;
  auto attempts = known->second->summary().attempts;
  return attempts ? std::optional(AttemptsOfRun{std::move(*attempts), known->second->running()})
                  : std::nullopt;
}

std::vector<LiveJobSummary> LiveJobs::jobs() const {
  std::vector<LiveJobSummary> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(job->summary());
  for (const auto& [id, job] : impl_->without_engine.all()) {
    LiveJobSummary& summary = out.emplace_back();
    summary.id = id;
    const auto next = impl_->next_run.find(id);
    summary.run = next == impl_->next_run.end() ? 0 : next->second;
    summary.first_ns = job.since_ns;
    summary.last_ns = job.last_ns;
    summary.bytes = job.bytes;
    summary.has_engine = false;
    summary.note = job.note;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LiveJobSummary& a, const LiveJobSummary& b) { return a.first_ns > b.first_ns; });
  return out;
}

std::vector<JobCounters> LiveJobs::counters(TimeNs now) const {
  std::vector<JobCounters> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(job->counters(now));
  for (const auto& [id, job] : impl_->without_engine.all()) {
    JobCounters& counters = out.emplace_back();
    counters.id = id;
    counters.state = FigureState::kNoEngine;
    counters.first_ns = job.since_ns;
    counters.last_ns = job.last_ns;
  }
  return out;
}

std::string LiveJobs::whose_word(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end() || known->second->hears_root()) return "";
  if (impl_->options.shown && impl_->options.shown(job)) return "";
  return user_of_job(job);
}

bool LiveJobs::settled(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() || known->second->events().announcer().settled();
}

void LiveJobs::judge(const Judgement& judgement, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  constexpr size_t kRuns = 10'000;  // judged runs
  const std::pair key(judgement.job, judgement.run);
  if (impl_->judgements.size() >= kRuns && !impl_->judgements.contains(key)) return;
  Judgements& judged = impl_->judgements[key];
  judged[judgement.id] = judgement.right;
  const auto known = impl_->jobs.find(judgement.job);
  if (known == impl_->jobs.end() || known->second->run() != judgement.run) return;
  std::vector<LiveEvent> out;
  known->second->judge(judged, now, out);
  impl_->push(out);
}

Result<CaptureOrder> LiveJobs::order_capture(const std::string& job, uint32_t rounds, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  if (impl_->behind) return fail(ErrorCode::kLimit, "the daemon still reads what it stored before its start");
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return fail(ErrorCode::kNotFound, "no running job " + job);
  std::vector<LiveEvent> asked;
  auto order = known->second->order_capture(rounds, now, asked);
  impl_->push(asked);
  return order;
}

std::string LiveJobs::rules_json() const {
  static const std::vector<rules::Rule> kNone;
  JsonWriter w;
  const auto write_rule = [&](const rules::Rule& rule) { w.write_raw(to_json(rule)); };
  w.object(
      [&] { w.list("items", impl_->options.rules ? impl_->options.rules->rules() : kNone, write_rule); });
  return w.finish();
}

Result<std::string> LiveJobs::rule_json(const std::string& id) const {
  const auto& rules = impl_->options.rules;
  const auto found = rules ? rules->find(id) : std::nullopt;
  if (!found) return fail(ErrorCode::kNotFound, "no rule " + shorten(to_utf8(id), 100));
  return explained_json(rules->rules()[*found]);
}

void LiveJobs::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->options.rules = std::move(rules);
  for (auto& [id, job] : impl_->jobs) job->replace_rules(impl_->options.rules);
  impl_->remote.set_rules(wire::rule_finder(impl_->options.rules.get()));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
}

void LiveJobs::change(const detect::StallOptions& hang, TimeNs ended_after_ns, uint64_t memory_max) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->options.hang = hang;
  impl_->options.ended_after_ns = ended_after_ns;
  impl_->options.memory_max = memory_max;
  for (auto& [id, job] : impl_->jobs) job->set_hang(hang);
}

void LiveJobs::set_capture(const CapturePlan& plan) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->options.capture = plan;
}

void LiveJobs::set_healthy(std::vector<std::string> jobs) { impl_->options.healthy = std::move(jobs); }

std::vector<std::string> LiveJobs::drain_notices(TimeNs now) {
  std::vector<std::string> out;
  if (auto sentence = impl_->without_engine.drain_sentence(now)) out.push_back(std::move(*sentence));
  return out;
}

void LiveJobs::overran(const std::string& rule) {
  CULPRIT_CHECK(impl_->owner.here());
  for (auto& [id, job] : impl_->jobs) job->overran(rule);
}

size_t LiveJobs::remote_streams() const { return impl_->remote.size(); }
size_t LiveJobs::streams() const { return impl_->streams.size(); }

size_t LiveJobs::running() const {
  return static_cast<size_t>(std::count_if(impl_->jobs.begin(), impl_->jobs.end(),
                                           [](const auto& j) { return j.second->running(); }));
}

NormalPools& LiveJobs::pools() {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->pools;
}

size_t LiveJobs::forget_taught(const std::string& job, std::optional<uint32_t> run) {
  CULPRIT_CHECK(impl_->owner.here());
  const size_t out = impl_->pools.forget(job, run);
  for (auto& [id, running] : impl_->jobs)
    if (out > 0) running->choose_pool();
  return out;
}

const LiveCounts& LiveJobs::counts() const { return impl_->counts; }

}  // namespace culprit::app
