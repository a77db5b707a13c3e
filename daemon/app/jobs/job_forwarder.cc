#include "app/jobs/job_forwarder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "app/jobs/batch_ahead.h"
#include "app/jobs/flush_parts.h"
#include "app/jobs/forwarded_job.h"
#include "app/jobs/forwarded_streams.h"
#include "app/jobs/job_names.h"
#include "app/jobs/job_router.h"
#include "app/jobs/job_shares.h"
#include "base/check.h"
#include "base/thread_owner.h"

namespace culprit::app {
namespace {

// Interval at which the state of processes of a silent job is reported.
constexpr TimeNs kAliveEvery = 30 * kNsPerSecond;

}  // namespace

struct JobForwarder::Impl final : JobTable {
  ThreadOwner owner;
  JobForwarderOptions options;
  LiveParsing parsing;
  JobRouter router;
  JobForwarderCounts counts;
  ForwardedStreams streams;
  std::map<std::string, std::unique_ptr<ForwardedJob>> jobs;
  HostBacklog backlog;
  std::vector<Piece> ends;  // ends of condensed streams, for the next flush
  SessionCounts of_ended;   // jobs
  bool hurry = false;

  explicit Impl(JobForwarderOptions o)
      : options(std::move(o)),
        parsing(options.host, options.roots, options.uid),
        router(*this, options.uid, options.seen, options.users_of) {
    parsing.pods = options.pods;
    parsing.threads = options.threads;
    parsing.dumps.reading = options.reading;
    parsing.dumps.left_out = options.left_out;
    parsing.use(options.rules.get(), options.zone);
  }

  void ingest(const Piece& given, uint64_t sequence, TimeNs now) {
    ForwardedStream* stream = streams.find(given.stream);
    if (!stream) {
      counts.bytes_refused += given.bytes.size();
      return;
    }
    const TimeNs at = given.time_ns == kNoTime ? now : given.time_ns;
    if (!stream->resumes) return ingest_new(*stream, given, sequence, at);
    Piece piece = given;
    if (stream->cut(piece)) ingest_new(*stream, piece, sequence, at);
  }

  void ingest_new(ForwardedStream& stream, const Piece& piece, uint64_t sequence, TimeNs at) {
    const OriginKind kind = stream.live.info.kind;
    if (is_of_host(kind)) {
      ingest_host_lines(stream, piece, at);
    } else {
      stream.live.lines_before = stream.lines;
      router.route(stream.live, piece, at);
      counts.broken_trace_lines = router.broken_trace_lines();
    }
    streams.advance(stream, piece, sequence, kind == OriginKind::kDump && dump_pending(stream));
  }

  bool dump_pending(const ForwardedStream& stream) const {
    const auto job = jobs.find(job_of(stream.live));
    return job != jobs.end() && job->second->sources().dump_pending(stream.live.info.id);
  }

  void settle_dumps(ForwardedJob& job, TimeNs now) {
    if (!job.sources().settle_dumps(now)) return;
    for (auto& [id, stream] : streams.all())
      if (stream.live.info.kind == OriginKind::kDump && stream.mark != stream.end && !dump_pending(stream))
        streams.complete_dump(stream);
  }

  void refuse(LiveStream&, const Piece& piece) override { counts.bytes_refused += piece.bytes.size(); }
  ForwardedJob* running(const std::string& id) override {
    const auto known = jobs.find(id);
    return known == jobs.end() ? nullptr : known->second.get();
  }
  std::string only_running() const override { return jobs.size() == 1 ? jobs.begin()->first : ""; }

  // Makes room for one more job: a running job is removed, and its session ends.
  bool make_room(const JobClaim& wants) {
    std::vector<ForwardedJob*> running;
    std::vector<EngineHolder> holders;
    for (auto& [id, job] : jobs) {
      if (job->over) continue;
      const bool idle = wants.at - job->last_ns >= options.ended_after_ns && job->reported != true;
      running.push_back(job.get());
      holders.push_back({job->claim.owner, job->claim.origin, job->last_ns, idle, 0});
    }
    if (running.size() < options.jobs_max) return true;
    const auto victim = gives_way(holders, wants, options.jobs_max);
    if (victim) end(*running[*victim], wants.at);
    return victim.has_value();
  }

  ForwardedJob* open(const std::string& id, const StreamInfo& from, TimeNs at) override {
    const JobOrigin origin = origin_of(from, options.uid);
    const auto known = jobs.find(id);
    if (known != jobs.end()) {
      JobClaim& claim = known->second->claim;
      if (origin > claim.origin) claim = {owner_of(from), origin, at};
      return known->second.get();
    }
    const JobClaim claim{owner_of(from), origin, at};
    if (!make_room(claim)) return nullptr;
    ForwardedJob& job = *jobs.emplace(id, std::make_unique<ForwardedJob>(id, options, parsing)).first->second;
    job.last_ns = at;
    job.claim = claim;
    for (const auto& [stream, known_stream] : streams.all())
      if (is_of_host(known_stream.live.info.kind))
        job.host_marks[stream] = {known_stream.end, true, kNoStream};
    backlog.replay(at, [&](StreamId stream, const HostLine& line) {
      if (const ForwardedStream* source = streams.find(stream))
        job.sources().ingest_host_lines(source->live, {&line, 1}, at);
    });
    return &job;
  }

  void ingest_host_lines(ForwardedStream& stream, const Piece& piece, TimeNs at) {
    std::vector<HostLine> lines = read_host_lines(stream.live, piece.bytes, piece.offset);
    for (auto& [id, job] : jobs) job->ingest_host_lines(stream.live, piece, lines, at);
    backlog.keep(stream.live.info.id, std::move(lines));
  }

  // ---- time

  void tick(const std::string& id, ForwardedJob& job, TimeNs now) {
    settle_dumps(job, now);
    for (const StreamId cut : job.sources().settle_files(now).cut) streams.complete_line(cut);
    if (job.asked_ns != kNoTime && now >= job.asked_ns && now - job.asked_ns < kAskEvery) return;
    job.asked_ns = now;
    job.writer().tick(now);
    std::optional<bool> alive = options.alive ? options.alive(id) : std::nullopt;
    const bool all_ended = job.streams().all_ended();
    if (!alive && all_ended) alive = false;
    const TimeNs silent = now - job.last_ns;
    if (alive && (alive != job.reported || (silent >= kAliveEvery && now - job.reported_ns >= kAliveEvery))) {
      hurry = hurry || alive != job.reported;
      job.reported = alive;
      job.reported_ns = now;
      job.writer().alive(*alive, now);
    }
    if (silent >= (alive.value_or(true) ? kForgotten : options.ended_after_ns) && alive != true)
      end(job, now);
  }

  // Ends the job; incomplete lines count as lines.
  void end(ForwardedJob& job, TimeNs now) {
    if (std::exchange(job.over, true)) return;
    job.sources().end(now);
    for (const StreamId id : job.streams().ids()) {
      streams.complete_line(id);
      if (ForwardedStream* known = streams.find(id)) known->live.rest.clear();
    }
  }

  // ---- flush

  // A job's block and its marks are in one part, so a kill between two parts causes no repetition. The mark
  // of the whole evidence comes last.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now) {
    FlushParts out(options, now);
    for (Piece& last : std::exchange(ends, {})) {
      out.may_part();
      out.add(std::move(last));
    }
    auto moved = streams.moved();
    for (auto& [id, job] : jobs) {
      out.may_part();
      job->add_block(out, counts);
      job->add_host_marks(out, streams);
      // Marks without room here belong only to incomplete lines that were completed by the job's end.
      for (ForwardedStream* stream : moved[id])
        if (out.has_room()) streams.write(*stream, out);
    }
    streams.write_rest(sequence, out);
    count();
    std::erase_if(jobs, [](const auto& job) { return job.second->over; });
    hurry = false;
    return out.finish();
  }

  void count() {
    SessionCounts all = of_ended;
    for (const auto& [id, job] : jobs) {
      all += job->counts();
      if (job->over) of_ended += job->counts();
    }
    counts.lines = all.lines;
    counts.bytes = all.bytes;
    counts.dropped_lines = all.lines_lost;
    counts.dropped_notes = all.notes_lost;
  }
};

JobForwarder::JobForwarder(JobForwarderOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
JobForwarder::~JobForwarder() = default;

void JobForwarder::resume(const std::vector<StreamState>& known, TimeNs now) {
  Impl& s = *impl_;
  std::vector<const StreamState*> of_one_job;
  for (const StreamState& state : known) {
    if (state.ended) continue;
    const bool ours = state.info.kind == OriginKind::kMark && state.place &&
                      state.place->device == s.options.evidence_epoch;
    if (ours && s.streams.resume(state)) continue;
    if (ours && state.place->fingerprint == kOfOneJob) {
      of_one_job.push_back(&state);
    } else {  // a session of the previous process, or a mark of another spool
      // Opens the session's job at once, so that even a silent job gets lines about the host.
      ForwardedJob* job = nullptr;
      if (state.info.kind == OriginKind::kCondensed) job = s.open(state.info.job, state.info, now);
      std::vector<Piece>& ends = job ? job->before : s.ends;
      ends.push_back(end_of(state.info.id, state.size));
    }
  }
  for (const StreamState* state : of_one_job) {
    const MarkPlace mark = MarkPlace::from(*state->place);
    const auto job = s.jobs.find(state->info.job);
    if (job == s.jobs.end())
      s.ends.push_back(end_of(state->info.id));
    else
      job->second->host_marks[static_cast<StreamId>(mark.stream)] = {mark.offset, false, state->info.id};
  }
}

uint64_t JobForwarder::resume_behind() const { return impl_->streams.behind(); }

size_t JobForwarder::ingest(const PieceBatch& batch, const Progress& taking, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  if (taking.first == 0)
    for (const StreamInfo& info : batch.opened) impl_->streams.open(info, taking.sequence);
  const auto stream_of = [this](StreamId id) -> const LiveStream* {
    const ForwardedStream* known = impl_->streams.find(id);
    return !known || known->resumes ? nullptr : &known->live;
  };
  const BatchAhead ahead({*impl_, impl_->parsing, stream_of}, {batch, taking.first, taking.next}, now);
  size_t next = taking.first;
  while (next < batch.pieces.size() && !full()) impl_->ingest(batch.pieces[next++], taking.sequence, now);
  return next;
}

void JobForwarder::tick(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  impl_->parsing.settle(now);
  for (auto& [id, job] : impl_->jobs) impl_->tick(id, *job, now);
}

void JobForwarder::answer(const std::string& job, const std::vector<int64_t>& steps) {
  CULPRIT_CHECK(impl_->owner.here());
  auto known = impl_->jobs.find(job);
  // The collector's id may contain the owner, while the name is free on this host.
  if (known == impl_->jobs.end()) known = impl_->jobs.find(std::string(name_of_job(job)));
  if (known == impl_->jobs.end()) return;
  known->second->writer().answer(steps);
  impl_->hurry = true;
}

bool JobForwarder::empty(TimeNs now) const {
  if (!impl_->ends.empty()) return false;
  for (const auto& [id, job] : impl_->jobs)
    if (job->over || !job->writer().empty(now)) return false;
  return !impl_->streams.any_moved();
}

bool JobForwarder::full() const {
  if (impl_->streams.full()) return true;
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer().full(); });
}

bool JobForwarder::urgent() const {
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer().urgent(); });
}

bool JobForwarder::hurries() const { return impl_->hurry; }

std::vector<PieceBatch> JobForwarder::flush(uint64_t sequence, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->flush(sequence, now);
}

// Also called before the worker starts, when no thread owns the forwarder yet.
void JobForwarder::keep_only(const std::set<StreamId>& known) {
  Impl& s = *impl_;
  const auto end_mark = [&](StreamId mark) {
    if (mark != kNoStream) s.ends.push_back(end_of(mark));
  };
  s.streams.keep_only(known, end_mark);
  for (auto& [id, job] : s.jobs)
    std::erase_if(job->host_marks, [&](const auto& mark) {
      if (known.contains(mark.first) || s.streams.contains(mark.first)) return false;
      end_mark(mark.second.stream);
      return true;
    });
}

// Undoes the effects of a rejected part: its streams are declared again, its marks are written again, and
// jobs with a block in it start new sessions.
void JobForwarder::refused(const PieceBatch& part) {
  for (const Piece& piece : part.pieces) impl_->counts.blocks_refused += piece.bytes.empty() ? 0 : 1;
  const RefusedPart lost(part);
  impl_->streams.refused([&](StreamId& mark) { return lost.lost(mark); });
  for (auto& [id, job] : impl_->jobs) job->refused(lost);
}

void JobForwarder::renew() {
  CULPRIT_CHECK(impl_->owner.here());
  for (auto& [id, job] : impl_->jobs) impl_->end(*job, job->last_ns);
}

void JobForwarder::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto before = std::exchange(impl_->options.rules, std::move(rules));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
  for (auto& [id, job] : impl_->jobs) job->writer().set_rules(impl_->options.rules.get());
}

void JobForwarder::set_ended_after(TimeNs ns) { impl_->options.ended_after_ns = ns; }

std::vector<std::string> JobForwarder::jobs() const {
  std::vector<std::string> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(id);
  return out;
}

size_t JobForwarder::streams() const { return impl_->streams.size(); }
const JobForwarderCounts& JobForwarder::counts() const { return impl_->counts; }

}  // namespace culprit::app
