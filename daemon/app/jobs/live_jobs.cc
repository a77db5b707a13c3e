#include "app/jobs/live_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/config/rule_json.h"
#include "app/jobs/batch_ahead.h"
#include "app/jobs/job_router.h"
#include "app/jobs/job_schedule.h"
#include "app/jobs/job_shares.h"
#include "app/jobs/jobs_without_engine.h"
#include "app/jobs/live_events.h"
#include "app/jobs/live_job.h"
#include "app/jobs/remote_sessions.h"
#include "base/check.h"
#include "base/text.h"
#include "base/thread_owner.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

// Upper limit of times in blocks (core/wire/inputs.h): the year 2116.
constexpr TimeNs kTimesEnd = TimeNs{1} << 62;

uint64_t count_lines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Within its life an engine works on the job.
class Working {
 public:
  Working(const LiveOptions& options, std::string_view job) : options_(options) {
    if (options_.working) options_.working(job);
  }
  ~Working() {
    if (options_.working) options_.working({});
  }
  Working(const Working&) = delete;

 private:
  const LiveOptions& options_;
};

}  // namespace

struct LiveJobs::Impl final : JobTable {
  ThreadOwner owner;
  LiveOptions options;
  JobSchedule schedule;
  LiveParsing parsing;
  NormalPools pools;
  JobRouter router;
  LiveCounts counts;
  std::unordered_map<StreamId, LiveStream> streams;
  std::map<std::string, std::unique_ptr<LiveJob>> jobs;  // last run by job id
  std::map<std::string, uint32_t> next_run;
  uint64_t lines_of_ended = 0, refused_of_ended = 0;
  std::string reported_last;  // job of the last report that a tick made
  LiveEvents events;
  HostBacklog backlog;
  RemoteSessions remote;
  JobsWithoutEngine without_engine;
  bool restoring = false;                // batches from before the restart are ingested
  bool behind = false;                   // until caught_up(): input is late
  std::map<std::string, TimeNs> over;    // while restoring: end of each job's last ended run
  std::map<std::string, TimeNs> agents;  // other hosts: disconnected since; kNoTime: connected
  std::map<std::pair<std::string, uint32_t>, Judgements> judgements;  // of diagnoses, by job and run

  explicit Impl(LiveOptions o)
      : options(std::move(o)),
        schedule(options),
        parsing(options.host, options.roots, options.uid),
        router(*this, options.uid, options.seen, options.users_of) {
    parsing.threads = options.threads;
    parsing.dumps.reading = options.reading;
    parsing.dumps.left_out = options.left_out;
    parsing.use(options.rules.get(), options.zone);
    for (TaughtJob& taught : std::exchange(options.taught, {})) pools.add(std::move(taught));
  }

  void push(std::vector<LiveEvent>& out) {
    events.add(out, restoring);
    counts.events_lost = events.lost();
  }

  // Drops the job that ended first. False: all run.
  bool forget_ended() {
    auto oldest = jobs.end();
    for (auto it = jobs.begin(); it != jobs.end(); ++it)
      if (!it->second->running() &&
          (oldest == jobs.end() || it->second->last_ns() < oldest->second->last_ns()))
        oldest = it;
    if (oldest == jobs.end()) return false;
    jobs.erase(oldest);
    ++counts.jobs_forgotten;
    return true;
  }

  struct Holders {
    std::vector<LiveJob*> jobs;
    std::vector<EngineHolder> all;
  };
  Holders holders(TimeNs at) {
    Holders out;
    for (auto& [id, job] : jobs) {
      if (!job->running()) continue;
      const TimeNs silent = at - job->last_ns();
      const bool idle = silent >= options.ended_after_ns && !(options.alive && options.alive(id) == true);
      const bool shown = options.shown && options.shown(id);
      out.jobs.push_back(job.get());
      out.all.push_back({job->claim.owner, shown ? JobOrigin::kShown : job->claim.origin, job->last_ns(),
                         idle, job->memory_bytes()});
    }
    return out;
  }

  // Makes room for one more job: an ended one is dropped, or a running one gives way.
  bool make_room(const std::string& id, const JobClaim& wants) {
    while (jobs.size() >= options.jobs_max) {
      if (forget_ended()) continue;
      const Holders held = holders(wants.at);
      const auto victim = gives_way(held.all, wants, options.jobs_max);
      if (!victim) return false;
      const EngineHolder& holder = held.all[*victim];
      const auto of_owner = std::count_if(held.all.begin(), held.all.end(),
                                          [&](const EngineHolder& h) { return h.owner == holder.owner; });
      give_way(*held.jobs[*victim], EngineLack::kSlot, wants.at,
               fmt::format("{} held {} of {} engines, and job {} of {} needed one", holder.owner, of_owner,
                           options.jobs_max, id, wants.owner));
      ++counts.gave_way_for_slots;
    }
    return true;
  }

  void give_way(LiveJob& job, EngineLack lack, TimeNs at, const std::string& why) {
    without_engine.add(job.id(), lack, why, at);
    std::vector<LiveEvent> out;
    note_lines(job);
    job.give_way(at, fmt::format("this run lost its engine: {}; what came later is evidence only", why), out);
    ++counts.jobs_ended;
    push(out);
    for (const StreamId id : job.streams().ids()) forget(id);
  }

  // Lets the largest jobs give way until the engines fit into their memory.
  void balance_memory(TimeNs at) {
    while (engine_bytes() > options.memory_max) {
      const Holders held = holders(at);
      const auto victim = largest_holder(held.all);
      if (!victim) return;
      const EngineHolder& holder = held.all[*victim];
      give_way(*held.jobs[*victim], EngineLack::kMemory, at,
               fmt::format("all engines took more than {}, and this one took {}, the most of {}",
                           format_bytes(options.memory_max), format_bytes(holder.bytes), holder.owner));
      ++counts.gave_way_for_memory;
      release_free_memory();
    }
  }

  // With room for one report: it needs memory for a while.
  uint64_t engine_bytes() const {
    uint64_t out = 0, report = 0;
    for (const auto& [id, job] : jobs) {
      out += job->memory_bytes();
      report = std::max(report, job->report_bytes());
    }
    return out + report;
  }

  LiveJob* running(const std::string& id) override {
    const auto known = jobs.find(id);
    return known != jobs.end() && known->second->running() ? known->second.get() : nullptr;
  }

  // Null: no engine ingests the data.
  LiveJob* open(const std::string& id, const StreamInfo& from, TimeNs at) override {
    const auto known = jobs.find(id);
    const JobOrigin origin = origin_of(from, options.uid);
    if (known == jobs.end() || !known->second->running())
      return begin(id, {owner_of(from), origin, at}, true);
    LiveJob& job = *known->second;
    if (origin > job.claim.origin) job.claim = {owner_of(from), origin, at};
    return &job;
  }

  // Whether the job may have an engine: the limits, and a slot.
  bool gets_engine(const std::string& id, const JobClaim& claim) {
    if (options.evidence_only.contains(id))
      without_engine.add(id, EngineLack::kDeaths,
                         "the daemon ran out of memory twice while it worked on this job", claim.at);
    if (!without_engine.may_ask(id, claim.at)) return false;
    const bool shown = options.shown && options.shown(id);
    if (make_room(id, {claim.owner, shown ? JobOrigin::kShown : claim.origin, claim.at})) return true;
    without_engine.add(
        id, EngineLack::kSlot,
        fmt::format("other jobs hold all {} engines, and {} has its share or is less well known",
                    options.jobs_max, claim.owner),
        claim.at);
    return false;
  }

  // Begins a run of a job that does not run. `here`: it may run on this host, whose lines of before are its.
  LiveJob* begin(const std::string& id, const JobClaim& claim, bool here) {
    const TimeNs at = claim.at;
    if (restoring)
      if (const auto end = over.find(id); end != over.end() && at <= end->second) return nullptr;
    if (!gets_engine(id, claim)) return nullptr;
    without_engine.remove(id);
    jobs.erase(id);
    auto job = std::make_unique<LiveJob>(id, next_run[id]++, LiveJob::Parts{options, parsing, pools});
    LiveJob& out = *jobs.emplace(id, std::move(job)).first->second;
    out.claim = claim;
    out.due.report_ns = at + options.report_every_ns;
    std::vector<LiveEvent> started;
    if (const auto said = judgements.find({id, out.run()}); said != judgements.end())
      out.judge(said->second, at, started);
    ++counts.jobs_started;
    LiveEvent e;
    e.kind = LiveEventKind::kJobStarted;
    e.time_ns = at;
    e.job = id;
    e.run = next_run[id] - 1;
    LiveJobSummary summary = out.summary();
    summary.first_ns = summary.last_ns = at;  // the first data is not ingested yet
    e.content = JobChange{std::move(summary), nullptr};
    started.push_back(std::move(e));
    push(started);
    if (here)
      backlog.replay(at, [&](StreamId stream, const HostLine& line) {
        if (const auto source = streams.find(stream); source != streams.end())
          out.ingest_host_lines(source->second, {&line, 1}, at);
      });
    return &out;
  }

  void ingest(const Piece& piece, TimeNs now) {
    ingest_bytes(piece, now);
    const auto known = streams.find(piece.stream);
    if (!piece.ends || known == streams.end()) return;
    known->second.ended = true;
    forget(piece.stream);
  }

  void ingest_bytes(const Piece& piece, TimeNs now) {
    counts.bytes += piece.bytes.size();
    const auto known = streams.find(piece.stream);
    if (known == streams.end()) {
      counts.bytes_refused += piece.bytes.size();
      return;
    }
    LiveStream& stream = known->second;
    const TimeNs at = piece.time_ns == kNoTime ? now : piece.time_ns;
    if (is_of_host(stream.info.kind)) return ingest_host_lines(stream, piece, at);
    const Working working(options, job_of(stream));
    RoutedJob* job = router.route(stream, piece, at);
    counts.broken_trace_lines = router.broken_trace_lines();
    counts.kept_out = router.kept_out();
    if (job) after(static_cast<LiveJob&>(*job), at);
    balance_memory(at);
  }

  void refuse(LiveStream& stream, const Piece& piece) override {
    if (!restoring) counts.bytes_refused += piece.bytes.size();
    without_engine.count(job_of(stream), piece.bytes.size(), piece.time_ns);
    if (stream.info.kind == OriginKind::kFile) stream.lines_before += count_lines(piece.bytes);
  }

  std::string only_running() const override {
    std::string out;
    for (const auto& [id, job] : jobs) {
      if (!job->running()) continue;
      if (!out.empty()) return "";
      out = id;
    }
    return out;
  }

  // An ended stream gets no more pieces. Its lines count until its run ends.
  void forget(StreamId id) {
    const auto known = streams.find(id);
    if (known == streams.end() || !known->second.ended) return;
    const auto job = jobs.find(job_of(known->second));
    const bool needed = job != jobs.end() && job->second->running() && job->second->streams().has(id);
    if (!needed) streams.erase(known);
  }
  void ingest_host_lines(LiveStream& stream, const Piece& piece, TimeNs at) {
    std::vector<HostLine> lines = read_host_lines(stream, piece.bytes, piece.offset);
    for (auto& [id, job] : jobs) {
      if (!job->running() || !job->runs_here()) continue;
      const Working working(options, id);
      job->ingest_host_lines(stream, lines, at);
      after(*job, at);
    }
    balance_memory(at);
    backlog.keep(stream.info.id, std::move(lines));
  }

  // ---- other hosts

  // As job_for. Data of a host that is older than the job's end on other hosts is late and begins no run.
  LiveJob* remote_job(const std::string& id, const std::string& host, TimeNs at, bool begins) {
    const auto known = jobs.find(id);
    if (known != jobs.end() && known->second->running()) return known->second.get();
    if (!begins || (known != jobs.end() && at <= known->second->last_ns())) return nullptr;
    return begin(id, {"host " + host, JobOrigin::kWatched, at}, false);
  }

  void ingest_remote(const RemoteBatch& batch, const Piece& piece, TimeNs now) {
    if (piece.bytes.empty() && !piece.ends) return;
    const RemoteSessions::Key key(batch.epoch, piece.stream);
    if (!piece.bytes.empty()) {
      ++counts.remote_blocks;
      counts.remote_bytes += piece.bytes.size();
      RemoteStream* stream = remote.block(key);
      const uint64_t lost = stream ? stream->blocks_lost() : 0;
      // The time comes from an untrusted clock; without a valid time, `now` counts.
      const bool reported = piece.time_ns >= 0 && piece.time_ns < kTimesEnd;
      const TimeNs at = reported ? piece.time_ns : now;
      const auto job_of = [&](const auto& id, TimeNs when, bool begins) {
        return remote_job(id, batch.host, when, begins);
      };
      const Working working(options, stream ? stream->job() : "");
      LiveJob* job = stream ? stream->ingest(piece, {at, restoring ? at : now}, job_of) : nullptr;
      if (!stream || stream->blocks_lost() > lost) {
        ++counts.remote_blocks_lost;
        counts.remote_lost_of = batch.host;
      }
      if (job) after(*job, at);
      if (!job && stream) without_engine.count(stream->job(), piece.bytes.size(), at);
      const auto agent = agents.find(batch.host);
      if (job && agent != agents.end()) job->agent_away(batch.host, agent->second);
      balance_memory(at);
    }
    if (piece.ends) remote.end(key);
  }

  // Handles results of a job's engine for the last pieces.
  void after(LiveJob& job, TimeNs at) {
    std::vector<LiveEvent> out;
    if (job.emit_findings(at, out)) job.due.urgent = true;
    job.note_step(at);
    push(out);
    if (job.streams().all_ended() && job.due.end_ns == kNoTime)
      job.due.end_ns = at + LiveJob::kLastWords;
    else if (!job.streams().all_ended() && !job.said_end())
      job.due.end_ns = kNoTime;
  }

  void report(LiveJob& job, TimeNs now, bool hangs, bool at_once = false) {
    const TimeNs began = options.timer ? options.timer() : 0;
    const Working working(options, job.id());
    std::vector<LiveEvent> out;
    job.make_report(now, hangs, at_once || restoring, out);
    job.note_step(now);
    push(out);
    const TimeNs cost = options.timer ? options.timer() - began : 0;
    ++counts.reports;
    counts.report_ns += cost;
    schedule.reported(job, now, cost);
  }

  void note_lines(const LiveJob& job) {
    for (const auto& [id, lines] : job.lines_of_streams())
      if (const auto known = streams.find(id); known != streams.end()) known->second.lines_before = lines;
    lines_of_ended += job.lines();
    refused_of_ended += job.refused();
  }

  void end(LiveJob& job, TimeNs now) {
    note_lines(job);
    const Working working(options, job.id());
    std::vector<LiveEvent> out;
    job.end(now, out);
    ++counts.jobs_ended;
    push(out);
    for (const StreamId id : job.streams().ids()) forget(id);
  }

  void tick_job(LiveJob& job, TimeNs now) {
    schedule.look(job, now);
    job.settle(now);
    after(job, now);
    if (schedule.report_is_due(job, now)) {
      report(job, now, schedule.may_hang(job, now));
      reported_last = job.id();
    }
    if (schedule.is_over(job, now)) return end(job, now);
    std::vector<LiveEvent> asked;
    job.ask_for_stacks(now, asked);
    push(asked);
  }

  // Begins with the job after the one that reported last: reports share their time (JobSchedule), and the
  // first jobs must not use it up at each tick.
  std::optional<TimeNs> tick_jobs(TimeNs now) {
    std::optional<TimeNs> next;
    auto at = jobs.upper_bound(reported_last);
    for (size_t n = jobs.size(); n > 0; --n, ++at) {
      if (at == jobs.end()) at = jobs.begin();
      LiveJob& job = *at->second;
      if (job.running()) tick_job(job, now);
      if (!job.running()) continue;
      const TimeNs check = schedule.next_check(job, now);
      next = std::min(next.value_or(check), check);
    }
    return next;
  }

  void count_lines_taken() {
    counts.lines = lines_of_ended;
    for (const auto& [id, job] : jobs)
      if (job->running()) counts.lines += job->lines();
  }

  void count_engines() {
    constexpr size_t kNamed = 5;
    counts.with_verdict = static_cast<size_t>(std::ranges::count_if(
        jobs, [](const auto& job) { return job.second->report().verdict.has_value(); }));
    counts.engine_bytes = engine_bytes();
    counts.engine_bytes_max = options.memory_max;
    counts.without_engine = without_engine.all().size();
    counts.named_without_engine.clear();
    for (const auto& [id, job] : without_engine.all()) {
      if (counts.named_without_engine.size() == kNamed) break;
      counts.named_without_engine.push_back(id);
    }
  }
};

LiveJobs::LiveJobs(LiveOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LiveJobs::~LiveJobs() = default;

void LiveJobs::ingest(const PieceBatch& batch, TimeNs now, std::shared_ptr<const PieceBatch> next) {
  CULPRIT_CHECK(impl_->owner.here());
  for (const StreamInfo& info : batch.opened) impl_->streams[info.id].info = info;
  const auto stream_of = [this](StreamId id) -> const LiveStream* {
    const auto known = impl_->streams.find(id);
    return known == impl_->streams.end() ? nullptr : &known->second;
  };
  const BatchAhead ahead({*impl_, impl_->parsing, stream_of}, {batch, 0, std::move(next)}, now);
  for (const Piece& piece : batch.pieces) impl_->ingest(piece, now);
  impl_->count_lines_taken();
}

void LiveJobs::ingest(const RemoteBatch& batch, TimeNs now) {
  // A session ends the job's earlier one, whose last block may be in the same batch.
  std::map<StreamId, const StreamInfo*> opened;
  for (const StreamInfo& info : batch.batch.opened)
    if (info.kind == OriginKind::kCondensed) opened.emplace(info.id, &info);  // others are marks
  const auto open = [&](const StreamInfo& info) {
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

void LiveJobs::restoring(std::span<const RunEnd> ends) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->restoring = impl_->behind = true;
  for (const RunEnd& end : ends) {
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

// Data written while the daemon was down is still being read, so hangs are checked a little later.
void LiveJobs::caught_up(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->behind = false;
  for (auto& [id, job] : impl_->jobs) {
    job->due.asked_stall_ns = now;
    job->hosts().back(now);
  }
}

std::vector<LiveEvent> LiveJobs::poll_events() {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->events.drain();
}

std::optional<Report> LiveJobs::report(const std::string& job, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return std::nullopt;
  LiveJob& j = *known->second;
  if (j.running() && j.dirty() && impl_->schedule.may_report(now))
    impl_->report(j, now, impl_->schedule.may_hang(j, now));
  return j.report();
}

std::optional<uint32_t> LiveJobs::run_of(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() ? std::nullopt : std::optional(known->second->run());
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

std::vector<JobFigures> LiveJobs::figures(TimeNs now) const {
  std::vector<JobFigures> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(job->figures(now));
  for (const auto& [id, job] : impl_->without_engine.all()) {
    JobFigures& figures = out.emplace_back();
    figures.id = id;
    figures.state = FigureState::kNoEngine;
    figures.first_ns = job.since_ns;
    figures.last_ns = job.last_ns;
  }
  return out;
}

bool LiveJobs::settled(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() || known->second->announcer().settled();
}

void LiveJobs::judge(const Judgement& judgement, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  constexpr size_t kRuns = 10'000;  // judged runs
  const std::pair key(judgement.job, judgement.run);
  if (impl_->judgements.size() >= kRuns && !impl_->judgements.contains(key)) return;
  Judgements& said = impl_->judgements[key];
  said[judgement.id] = judgement.right;
  const auto known = impl_->jobs.find(judgement.job);
  if (known == impl_->jobs.end() || known->second->run() != judgement.run) return;
  std::vector<LiveEvent> out;
  known->second->judge(said, now, out);
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

void LiveJobs::change(const detect::StallOptions& hang, TimeNs ended_after_ns) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->options.hang = hang;
  impl_->options.ended_after_ns = ended_after_ns;
  for (auto& [id, job] : impl_->jobs) job->set_hang(hang);
}

void LiveJobs::set_capture(const CapturePlan& plan) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->options.capture = plan;
}

void LiveJobs::set_healthy(std::vector<std::string> jobs) { impl_->options.healthy = std::move(jobs); }

void LiveJobs::set_memory(uint64_t bytes_max) { impl_->options.memory_max = bytes_max; }

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

const NormalPools& LiveJobs::pools() const { return impl_->pools; }

size_t LiveJobs::forget_taught(const std::string& job) {
  CULPRIT_CHECK(impl_->owner.here());
  const size_t out = impl_->pools.forget(job);
  for (auto& [id, running] : impl_->jobs)
    if (out > 0) running->choose_pool();
  return out;
}

const LiveCounts& LiveJobs::counts() const { return impl_->counts; }

}  // namespace culprit::app
