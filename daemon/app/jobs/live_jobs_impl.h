// The state of LiveJobs and its changes with each piece and each tick; live_jobs.cc has the interface.
//
// Owner: LiveJobs. One thread: the engine's worker. Time is an argument.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/jobs/job_names.h"
#include "app/jobs/job_router.h"
#include "app/jobs/job_schedule.h"
#include "app/jobs/job_shares.h"
#include "app/jobs/jobs_without_engine.h"
#include "app/jobs/live_events.h"
#include "app/jobs/live_job.h"
#include "app/jobs/live_jobs.h"
#include "app/jobs/remote_sessions.h"
#include "app/jobs/stored_verdicts.h"
#include "base/check.h"
#include "base/text.h"
#include "base/thread_owner.h"
#include "model/headline.h"

namespace culprit::app {

// Upper limit of times in blocks (core/wire/inputs.h): the year 2116.
constexpr TimeNs kTimesEnd = TimeNs{1} << 62;

inline uint64_t count_lines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

// Marks the job as the one that an engine works on, during the object's life.
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

// Runs with blocks that were passed over at the start: the time of the last one of each.
struct PassedOver {
  std::map<std::pair<std::string, uint32_t>, TimeNs> until;
  void note(const LiveJob& job, TimeNs at) {
    TimeNs& last = until.try_emplace({job.id(), job.run()}, at).first->second;
    last = std::max(last, at);
  }
  bool has(const LiveJob& job) const { return until.contains({job.id(), job.run()}); }
  std::string sentence(const LiveJob& job) const {
    return fmt::format("most of what its hosts reported until {}; it is read now, if there is memory for it",
                       format_time(until.at({job.id(), job.run()})));
  }
};

// Later data of the jobs that the attempt names follows the chain, also that of other hosts.
inline void join_chain(JobNames& names, const LiveJob& job, const StreamInfo& from) {
  if (job.due.attempts) (void)names.join(from, *job.due.attempts);
}

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
  JobNames names;  // names on all hosts
  JobsWithoutEngine without_engine;
  // A job without an engine so far whose data is read from the store. Data that arrives meanwhile is read
  // from the store too.
  struct Reading {
    std::map<StreamId, uint64_t> read, arrived;  // end offsets of the data, by source
  };
  std::map<std::string, Reading> reading;  // by job
  TimeNs written_ns = kNoTime;             // write time of the current piece
  bool restoring = false;                  // batches from before the restart are ingested
  bool behind = false;                     // true until caught_up(): the input lags behind
  std::map<std::string, TimeNs> over;      // while restoring: end time of each job's last ended run
  std::map<std::string, TimeNs> ended_ns;  // like `over`, but at any time
  std::map<std::string, TimeNs> agents;    // remote hosts: start of the disconnection; kNoTime: connected
  // judgements of diagnoses, by job and run
  std::map<std::pair<std::string, uint32_t>, Judgements> judgements;
  StoredVerdicts before;
  PassedOver passed_over;

  explicit Impl(LiveOptions o)
      : options(std::move(o)),
        schedule(options),
        parsing(options.host, options.roots, options.uid),
        router(*this, options.uid, options.seen, options.users_of),
        names(options.uid) {
    parsing.pods = options.pods;
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

  // Drops the job that ended first. False: all jobs are running.
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
      const TimeNs wrote = job->hosts().empty() ? job->due.written_ns : job->last_ns();
      const TimeNs last = reading.contains(id) ? at : wrote;
      const bool idle = at - last >= options.ended_after_ns && !(options.alive && options.alive(id) == true);
      const bool shown = options.shown && options.shown(id);
      out.jobs.push_back(job.get());
      out.all.push_back({job->claim.owner, shown ? JobOrigin::kShown : job->claim.origin, last, idle,
                         job->memory_bytes(), job->last_ns()});
    }
    return out;
  }

  // Makes room for one more job: drops an ended job, or takes the engine of a running one.
  bool make_room(const std::string& id, const JobClaim& wants) {
    while (jobs.size() >= options.jobs_max) {
      if (forget_ended()) continue;
      const Holders held = holders(wants.at);
      const auto victim = gives_way(held.all, wants, options.jobs_max);
      if (!victim) return false;
      LiveJob& job = *held.jobs[*victim];
      if (!job.due.fresh && wants.at - job.last_ns() >= kReadWithin) {  // an old job that is read
        end(job, wants.at);
        continue;
      }
      const EngineHolder& holder = held.all[*victim];
      const auto of_owner = std::count_if(held.all.begin(), held.all.end(),
                                          [&](const EngineHolder& h) { return h.owner == holder.owner; });
      give_way(job, EngineLack::kSlot, wants.at,
               fmt::format("{} held {} of {} engines, and job {} of {} needed one", holder.owner, of_owner,
                           options.jobs_max, id, wants.owner));
      ++counts.gave_way_for_slots;
    }
    return true;
  }

  void give_way(LiveJob& job, EngineLack lack, TimeNs at, const std::string& why) {
    JobClaim claim = job.claim;
    claim.at = at;
    claim.old = !job.due.fresh;
    without_engine.add(job.id(), lack, why, claim);
    std::vector<LiveEvent> out;
    note_lines(job);
    const char* later = lack == EngineLack::kSlot ? "is not read yet" : "is evidence only";
    job.give_way(at, fmt::format("this run lost its engine: {}; what came later {}", why, later), out);
    ++counts.jobs_ended;
    push(out);
    if (job.due.fresh)
      ended_ns[job.id()] = job.last_ns();
    else
      read_again(job);
    for (const StreamId id : job.streams().ids()) forget(id);
  }

  // Schedules an old job for a complete second reading, since it lost its engine before its data was read to
  // the end.
  void read_again(LiveJob& job) {
    without_engine.note_unread(job.id());
    for (const StreamId id : job.streams().ids())
      if (const auto known = streams.find(id); known != streams.end())
        known->second.read_until = known->second.lines_before = known->second.lines_refused = 0;
  }

  // Takes engines from the largest jobs until the engines' memory is within the limit.
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

  // Includes memory for one report, which needs it temporarily.
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
      return begin(id, {owner_of(from), origin, at, is_old(at)}, true);
    LiveJob& job = *known->second;
    if (origin > job.claim.origin) job.claim = {owner_of(from), origin, at};
    return &job;
  }

  // Whether the piece at hand was written long before it was read.
  bool is_old(TimeNs at) const { return at - written_ns >= options.ended_after_ns; }
  void note_written(LiveJob& job, TimeNs at) {
    job.due.written_ns = std::max(job.due.written_ns, written_ns);
    job.due.fresh = job.due.fresh || !is_old(at);
  }

  // Whether the job may have an engine: checks the limits and the free slots.
  bool gets_engine(const std::string& id, const JobClaim& claim) {
    if (options.evidence_only.contains(id))
      without_engine.add(id, EngineLack::kDeaths,
                         "the daemon ran out of memory twice while it worked on this job", claim);
    if (!without_engine.may_ask(id, claim.at)) return false;
    const bool shown = options.shown && options.shown(id);
    if (make_room(id, {claim.owner, shown ? JobOrigin::kShown : claim.origin, claim.at, claim.old}))
      return true;
    without_engine.add(id, EngineLack::kSlot,
                       fmt::format("other jobs hold all {} engines, and {}", options.jobs_max,
                                   claim.old ? "nothing was written to this one for long"
                                             : claim.owner + " has its share or is less well known"),
                       claim);
    return false;
  }

  // Starts a run of a job that is not running. `here`: the run may be on this host, so earlier lines about
  // this host belong to it.
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
    out.due.written_ns = claim.old ? at - options.ended_after_ns : at;
    out.due.fresh = !here;  // data from other hosts is never old
    std::vector<LiveEvent> started;
    if (const auto judged = judgements.find({id, out.run()}); judged != judgements.end())
      out.judge(judged->second, at, started);
    if (!behind) load_before(out);
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
    if (here && !claim.old)
      backlog.replay(at, [&](StreamId stream, const HostLine& line) {
        if (const auto source = streams.find(stream); source != streams.end())
          out.ingest_host_lines(source->second, {&line, 1}, at);
      });
    return &out;
  }

  // A job whose past was passed over cannot tell whether what was announced still holds.
  void load_before(LiveJob& job) {
    if (passed_over.has(job)) return;
    for (Verdict& one : before.take(job.id(), job.run())) {
      const bool hang = one.leads && one.diagnosis.symptom == Symptom::kHang;
      job.due.hung_before = job.due.hung_before || hang;
      job.events().load(std::move(one));
    }
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
    if (const auto late = reading.find(job_of(stream)); late != reading.end()) {
      uint64_t& arrived = late->second.arrived[piece.stream];
      arrived = std::max(arrived, piece.offset + piece.bytes.size());
    } else {
      ingest_new(stream, piece, at);
    }
  }

  // Skips bytes that were already read from the store.
  void ingest_new(LiveStream& stream, const Piece& piece, TimeNs at) {
    const bool is_new = !stream.late || piece.offset >= stream.read_until;
    if (piece.bytes.empty() || is_new) return ingest_at(stream, piece, at);
    if (piece.offset + piece.bytes.size() <= stream.read_until) return;
    Piece rest = piece;
    rest.bytes.erase(0, stream.read_until - piece.offset);
    rest.offset = stream.read_until;
    ingest_at(stream, rest, at);
  }

  void ingest_at(LiveStream& stream, const Piece& piece, TimeNs at) {
    const Working working(options, job_of(stream));
    written_ns = piece.written_ns == kNoTime ? at : std::min(piece.written_ns, at);
    RoutedJob* job = router.route(stream, piece, at);
    counts.broken_trace_lines = router.broken_trace_lines();
    counts.refused = router.refused();
    if (job) {
      stream.read_until = std::max(stream.read_until, piece.offset + piece.bytes.size());
      stream.lines_refused = 0;
      note_written(static_cast<LiveJob&>(*job), at);
      if (stream.info.kind == OriginKind::kSocket)
        join_chain(names, static_cast<LiveJob&>(*job), stream.info);
      after(static_cast<LiveJob&>(*job), at);
    }
    balance_memory(at);
  }

  // ---- jobs that are read from the store

  // Starts engines for waiting jobs while slots are free. Old jobs are given time for reading their data.
  std::vector<std::string> begin_reading(TimeNs now) {
    std::vector<std::string> out;
    for (const std::string& id : without_engine.waiting()) {
      JobClaim claim = without_engine.find(id)->claim;
      claim.at = now;
      before.forget(id);  // the store may lack some of its data
      if (!begin(id, claim, true)) break;
      reading[id] = {};
      for (auto& [number, stream] : streams)
        if (job_of(stream) == id && !is_of_host(stream.info.kind)) {
          stream.lines_before -= std::min(stream.lines_before, stream.lines_refused);
          stream.lines_refused = 0;
          stream.rest.clear();
          stream.late = true;
        }
      out.push_back(id);
    }
    return out;
  }

  void read(const Piece& piece) {
    const auto known = streams.find(piece.stream);
    if (known == streams.end()) return;
    LiveStream& stream = known->second;
    const auto of = reading.find(job_of(stream));
    if (of == reading.end() || !running(of->first)) return;
    uint64_t& until = of->second.read[piece.stream];
    until = std::max(until, piece.offset + piece.bytes.size());
    // Data of an ended run, from a source that is known from the store alone.
    const auto ended = ended_ns.find(of->first);
    if (stream.stored && ended != ended_ns.end() && piece.time_ns <= ended->second) {
      if (stream.info.kind == OriginKind::kFile) stream.lines_before += count_lines(piece.bytes);
      return;
    }
    ingest_new(stream, piece, piece.time_ns);
  }

  // `at_most`: finishes the jobs even if data is unread. Returns whether all data is read.
  bool end_reading(bool at_most) {
    for (auto at = reading.begin(); at != reading.end();) {
      LiveJob* job = running(at->first);
      Reading& of = at->second;
      const bool all =
          std::ranges::all_of(of.arrived, [&](const auto& a) { return a.second <= of.read[a.first]; });
      if (job && !all && !at_most) {
        ++at;
        continue;
      }
      if (job) job->due.urgent = true;
      at = reading.erase(at);
    }
    return reading.empty();
  }

  void refuse(LiveStream& stream, const Piece& piece) override {
    if (!restoring) counts.bytes_refused += piece.bytes.size();
    without_engine.count(job_of(stream), piece.bytes.size(), piece.time_ns);
    without_engine.note_unread(job_of(stream));
    if (stream.info.kind != OriginKind::kFile) return;
    const uint64_t lines = count_lines(piece.bytes);
    stream.lines_before += lines;
    stream.lines_refused += lines;
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

  // Like job_for(), for a remote host. Data older than the job's end on other hosts is late and starts no
  // run.
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
        return remote_job(names.chain_of(id, stream->info()), batch.host, when, begins);
      };
      const Working working(options, stream ? stream->job() : "");
      const RemoteStream::At when{at, restoring ? at : now, batch.passes_over};
      LiveJob* job = stream ? stream->ingest(piece, when, job_of) : nullptr;
      if (job && stream->passed_over()) passed_over.note(*job, at);
      if (job) join_chain(names, *job, stream->info());
      if (!stream || stream->blocks_lost() > lost) {
        ++counts.remote_blocks_lost;
        if (behind) before.forget(stream ? stream->job() : "");
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
    else if (!job.streams().all_ended() && !job.reported_end())
      job.due.end_ns = kNoTime;
  }

  void report(LiveJob& job, TimeNs now, bool hangs, bool at_once = false) {
    const TimeNs began = options.timer ? options.timer() : 0;
    const Working working(options, job.id());
    std::vector<LiveEvent> out;
    job.make_report(now, {hangs, at_once || restoring}, out);
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
    ended_ns[job.id()] = job.last_ns();
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

  // Running jobs in the order of their reports: first, jobs of owners whose reports took less time. On a tie,
  // jobs after the one that reported last, so that the first jobs do not use up the share at each tick.
  std::vector<LiveJob*> in_turn(TimeNs now) {
    std::vector<std::pair<TimeNs, LiveJob*>> order;
    auto at = jobs.upper_bound(reported_last);
    for (size_t n = jobs.size(); n > 0; --n, ++at) {
      if (at == jobs.end()) at = jobs.begin();
      if (at->second->running() && !reading.contains(at->first))
        order.emplace_back(schedule.debt(*at->second, now), at->second.get());
    }
    std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
    std::vector<LiveJob*> out;
    for (const auto& [debt, job] : order) out.push_back(job);
    return out;
  }

  std::optional<TimeNs> tick_jobs(TimeNs now) {
    std::optional<TimeNs> next;
    for (LiveJob* job : in_turn(now)) {
      tick_job(*job, now);
      if (!job->running()) continue;
      const TimeNs check = schedule.next_check(*job, now);
      next = std::min(next.value_or(check), check);
    }
    return next;
  }

  // Report on a job with data that no engine has read.
  Report unread_report(Report report, const std::string& job, const std::string& why) {
    report.job.id = job;
    report.problems.insert(report.problems.begin(), {"", std::nullopt, "not read yet: " + why});
    conclude(report);
    return report;
  }
  std::optional<Report> report_without_engine(const std::string& id) {
    const JobsWithoutEngine::Job* job = without_engine.find(id);
    if (!job || !job->waits()) return std::nullopt;
    return unread_report({}, id, job->note);
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
    counts.waiting =
        reading.size() + static_cast<size_t>(std::ranges::count_if(
                             without_engine.all(), [](const auto& j) { return j.second.waits(); }));
    counts.named_without_engine.clear();
    for (const auto& [id, job] : without_engine.all()) {
      if (counts.named_without_engine.size() == kNamed) break;
      counts.named_without_engine.push_back(id);
    }
  }
};

}  // namespace culprit::app
