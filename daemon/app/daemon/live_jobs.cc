#include "app/daemon/live_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/daemon/job_recognition.h"
#include "app/daemon/live_job.h"
#include "app/daemon/remote_sessions.h"
#include "base/text.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

using Json = nlohmann::ordered_json;

// A report may cost a tenth of the thread's time where something hurries, else a hundredth.
constexpr int64_t kUrgentShare = 10, kSlowShare = 100;
constexpr TimeNs kSlowest = 300 * kNsPerSecond;  // however much reports cost
// Between its last word and a job's end: its processes write on while they go.
constexpr TimeNs kLastWords = 5 * kNsPerSecond;
// Where nobody can tell whether a job's processes are there, silence may be a hang. After so long its engine
// is given back all the same.
constexpr TimeNs kForgotten = 6 * 3600 * kNsPerSecond;
// And this long where it may go on where nobody hears it: networks are cut for days, and hosts are lost.
constexpr TimeNs kForgottenUnheard = 7 * 24 * 3600 * kNsPerSecond;
// As of times in blocks (core/wire.h): 2116.
constexpr TimeNs kTimesEnd = TimeNs{1} << 62;
constexpr TimeNs kAskEvery = kNsPerSecond;
// Who was never seen alive cannot be seen to be gone: running jobs' processes are looked for too.
constexpr TimeNs kAskRunning = 30 * kNsPerSecond;
// A look at the processes that takes longer than this hangs: then the result of the last one counts.
constexpr TimeNs kLookWithin = 10 * kNsPerSecond;
// A possible hang that is none (a phase was announced) is looked at again.
constexpr TimeNs kLookAgain = 5 * kNsPerSecond;
// What depends on time alone (hangs, ends, slow reports) takes tens of seconds.
constexpr TimeNs kTickEvery = kNsPerSecond;

constexpr std::string_view kEventWords[] = {"job_started", "finding",      "diagnosis",   "diagnosis_gone",
                                            "job_ended",   "pool_changed", "steps_wanted"};
constexpr std::string_view kStateWords[] = {"running", "ended", "failed"};

uint64_t count_lines(std::string_view text) {
  return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

std::string_view word(LiveEventKind kind) { return kEventWords[static_cast<size_t>(kind)]; }
std::string_view word(JobState state) { return kStateWords[static_cast<size_t>(state)]; }

struct LiveJobs::Impl {
  LiveOptions options;
  LiveParsing parsing;
  LiveCounts counts;
  std::unordered_map<StreamId, LiveStream> streams;
  std::map<std::string, std::unique_ptr<LiveJob>> jobs;  // the last run of each
  std::map<std::string, uint32_t> next_run;
  uint64_t lines_of_ended = 0, refused_of_ended = 0;
  std::deque<LiveEvent> events;
  std::deque<LiveEvent> replayed;  // while restoring: the last findings
  KernelBacklog backlog;
  RemoteSessions remote;
  bool restoring = false;              // what is taken was told before
  bool behind = false;                 // what is taken is late
  std::map<std::string, TimeNs> over;  // while restoring: the end of the last run that is over
  TimeNs report_allowed_ns = kNoTime, reported_ns = kNoTime;
  std::map<std::string, TimeNs> agents;  // of other hosts: since when they are away; kNoTime: connected
  std::map<std::pair<std::string, uint32_t>, Judgements> judgements;  // of diagnoses, by job and run

  explicit Impl(LiveOptions o) : options(std::move(o)), parsing(options.host, options.roots) {
    parsing.use(options.rules.get(), options.zone);
  }

  // Findings wait in a bounded number; of what else there is nothing comes in storms.
  void push(std::vector<LiveEvent>& out) {
    for (LiveEvent& e : out) {
      e.replayed = restoring;
      if (e.kind == LiveEventKind::kStepsWanted && restoring) continue;  // what was answered comes too
      if (e.kind == LiveEventKind::kFinding && restoring) {
        if (replayed.size() >= limits::kLiveEvents) replayed.pop_front();
        replayed.push_back(std::move(e));
      } else if (e.kind == LiveEventKind::kFinding && events.size() >= limits::kLiveEvents) {
        ++counts.events_lost;
      } else {
        events.push_back(std::move(e));
      }
    }
    out.clear();
  }

  // Room for one more job: the one that ended first goes.
  bool make_room() {
    while (jobs.size() >= options.jobs_max) {
      auto oldest = jobs.end();
      for (auto it = jobs.begin(); it != jobs.end(); ++it)
        if (!it->second->running() &&
            (oldest == jobs.end() || it->second->last_ns() < oldest->second->last_ns()))
          oldest = it;
      if (oldest == jobs.end()) return false;
      jobs.erase(oldest);
      ++counts.jobs_forgotten;
    }
    return true;
  }

  // The running job of that id; made where there is none. Null where no engine takes what comes.
  LiveJob* job_for(const std::string& id, TimeNs at) {
    const auto known = jobs.find(id);
    if (known != jobs.end() && known->second->running()) return known->second.get();
    if (restoring)
      if (const auto end = over.find(id); end != over.end() && at <= end->second) return nullptr;
    if (known != jobs.end()) jobs.erase(known);
    if (!make_room()) return nullptr;
    auto job = std::make_unique<LiveJob>(id, next_run[id]++, options, parsing);
    LiveJob& out = *jobs.emplace(id, std::move(job)).first->second;
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
    e.summary = out.summary();
    e.summary->first_ns = e.summary->last_ns = at;  // what begins it is yet to be taken
    e.json = to_json(*e.summary);
    started.push_back(std::move(e));
    push(started);
    backlog.give(at, [&](StreamId stream, const KernelLine& line) {
      if (const auto kernel = streams.find(stream); kernel != streams.end())
        out.take_kernel(kernel->second, {&line, 1}, at);
    });
    return &out;
  }

  void take(const Piece& piece, TimeNs now) {
    take_bytes(piece, now);
    const auto known = streams.find(piece.stream);
    if (!piece.ends || known == streams.end()) return;
    known->second.ended = true;
    forget(piece.stream);
  }

  void take_bytes(const Piece& piece, TimeNs now) {
    counts.bytes += piece.bytes.size();
    const auto known = streams.find(piece.stream);
    if (known == streams.end()) {
      counts.bytes_refused += piece.bytes.size();
      return;
    }
    LiveStream& stream = known->second;
    const TimeNs at = piece.time_ns == kNoTime ? now : piece.time_ns;
    if (stream.info.kind == OriginKind::kKernel) return take_kernel(stream, piece, at);
    if (stream.info.kind == OriginKind::kDump && begins_file(piece)) stream.dump_job = only_running();
    const std::string& id = job_of(stream);
    // The end of a file says nothing to a job that is over: it begins no run.
    const auto running = jobs.find(id);
    const bool runs = running != jobs.end() && running->second->running();
    if (piece.bytes.empty() && !runs) return;
    TraceBatch trace;
    if (stream.info.kind == OriginKind::kSocket) {
      const bool trusted = options.uid && stream.info.uid == options.uid;
      if (piece.gap) stream.rest.clear();
      trace = read_trace(stream, piece.bytes, piece.offset, trusted);
      counts.broken_trace_lines += trace.broken.count;
      if (!runs && trace.understood == 0) {  // what nobody understands begins no job
        stream.broken_before.add(trace.broken);
        return;
      }
      trace.broken.add(std::exchange(stream.broken_before, {}));
    }
    LiveJob* job = job_for(id, at);
    if (!job) {
      if (!restoring) counts.bytes_refused += piece.bytes.size();
      if (stream.info.kind == OriginKind::kFile) stream.lines_before += count_lines(piece.bytes);
      return;
    }
    if (options.seen) options.seen(id, stream.info, piece);
    if (stream.info.kind == OriginKind::kSocket) {
      job->take_trace(stream, trace, piece, at);
      if (trace.ends) job->due.end_ns = at + kLastWords;
    } else {
      job->take(stream, piece, at);
    }
    after(*job, at);
  }

  // Empty where none runs, or several.
  std::string only_running() const {
    std::string out;
    for (const auto& [id, job] : jobs) {
      if (!job->running()) continue;
      if (!out.empty()) return "";
      out = id;
    }
    return out;
  }

  // A stream that ended gets no more pieces. Its lines count for as long as the run that has them.
  void forget(StreamId id) {
    const auto known = streams.find(id);
    if (known == streams.end() || !known->second.ended) return;
    const auto job = jobs.find(job_of(known->second));
    const bool needed =
        known->second.info.kind != OriginKind::kSocket && job != jobs.end() && job->second->running();
    if (!needed) streams.erase(known);
  }
  void take_kernel(LiveStream& stream, const Piece& piece, TimeNs at) {
    std::vector<KernelLine> lines = read_kernel(stream, piece.bytes);
    for (auto& [id, job] : jobs) {
      if (!job->running()) continue;
      job->take_kernel(stream, lines, at);
      after(*job, at);
    }
    backlog.keep(stream.info.id, std::move(lines));
  }

  // ---- other hosts

  // As job_for; what came of a host after the job ended elsewhere, and is older than its end, is late.
  LiveJob* remote_job(const std::string& id, TimeNs at, bool begins) {
    const auto known = jobs.find(id);
    if (known != jobs.end() && known->second->running()) return known->second.get();
    if (!begins || (known != jobs.end() && at <= known->second->last_ns())) return nullptr;
    return job_for(id, at);
  }

  void open_remote(const RemoteBatch& batch, const StreamInfo& info) {
    if (info.kind != OriginKind::kCondensed) return;  // how far the agent is, for itself
    remote.open({batch.epoch, info.id}, batch.host, info, core::rule_finder(options.rules.get()));
  }

  void take_remote(const RemoteBatch& batch, const Piece& piece, TimeNs now) {
    if (piece.bytes.empty() && !piece.ends) return;
    const RemoteSessions::Key key(batch.epoch, piece.stream);
    if (!piece.bytes.empty()) {
      ++counts.remote_blocks;
      counts.remote_bytes += piece.bytes.size();
      RemoteStream* stream = remote.block(key);
      const uint64_t lost = stream ? stream->blocks_lost() : 0;
      // A stranger's clock: what none tells is now.
      const bool told = piece.time_ns >= 0 && piece.time_ns < kTimesEnd;
      const TimeNs at = told ? piece.time_ns : now;
      const auto job_of = [&](const auto& id, TimeNs when, bool begins) {
        return remote_job(id, when, begins);
      };
      LiveJob* job = stream ? stream->take(piece, {at, restoring ? at : now}, job_of) : nullptr;
      if (!stream || stream->blocks_lost() > lost) {
        ++counts.remote_blocks_lost;
        counts.remote_lost_of = batch.host;
      }
      if (job) after(*job, at);
      const auto agent = agents.find(batch.host);
      if (job && agent != agents.end()) job->agent_away(batch.host, agent->second);
    }
    if (piece.ends) remote.end(key);
  }

  // What a job's engine found in the pieces it just took.
  void after(LiveJob& job, TimeNs at) {
    std::vector<LiveEvent> out;
    if (job.tell_findings(at, out)) job.due.urgent = true;
    push(out);
    if (job.streams_ended() && job.due.end_ns == kNoTime)
      job.due.end_ns = at + kLastWords;
    else if (!job.streams_ended() && !job.said_end())
      job.due.end_ns = kNoTime;
  }

  std::optional<bool> alive(LiveJob& job, TimeNs now) {
    LiveJob::Due& due = job.due;
    const bool stepped_back = now < due.asked_alive_ns;
    if (options.alive && (job.hosts().empty() || job.is_local()) &&
        (due.asked_alive_ns == kNoTime || stepped_back || now - due.asked_alive_ns >= kAskEvery)) {
      due.looked_ns = options.looked_ns ? options.looked_ns() : now;  // first: another look may end now
      due.alive = options.alive(job.id());
      due.asked_alive_ns = now;
    }
    if (job.hosts().empty()) return due.alive;
    const auto elsewhere = job.hosts().alive(now);
    if (!job.is_local() || elsewhere == true) return elsewhere;
    return due.alive == true || elsewhere ? due.alive : std::nullopt;
  }

  bool may_report(TimeNs now) const {
    // A clock that was set back lets no job wait for it.
    return report_allowed_ns == kNoTime || now >= report_allowed_ns || now < reported_ns;
  }

  void report(LiveJob& job, TimeNs now, bool hangs, bool at_once = false) {
    const TimeNs began = options.timer ? options.timer() : 0;
    std::vector<LiveEvent> out;
    job.make_report(now, hangs, at_once || restoring, out);
    push(out);
    const TimeNs cost = options.timer ? options.timer() - began : 0;
    ++counts.reports;
    counts.report_ns += cost;
    reported_ns = now;
    report_allowed_ns = now + kUrgentShare * cost;
    job.due.urgent = false;
    job.due.report_ns = now + std::min(kSlowest, std::max(options.report_every_ns, kSlowShare * cost));
  }

  // Whether the job's processes allow its silence to be a hang: a finished job is silent too. The processes
  // are looked at again after the stall began: an earlier look proves nothing.
  bool may_hang(LiveJob& job, TimeNs now) {
    if (!job.may_stall(now)) {
      job.due.stalled_ns = kNoTime;
      return true;
    }
    TimeNs& since = job.due.stalled_ns;
    if (since == kNoTime || now < since) since = now;
    if (alive(job, now) == false) return false;
    const bool asked = options.looked_ns && (job.hosts().empty() || job.is_local());
    return !asked || job.due.looked_ns >= since || now - since >= kLookWithin;
  }

  // Whether the job's hang began or ended since its last report; asked now and then where it may have begun.
  bool stall_changed(LiveJob& job, TimeNs now) {
    const bool hangs = job.report().hang.has_value();
    if (!job.may_stall(now)) return hangs;
    if (hangs) return false;
    const TimeNs asked = job.due.asked_stall_ns;
    if (asked != kNoTime && now >= asked && now - asked < kLookAgain) return false;
    if (!may_hang(job, now)) return false;
    job.due.asked_stall_ns = now;
    return true;
  }

  bool is_over(LiveJob& job, TimeNs now) {
    const TimeNs silent = now - job.silent_since();
    if (job.due.end_ns != kNoTime && now >= job.due.end_ns && silent >= kLastWords && job.end_is_known(now))
      return true;
    if (silent < options.ended_after_ns) return false;
    if (const auto lives = alive(job, now)) return !*lives;
    // Nobody knows: what said goodbye or is known to have failed is over.
    const bool explained = job.ended_well() || (job.conclusive() && !job.report().hang);
    const bool missing = job.hosts().somebody_missing(now);
    return (explained && !missing && !job.dirty()) || silent >= (missing ? kForgottenUnheard : kForgotten);
  }

  void end(LiveJob& job, TimeNs now) {
    for (const auto& [id, lines] : job.lines_of_streams())
      if (const auto known = streams.find(id); known != streams.end()) known->second.lines_before = lines;
    lines_of_ended += job.lines();
    refused_of_ended += job.refused();
    std::vector<LiveEvent> out;
    job.end(now, options.pool, out);
    ++counts.jobs_ended;
    push(out);
    for (const StreamId id : job.streams()) forget(id);
  }

  void tick_job(LiveJob& job, TimeNs now) {
    const TimeNs asked = job.due.asked_alive_ns;
    if (asked == kNoTime || now - asked >= kAskRunning) alive(job, now);
    job.settle_dumps(now);
    job.settle_loop(now);
    job.settle_files(now);
    after(job, now);
    const auto announces = job.announces_at();
    const bool set_back = job.due.report_ns > now + kSlowest;  // the clock was
    const bool slow = job.dirty() && (set_back || now >= job.due.report_ns);
    const bool settled = announces && now >= *announces;
    if (may_report(now) && (job.due.urgent || slow || settled || stall_changed(job, now)))
      report(job, now, may_hang(job, now));
    if (is_over(job, now)) end(job, now);
  }

  void count_lines_taken() {
    counts.lines = lines_of_ended;
    for (const auto& [id, job] : jobs)
      if (job->running()) counts.lines += job->lines();
  }
};

LiveJobs::LiveJobs(LiveOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LiveJobs::~LiveJobs() = default;

void LiveJobs::take(const PieceBatch& batch, TimeNs now) {
  for (const StreamInfo& info : batch.opened) impl_->streams[info.id].info = info;
  for (const Piece& piece : batch.pieces) impl_->take(piece, now);
  impl_->count_lines_taken();
}

void LiveJobs::take(const RemoteBatch& batch, TimeNs now) {
  for (const StreamInfo& info : batch.batch.opened) impl_->open_remote(batch, info);
  for (const Piece& piece : batch.batch.pieces) impl_->take_remote(batch, piece, now);
  impl_->count_lines_taken();
}

void LiveJobs::agent_away(const std::string& host, TimeNs since) {
  constexpr size_t kAgents = 16'384;
  if (impl_->agents.size() < kAgents || impl_->agents.contains(host)) impl_->agents[host] = since;
  for (auto& [id, job] : impl_->jobs)
    if (job->running()) job->agent_away(host, since);
}

std::optional<TimeNs> LiveJobs::tick(TimeNs now) {
  if (impl_->behind) return std::nullopt;
  std::optional<TimeNs> next;
  for (auto& [id, job] : impl_->jobs) {
    if (job->running()) impl_->tick_job(*job, now);
    if (!job->running()) continue;
    const TimeNs at = job->due.urgent ? impl_->report_allowed_ns : now + kTickEvery;
    next = std::min(next.value_or(now + kTickEvery), std::max(at, now + kNsPerMs));
  }
  return next;
}

void LiveJobs::restoring(std::span<const RunEnd> ends) {
  impl_->restoring = impl_->behind = true;
  for (const RunEnd& end : ends) {
    TimeNs& last = impl_->over.try_emplace(end.job, end.last_ns).first->second;
    last = std::max(last, end.last_ns);
    uint32_t& next = impl_->next_run[end.job];
    next = std::max(next, end.run + 1);
  }
}

void LiveJobs::replayed(TimeNs now) {
  for (auto& [id, job] : impl_->jobs)
    if (job->running()) impl_->report(*job, now, false, true);
  std::move(impl_->replayed.begin(), impl_->replayed.end(), std::back_inserter(impl_->events));
  impl_->replayed.clear();
  impl_->restoring = false;
  impl_->over.clear();
}

// What was written while nobody read is only being read: whether silence is a hang is asked a little later.
void LiveJobs::caught_up(TimeNs now) {
  impl_->behind = false;
  for (auto& [id, job] : impl_->jobs) {
    job->due.asked_stall_ns = now;
    job->back(now);
  }
}

std::vector<LiveEvent> LiveJobs::poll_events() {
  std::vector<LiveEvent> out(std::make_move_iterator(impl_->events.begin()),
                             std::make_move_iterator(impl_->events.end()));
  impl_->events.clear();
  return out;
}

std::optional<std::string> LiveJobs::report_json(const std::string& job, TimeNs now, Charts charts) {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return std::nullopt;
  LiveJob& j = *known->second;
  if (j.running() && j.dirty() && impl_->may_report(now)) impl_->report(j, now, impl_->may_hang(j, now));
  return j.report_json(charts);
}

std::optional<uint32_t> LiveJobs::run_of(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() ? std::nullopt : std::optional(known->second->run());
}

std::vector<LiveJobSummary> LiveJobs::jobs() const {
  std::vector<LiveJobSummary> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(job->summary());
  std::stable_sort(out.begin(), out.end(),
                   [](const LiveJobSummary& a, const LiveJobSummary& b) { return a.first_ns > b.first_ns; });
  return out;
}

bool LiveJobs::settled(const std::string& job) const {
  const auto known = impl_->jobs.find(job);
  return known == impl_->jobs.end() || known->second->settled();
}

void LiveJobs::judge(const Judgement& judgement, TimeNs now) {
  constexpr size_t kRuns = 10'000;  // that people judged
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

std::string LiveJobs::rules_json() const {
  Json items = Json::array();
  if (impl_->options.rules)
    for (const rules::Rule& rule : impl_->options.rules->rules())
      items.push_back({{"id", rule.id},
                       {"title", rule.title},
                       {"severity", word(rule.severity)},
                       {"category", word(rule.category)},
                       {"component", word(rule.component)},
                       {"role", rules::word(rule.role)},
                       {"action", word(rule.action)},
                       {"enabled", rule.enabled},
                       {"file", rule.place.file},
                       {"line", rule.place.line}});
  return Json{{"items", std::move(items)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void LiveJobs::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  impl_->options.rules = std::move(rules);
  for (auto& [id, job] : impl_->jobs) job->replace_rules(impl_->options.rules);
  impl_->remote.set_rules(core::rule_finder(impl_->options.rules.get()));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
}

void LiveJobs::change(const detect::StallOptions& hang, TimeNs ended_after_ns) {
  impl_->options.hang = hang;
  impl_->options.ended_after_ns = ended_after_ns;
  for (auto& [id, job] : impl_->jobs) job->set_hang(hang);
}

void LiveJobs::set_healthy(std::vector<std::string> jobs) { impl_->options.healthy = std::move(jobs); }

void LiveJobs::overran(const std::string& rule) {
  for (auto& [id, job] : impl_->jobs) job->overran(rule);
}

size_t LiveJobs::remote_streams() const { return impl_->remote.size(); }
size_t LiveJobs::streams() const { return impl_->streams.size(); }

size_t LiveJobs::running() const {
  return static_cast<size_t>(std::count_if(impl_->jobs.begin(), impl_->jobs.end(),
                                           [](const auto& j) { return j.second->running(); }));
}

const detect::Pool& LiveJobs::pool() const { return impl_->options.pool; }
const LiveCounts& LiveJobs::counts() const { return impl_->counts; }

}  // namespace culprit::app
