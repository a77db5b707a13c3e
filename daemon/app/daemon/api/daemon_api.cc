#include "app/daemon/api/daemon_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/cluster_view.h"
#include "app/daemon/api/device_past.h"
#include "app/daemon/api/recovery_api.h"
#include "app/daemon/api/scheduler_facts.h"
#include "app/daemon/watch/copy_service.h"
#include "app/jobs/judgement.h"
#include "base/time.h"
#include "model/json_writer.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

// People's judgements from the index: of this diagnosis, and of others of the same kind.
struct StoredAnswers {
  bool is_read = false;
  std::vector<Verdict> verdicts;
  std::map<std::string, records::Judged> judged;
  std::vector<records::DeviceFault> faults;  // faults of the devices that the run accuses

  static Result<StoredAnswers> of(records::Records& index, const records::VerdictQuery& query) {
    auto verdicts = index.verdicts(query);
    if (!verdicts) return tl::unexpected(verdicts.error());
    auto judged = index.judged();
    if (!judged) return tl::unexpected(judged.error());
    StoredAnswers answers{true, std::move(*verdicts), std::move(*judged), {}};
    if (query.job.empty() || !query.run) return answers;
    auto faults = index.device_faults(query.job, *query.run);
    if (!faults) return tl::unexpected(faults.error());
    answers.faults = std::move(*faults);
    return answers;
  }

  // Adds earlier faults of the accused devices in other jobs to the reasons.
  void remember(Diagnosis& diagnosis, const serve::JobRun& of) const {
    for (const records::DeviceFault& own : faults) {
      if (own.job != of.job || own.run != of.run || own.diagnosis != diagnosis.id) continue;
      if (std::string past = past_of(own, faults); !past.empty()) diagnosis.why.push_back(std::move(past));
    }
  }

  // Adds people's judgements of this diagnosis and of its kind.
  void mark(Diagnosis& diagnosis, const std::string& job) const {
    const auto kind = judged.find(kind_of(diagnosis));
    if (kind == judged.end()) return;
    const records::Judged& j = kind->second;
    diagnosis.confirmed = Confirmation{j.by, j.hits, j.right, j.first_by, j.first_ns, {}};
    for (const Verdict& v : verdicts)
      if (!v.judged_by.empty() && v.job == job && v.id() == diagnosis.id) {
        diagnosis.confirmed->by = v.judged_by;
        diagnosis.confirmed->right_here = v.state == VerdictState::kConfirmed;
      }
  }

  // All verdicts belong to one run.
  void mark_state(Diagnosis& diagnosis) const {
    if (is_read && !diagnosis.state) diagnosis.state = VerdictState::kOpen;
    for (const Verdict& v : verdicts)
      if (v.id() == diagnosis.id) diagnosis.state = v.state;
  }

  Judgements judgements() const {
    Judgements out;
    for (const Verdict& v : verdicts)
      if (!v.judged_by.empty()) out[v.id()] = v.state == VerdictState::kConfirmed;
    return out;
  }
};

// Adds parts of culprit that failed to run to a report that leaves a question open.
void add_parts(Report& report, const std::vector<std::string>& troubles) {
  const bool asks = report.hang || !report.missing.empty() || (!report.verdict && !report.suspects.empty());
  if (!asks) return;
  const size_t before = report.missing.size();
  for (const std::string& trouble : troubles)
    if (!trouble.empty()) report.missing.push_back(trouble);
  if (!report.verdict && report.missing.size() > before) conclude_again(report);
}

void add_forward(json& out, const UplinkCounters& f) {
  out["jobs"] = f.jobs;
  out["lines"] = f.feed.lines;
  out["bytes"] = f.feed.bytes;
  json logs = json::object();
  for (const peer::Log log : peer::kLogs) {
    const auto i = static_cast<size_t>(log);
    const forward::LogProgress& sent = f.forward.logs[i];
    const Recorder::Frames& frames = f.frames[i];
    const uint64_t acked = std::max(frames.acknowledged, sent.acked);
    logs[peer::name_of(log)] = {{"written", frames.written},
                                {"acknowledged", acked},
                                {"waiting", frames.written - std::min(frames.written, acked)},
                                {"sent_bytes", sent.bytes},
                                {"left_out", sent.skipped_frames},
                                {"trouble", sent.trouble.empty() ? json(nullptr) : json(sent.trouble)}};
  }
  out["forward"] = {{"to", f.forward.to},
                    {"moves", f.forward.moves},
                    {"state", forward::name_of(f.forward.phase)},
                    {"sentence", f.sentence},
                    {"collector", f.forward.collector.empty() ? json(nullptr) : json(f.forward.collector)},
                    {"connected_since_ns", time_or_null(f.forward.connected_since_ns)},
                    {"last_error", f.forward.last_error.empty() ? json(nullptr) : json(f.forward.last_error)},
                    {"waits_since_ns", time_or_null(f.waits_since_ns)},
                    {"waiting_bytes", f.waiting_bytes},
                    {"unarchived_bytes", f.unarchived_bytes},
                    {"given_up_bytes", f.given_up_bytes},
                    {"caught_up", f.caught_up},
                    {"condensed_bytes", f.condensed.bytes},
                    {"block_bytes", f.feed.block_bytes},
                    {"certificate_expires_ns", time_or_null(f.certificate_expires_ns)},
                    {"logs", std::move(logs)}};
}

json copies_values(const CopyService& service) {
  const CopyCounters c = service.counters();
  const std::string trouble = service.trouble();
  return {{"copied", c.copied},
          {"failed", c.failed},
          {"pending", c.pending},
          {"sent_bytes", c.sent_bytes},
          {"last_copy_ns", time_or_null(c.last_copy_ns)},
          {"stored", c.store.copies},
          {"stored_bytes", c.store.bytes},
          {"trouble", trouble.empty() ? json(nullptr) : json(trouble)}};
}

json pods_values(const PodLogs::Counts& counts) {
  return {{"followed", counts.followed},
          {"jobs", counts.jobs},
          {"left_out", counts.left_out},
          {"waiting", counts.waiting},
          {"requests", counts.asked},
          {"trouble", counts.trouble.empty() ? json(nullptr) : json(counts.trouble)}};
}

// A problem of a healthy daemon that a restart would not solve.
std::string sentence_of(const LiveCounts& counts) {
  if (counts.without_engine == 0) return "ok";
  std::string names;
  for (const std::string& job : counts.named_without_engine) names += (names.empty() ? "" : ", ") + job;
  if (const size_t more = counts.without_engine - counts.named_without_engine.size(); more > 0)
    names += fmt::format(" and {} more", more);
  const bool one = counts.without_engine == 1;
  std::string what = fmt::format("{} kept as evidence only", one ? "is" : "are");
  if (counts.waiting >= counts.without_engine)
    what = fmt::format("{} not read yet", one ? "is" : "are");
  else if (counts.waiting > 0)
    what += fmt::format(", {} of them not read yet", counts.waiting);
  return fmt::format("ok, but {} no engine and {}: {}",
                     one ? "1 job has" : fmt::format("{} jobs have", counts.without_engine), what, names);
}

// Whether the diagnosis accuses the host.
bool names_host(const Diagnosis& diagnosis, const std::string& host) {
  return std::ranges::any_of(diagnosis.hosts, [&](const Suspect& place) { return place.host == host; });
}

}  // namespace

DaemonApi::DaemonApi(io::Env& env, AgentParts parts)
    : env_(env),
      parts_(std::move(parts)),
      now_jobs_(env, [this](auto done) { lists_.live_jobs(std::move(done)); }),
      counters_(env, [this](auto done) {
        const auto out = std::make_shared<std::vector<JobCounters>>();
        parts_.engine->query([out](LiveJobs& live, TimeNs now) { *out = live.counters(now); },
                             [out, done] { done(out); });
      }) {}

serve::Health DaemonApi::health() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (const auto why = parts_.watch->unhealthy(now)) return {false, *why};
  if (const Sources* sources = parts_.sources())
    if (const auto why = sources->stuck(now)) return {false, *why};
  return {true, parts_.engine ? sentence_of(parts_.engine->counts()) : "ok"};
}

std::unique_ptr<serve::ApiSource> DaemonApi::limited_to(const serve::Reader& reader) {
  if (parts_.access.sees_all(reader)) return nullptr;
  OpenToUsers open{[this](const Answer& answer) { answer(dump(status_values())); },
                   [this](const auto& answer) { answer(metrics_text(Counters::kOpen)); }};
  return std::make_unique<OwnView>(*this, lists_, std::move(open), *reader.uid);
}

void DaemonApi::on_evidence_read(const serve::EvidenceQuery& query, const serve::Reader& reader) {
  for (const std::string& sentence : audit_.on_read(query, reader, env_.now(io::Clock::kMonotonic)))
    parts_.inform(sentence);
}

void DaemonApi::status(Answer answer) {
  json out = status_values();
  if (parts_.alerts) out["alerts"] = alert_status(*parts_.alerts);
  const ActMode mode = parts_.config->act.mode;
  if (json controller = recovery_status(parts_.recovery, parts_.stopped_recovery, mode);
      !controller.is_null())
    out["controller"] = std::move(controller);
  if (parts_.leases) out["cluster"] = cluster_status(*parts_.leases, *parts_.shared);
  if (parts_.judgements) out["cluster"]["judgements"] = judgements_status(*parts_.judgements);
  if (parts_.shared_pools) out["cluster"]["pools"] = pools_status(*parts_.shared_pools);
  answer(dump(out));
}

json DaemonApi::status_values() {
  const serve::Health now = health();
  const Recorder::Counters store = parts_.recorder->counters();
  const SelfUsage usage = read_self_usage();
  json out = {{"version", CULPRIT_VERSION},
              {"host", parts_.config->host.name},
              {"role", parts_.uplink ? "agent" : "both"},
              {"healthy", now.ok},
              {"health", now.sentence},
              {"started_ns", parts_.counts->started_ns},
              {"restored", parts_.counts->restored},
              {"jobs", 0},
              {"lines", 0},
              {"bytes", 0},
              {"spool",
               {{"bytes", store.spool.bytes},
                {"max_bytes", parts_.config->spool.max_size},
                {"segments", store.spool.segments},
                {"dropped_segments", store.spool.dropped_segments},
                {"waiting_batches", store.waiting}}},
              {"records", {{"unreadable_rows", store.unreadable_rows}}},
              {"memory_bytes", usage.resident_bytes},
              {"anonymous_bytes", usage.anonymous_bytes},
              {"cpu_ns", usage.cpu_ns}};
  if (parts_.engine) {
    out["jobs"] = parts_.engine->jobs();
    out["lines"] = parts_.engine->counts().lines;
    out["bytes"] = parts_.engine->counts().bytes;
    out["engines"] = {{"memory_bytes", parts_.engine->counts().engine_bytes},
                      {"memory_max_bytes", parts_.engine->counts().engine_bytes_max},
                      {"jobs_without_engine", parts_.engine->counts().without_engine},
                      {"jobs_not_read", parts_.engine->counts().waiting}};
  }
  if (parts_.uplink) add_forward(out, parts_.uplink->counters());
  if (const CopyService* copies = parts_.copies ? parts_.copies() : nullptr)
    out["copies"] = copies_values(*copies);
  json tails = json::array();
  uint64_t lag = 0;
  if (const Sources* sources = parts_.sources()) {
    for (const Tails::Tail& tail : sources->tails().tails()) {
      lag += tail.stats.lag_bytes;
      tails.push_back({{"path", tail.glob},
                       {"files", tail.stats.files},
                       {"bytes", tail.stats.bytes},
                       {"lag_bytes", tail.stats.lag_bytes},
                       {"gaps", tail.stats.gaps},
                       {"refused", tail.stats.refused},
                       {"left_out", tail.stats.left_out}});
    }
    if (const PodLogs* pods = sources->pods()) out["pods"] = pods_values(pods->counts());
    out["watches_folders"] = sources->tails().watches_folders();
    out["kernel"] = sources->kernel() != nullptr;
    out["journal"] = sources->journal() != nullptr;
    out["trace_clients"] = sources->trace() ? json(sources->trace()->clients) : json(nullptr);
    out["rings"] = sources->rings() ? json(sources->rings()->rings.load()) : json(nullptr);
  }
  out["logs"] = std::move(tails);
  out["lag_bytes"] = lag;
  return out;
}

namespace {

// Data of engine and index on the requested report.
struct FoundReport {
  std::optional<Report> report;
  std::optional<uint32_t> run;
  std::string note;  // why the job has no engine
  std::optional<JobAttempts> attempts;
  std::optional<Error> unreadable;
  bool settled = true;
  StoredAnswers answers;
  bool wants_last = false;
  std::optional<ListedJob> last;  // the last run of the job
};

void find_live(FoundReport& found, const serve::JobRun& of, LiveJobs& live, TimeNs now) {
  found.run = live.run_of(of.job);
  if (found.run && of.run.value_or(*found.run) == *found.run) {
    found.report = live.report(of.job, now);
    found.settled = live.settled(of.job);
    if (auto known = live.attempts_of_job(of.job, *found.run)) found.attempts = std::move(known->attempts);
  } else {
    found.run = of.run;
  }
  for (const LiveJobSummary& job : live.jobs()) {
    if (job.id != of.job) continue;
    if (!job.has_engine) found.note = job.note.value_or("");
    if (found.wants_last && job.has_engine && !found.last) found.last.emplace(job);
  }
}

// A report without judgements is better than none.
void find_stored(FoundReport& found, const std::string& job, records::Records& index) {
  if (found.wants_last && !found.last)
    if (const auto last = index.job(job); last && *last) found.last.emplace(**last);
  if (!found.run)
    if (const auto last = index.job(job); last && *last) found.run = (*last)->run;
  if (!found.run) return;
  if (!found.report) {
    auto stored = index.report(job, *found.run);
    if (!stored) found.unreadable = stored.error();
    if (stored) found.report = std::move(*stored);
  }
  if (auto answers = StoredAnswers::of(index, {.job = job, .run = found.run}))
    found.answers = std::move(*answers);
}

// Applies people's judgements and adds the index's data on the diagnoses.
void finish(FoundReport& found, const std::string& job, const std::vector<std::string>& troubles) {
  Report& report = *found.report;
  report.job.run = found.run;
  report.settled = found.settled;
  judge_report(found.answers.judgements(), report);
  add_parts(report, troubles);
  for (Diagnosis& d : report.diagnoses) {
    found.answers.mark_state(d);
    found.answers.mark(d, job);
    found.answers.remember(d, {job, found.run});
  }
}

// As a member of the report, which is an object.
// Before the others of the report, which is an object.
void add_member(std::string& report, const char* name, const std::string& value) {
  report.insert(report.find('{') + 1, fmt::format("\"{}\":{},", name, value));
}

void add_attempts(std::string& report, const JobAttempts& attempts) {
  JsonWriter w;
  w.object([&] {
    w.field("count", attempts.attempt);
    w.field("of", attempts.of);
    w.field("state", to_string(attempts.state));
    w.field("why", attempts.why);
    w.values("excluded", attempts.excluded);
  });
  add_member(report, "attempts", w.finish());
}

tl::unexpected<Error> no_report(const FoundReport& found, const serve::JobRun& of) {
  if (found.unreadable) return tl::unexpected(*found.unreadable);
  return fail(ErrorCode::kNotFound, !found.note.empty() ? fmt::format("job {} has {}", of.job, found.note)
                                    : of.run            ? fmt::format("no run {} of job {}", *of.run, of.job)
                                                        : "no job " + of.job);
}

// The report in JSON, with shorter lists where it is larger than `bytes_max`; empty: it still is.
std::string text_of(FoundReport& found, Charts charts, size_t bytes_max, bool& cut) {
  std::string text;
  for (const size_t top : {SIZE_MAX, size_t{20}, size_t{3}}) {
    cut = top != SIZE_MAX;
    if (cut) keep_top(*found.report, top);
    text = culprit::to_json(*found.report, charts);
    if (found.attempts) add_attempts(text, *found.attempts);
    if (text.size() <= bytes_max) return text;
  }
  return "";
}

// Parts of culprit that did not run for the job, each with the reason as a sentence; may contain empty
// sentences.
std::vector<std::string> missing_parts(const AgentParts& parts, const std::string& job) {
  std::vector<std::string> out;
  if (const CaptureService* capture = parts.capture ? parts.capture() : nullptr)
    out.push_back(capture->trouble_of(job));
  const PluginService* service = parts.plugins ? parts.plugins() : nullptr;
  for (const plughost::PluginRow& row : service ? service->rows() : std::vector<plughost::PluginRow>()) {
    if (!row.own_process || row.reason.find("culprit-plugin-host: no such file") == row.reason.npos) continue;
    out.push_back(
        fmt::format("what the plugins see on {}: none runs: {}; `sudo culprit doctor` has the remedy",
                    parts.config->host.name, row.reason));
    break;
  }
  return out;
}

}  // namespace

void DaemonLists::own_report(const serve::ReportQuery& query, size_t bytes_max,
                             std::function<void(OwnAnswer)> done) {
  const auto found = std::make_shared<FoundReport>();
  found->wants_last = parts_.shared != nullptr;
  const serve::JobRun& of = query.of;
  const Charts charts = query.charts ? Charts::kIncluded : Charts::kLeftOut;
  parts_.engine->query([found, of](LiveJobs& live, TimeNs now) { find_live(*found, of, live, now); },
                       [this, found, of, charts, bytes_max, done = std::move(done)] {
                         const auto out = std::make_shared<OwnAnswer>();
                         parts_.recorder->query(
                             [found, of, charts, bytes_max, out, troubles = missing_parts(parts_, of.job)](
                                 store::Spool&, records::Records& index) {
                               find_stored(*found, of.job, index);
                               out->last = std::move(found->last);
                               if (!found->report) return;
                               finish(*found, of.job, troubles);
                               out->report = text_of(*found, charts, bytes_max, out->cut);
                             },
                             [this, found, of, out, done] {
                               if (!found->report) {
                                 out->report = no_report(*found, of);
                                 return done(std::move(*out));
                               }
                               // An earlier run of the name may be another job of the scheduler.
                               const bool is_last = !of.run || found->run == of.run;
                               if (!is_last || !out->report->starts_with('{')) return done(std::move(*out));
                               scheduler_facts(parts_.recovery, of.job,
                                               [out, done](const std::string& facts) {
                                                 if (!facts.empty())
                                                   add_member(*out->report, "scheduler", facts);
                                                 done(std::move(*out));
                                               });
                             });
                       });
}

void DaemonLists::diagnoses_of(const serve::DiagnosisQuery& query, KeepJob keep, Answer answer) {
  const auto text = std::make_shared<Result<std::string>>();
  records::VerdictQuery asked;
  asked.job = query.job.value_or("");
  asked.run = query.run;
  asked.since_ns = query.since_ns.value_or(kNoTime);
  parts_.recorder->query(
      [text, asked, keep = std::move(keep)](store::Spool&, records::Records& index) {
        auto answers = StoredAnswers::of(index, asked);
        if (!answers) return void(*text = tl::unexpected(answers.error()));
        std::erase_if(answers->verdicts, [&](const Verdict& v) { return !keep(v.job); });
        JsonWriter w;
        w.object([&] {
          w.list("items", answers->verdicts, [&](Verdict v) {
            v.diagnosis.state = v.state;
            answers->mark(v.diagnosis, v.job);
            w.write_raw(to_json(v, VerdictForm::kListed));
          });
        });
        *text = w.finish();
      },
      [text, answer = std::move(answer)] { answer(std::move(*text)); });
}

void DaemonApi::devices(Answer answer) {
  const auto faults = std::make_shared<Result<std::vector<records::DeviceFault>>>();
  parts_.recorder->query(
      [faults](store::Spool&, records::Records& index) { *faults = index.device_faults(); },
      [faults, answer = std::move(answer)] {
        if (!*faults) return answer(tl::unexpected(faults->error()));
        json items = json::array();
        for (auto f = (*faults)->rbegin(); f != (*faults)->rend(); ++f)
          items.push_back({{"device", f->device},
                           {"host", f->host},
                           {"job", f->job},
                           {"run", f->run},
                           {"diagnosis", f->diagnosis},
                           {"step", f->step ? json(*f->step) : json(nullptr)},
                           {"time_ns", time_or_null(f->time_ns)}});
        answer(dump({{"items", items}}));
      });
}

void DaemonApi::plugins(Answer answer) {
  json items = json::array();
  const PluginService* service = parts_.plugins ? parts_.plugins() : nullptr;
  const auto rows = service ? service->rows() : std::vector<plughost::PluginRow>();
  const auto reason_of = [](const plughost::PluginRow& row) -> json {
    if (row.state == "missing") return fmt::format("no folder of plugins has a file {}.so", row.name);
    return row.reason.empty() ? json(nullptr) : json(row.reason);
  };
  for (const plughost::PluginRow& row : rows)
    items.push_back({{"name", row.name},
                     {"version", row.version},
                     {"vendor", row.vendor},
                     {"about", row.about},
                     {"path", row.path},
                     {"state", row.state},
                     {"reason", reason_of(row)},
                     {"process", row.own_process ? "own" : "daemon"},
                     {"pid", row.pid > 0 ? json(row.pid) : json(nullptr)},
                     {"starts", row.starts},
                     {"failures", row.failures},
                     {"events", row.events},
                     {"dropped_events", row.dropped},
                     {"findings", row.findings},
                     {"dropped_findings", row.findings_dropped},
                     {"dropped_lines", row.lines_dropped},
                     {"cpu_ns", row.cpu_ns},
                     {"memory_bytes", row.memory_bytes}});
  answer(dump({{"items", items}}));
}

void DaemonApi::sources(const std::optional<std::string>& job, Answer answer) {
  lists_.source_rows(job, [answer = std::move(answer)](Result<std::vector<SourceRow>> rows) {
    rows ? answer(dump(to_json(*rows))) : answer(tl::unexpected(rows.error()));
  });
}

void DaemonApi::evidence(const serve::EvidenceQuery& query,
                         std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) {
  if (query.host != parts_.config->host.name)
    return answer(fail(ErrorCode::kNotFound, fmt::format("no evidence of host {} here: this is {}",
                                                         query.host, parts_.config->host.name)));
  auto range = std::make_shared<store::EvidenceRange>();
  range->from = query.from_byte;
  range->to = query.to_byte;
  if (static_cast<size_t>(reading_.use_count()) > kEvidenceReaders)
    return answer(fail(ErrorCode::kLimit, fmt::format("{} clients read evidence already", kEvidenceReaders)));
  parts_.recorder->query(
      [range, query](store::Spool& spool, records::Records&) {
        range->streams = spool.streams_of(query.job, query.path);
      },
      [this, range, query, answer = std::move(answer), share = reading_] {
        if (range->streams.empty())
          return answer(
              fail(ErrorCode::kNotFound, fmt::format("no evidence of {} for job {}", query.path, query.job)));
        answer(read_evidence(env_,
                             store::EvidenceReader(parts_.recorder->files(), parts_.recorder->spool_folder()),
                             std::move(*range), share));
      });
}

void DaemonApi::about(Answer answer) {
  const Config& c = *parts_.config;
  json logs = json::array();
  for (const LogWatch& log : c.logs)
    logs.push_back({{"path", log.path}, {"job", log.job}, {"job_pattern", log.job_pattern}});
  answer(dump({{"versions", {{"culpritd", CULPRIT_VERSION}, {"report", "culprit.report/1"}}},
               {"config",
                {{"host", c.host.name},
                 {"state_dir", c.state_dir},
                 {"runtime_dir", c.runtime_dir},
                 {"rules", c.rules},
                 {"log", logs},
                 {"trace", {{"socket", c.trace.socket}, {"rings", c.trace.rings}}},
                 {"kernel", c.kernel.enabled},
                 {"journal", c.journal.enabled},
                 {"spool_max_size", c.spool.max_size}}}}));
}

void DaemonApi::pool(Answer answer) {
  const auto text = std::make_shared<Result<std::string>>();
  parts_.engine->query(
      [text](LiveJobs& live, TimeNs) {
        if (live.pools().jobs() > 0) *text = live.pools().all().save();
      },
      [text, answer = std::move(answer)] {
        if (!*text) return answer(tl::unexpected(text->error()));
        answer(dump({{"pool", (*text)->empty() ? json(nullptr) : json(**text)}}));
      });
}

void DaemonApi::pool_log(Answer answer) {
  const auto rows = std::make_shared<Result<std::vector<records::PoolLogRow>>>();
  parts_.recorder->query([rows](store::Spool&, records::Records& index) { *rows = index.pools().log(); },
                         [rows, answer = std::move(answer)] {
                           if (!*rows) return answer(tl::unexpected(rows->error()));
                           json items = json::array();
                           for (const records::PoolLogRow& row : **rows)
                             items.push_back({{"time_ns", time_or_null(row.time_ns)},
                                              {"what", row.what},
                                              {"job", row.job},
                                              {"run", row.run},
                                              {"owner", row.owner},
                                              {"why", row.why},
                                              {"forms", row.forms},
                                              {"by", row.who.empty() ? json(nullptr) : json(row.who)},
                                              {"counts", row.counts}});
                           answer(dump({{"items", std::move(items)}}));
                         });
}

// Clears the store first: data that remained there would return at the next start.
void DaemonApi::forget_taught(const std::string& job, const serve::Actor& by, Answer answer) {
  const auto outcome = std::make_shared<Status>();
  const std::string person = who(by);
  parts_.recorder->query(
      [outcome, job, now = env_.now(io::Clock::kWall), person](store::Spool&, records::Records& index) {
        *outcome = index.pools().forget(job, now, person);
      },
      [this, outcome, job, person, answer = std::move(answer)] {
        if (!*outcome) return answer(tl::unexpected(outcome->error()));
        const auto runs = std::make_shared<size_t>(0);
        parts_.engine->change(
            [runs, job](std::span<LiveJobs* const> all, TimeNs) {
              for (LiveJobs* live : all) *runs = std::max(*runs, live->forget_taught(job));
            },
            [runs, job, person, answer] {
              answer(dump({{"job", job}, {"runs", *runs}, {"forgotten", {{"by", person}}}}));
            });
      });
}

void DaemonApi::reload(const serve::Actor& by, Answer answer) {
  if (parts_.inform) parts_.inform("a reload is asked for by " + who(by));
  parts_.reload([answer = std::move(answer)](Status done) {
    done ? answer(dump({{"reloaded", true}})) : answer(tl::unexpected(done.error()));
  });
}

// The controller returns a host that it took out.
void DaemonApi::clear(const std::string& host, const serve::Actor& by, Answer answer) {
  hold_nothing(parts_, env_.now(io::Clock::kWall), host, by,
               [this, host, by, answer = std::move(answer)](Result<std::string> done) {
                 if (done && parts_.repaired) parts_.repaired(host, who(by));
                 answer(std::move(done));
               });
}

void hold_nothing(const AgentParts& parts, TimeNs now, const std::string& host, const serve::Actor& by,
                  serve::ApiSource::Answer answer) {
  const auto known = std::make_shared<bool>(host == parts.config->host.name);
  const auto outcome = std::make_shared<Status>();
  parts.recorder->query(
      [known, outcome, host, now, by](store::Spool&, records::Records& index) {
        if (const auto cleared = index.cleared()) *known = *known || cleared->contains(host);
        const auto names = [&](const Verdict& v) { return names_host(v.diagnosis, host); };
        if (const auto rows = index.verdicts({}); !*known && rows) *known = std::ranges::any_of(*rows, names);
        *outcome = *known ? index.clear_host(host, now, who(by))
                          : fail(ErrorCode::kNotFound,
                                 fmt::format("no host {} here: nothing was ever held against it", host));
      },
      [outcome, host, now, answer = std::move(answer)] {
        if (!*outcome) return answer(tl::unexpected(outcome->error()));
        answer(dump({{"host", host}, {"cleared_ns", now}}));
      });
}

}  // namespace culprit::app
