#include "app/jobs/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/text.h"
#include "model/finding.h"
#include "model/json_writer.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

// Minimum interval of finding events of one rule and host; repetitions are counted.
constexpr TimeNs kRepeatEvery = 10 * kNsPerSecond;
// Limit of rules and hosts whose findings are counted separately.
constexpr size_t kRepeats = 4096;
// Limit of agents per host in logs; several agents may read one shared file.
constexpr size_t kTellers = 4;
// Accusations whose evidence has no usable time.
constexpr size_t kAccused = 4096;

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

// Identifies a finding when its bytes are read again.
std::string id_of(const Finding& f, const std::string& host, TimeNs now) {
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  return hex64(hash64(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", f.rule, host, e.file, e.line.value_or(0), e.text,
                                  f.first_ns == kNoTime ? now : f.first_ns)));
}

// Example: "GPU has fallen off the bus on node-3 (95 %)".
std::string sentence_of(const Diagnosis& d) {
  std::string out = d.title;
  for (size_t i = 0; i < d.hosts.size() && i < 3; ++i)
    out += (i == 0 ? " on " : ", ") + d.hosts[i].host.value_or("an unknown host");
  if (d.hosts.size() > 3) out += fmt::format(" and {} more", d.hosts.size() - 3);
  return fmt::format("{} ({:.0f} %); {}", out, 100 * d.confidence, d.remedy);
}

}  // namespace

std::string to_json(const LiveJobSummary& job) {
  JsonWriter w;
  w.object([&] {
    w.field("id", job.id);
    w.field("run", job.run);
    w.field("state", to_string(job.state));
    w.field("well", job.well);
    w.field("hangs", job.hangs);
    w.field("hosts", job.hosts);
    w.field("ranks", job.ranks);
    w.field("sources", job.sources);
    w.field("lines", job.lines);
    w.field("bytes", job.bytes);
    w.time("first_ns", job.first_ns);
    w.time("last_ns", job.last_ns);
    w.field("iteration", job.iteration);
    w.field("verdict", job.verdict);
  });
  return w.finish();
}

LiveJob::LiveJob(std::string id, uint32_t run, const LiveOptions& options, LiveParsing& parsing)
    : options_(options),
      engine_(std::make_unique<core::Engine>(engine_options(id, options))),
      sink_(*engine_),
      sources_(sink_, parsing) {
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

void LiveJob::settle_dumps(TimeNs now) {
  if (sources_.settle_dumps(now)) due.urgent = dirty_ = true;
}

void LiveJob::settle_files(TimeNs now) {
  if (!sources_.settle_files(now).news) return;
  due.urgent = dirty_ = true;
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
  const std::tuple key(host, info.file, info.kind);
  if (info.host) tells_of(host, *info.host);
  if (const auto known = remote_sources_.find(key); known != remote_sources_.end()) return known->second;
  const auto here = sources_.open_other(std::move(info), at);
  if (here) remote_sources_.emplace(key, *here);
  return here;
}

// Remembers which agent's logs name a host: logs may use other names than agents.
void LiveJob::tells_of(const std::string& agent, const std::string& host) {
  if (host.empty() || host == agent || tellers_.size() >= limits::kWriters) return;
  std::vector<std::string>& known = tellers_[host];
  if (known.size() < kTellers && std::find(known.begin(), known.end(), agent) == known.end())
    known.push_back(agent);
}

void LiveJob::add_tellers(const std::string& host, std::vector<std::string>& out) const {
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  const auto others = tellers_.find(host);
  if (others == tellers_.end() || hosts_.contains(host)) add(host);
  if (others == tellers_.end()) return;
  for (const std::string& agent : others->second) add(agent);
}

void LiveJob::ingest_remote(const std::string& host, core::Input input, TimeNs at) {
  if (const auto* lines = std::get_if<core::LogInput>(&input))
    for (const logs::WriterKey& writer : lines->batch->writers) tells_of(host, writer.host);
  dirty_ = true;
  if (std::holds_alternative<core::FlightInput>(input) || std::holds_alternative<detect::RankExited>(input))
    due.urgent = true;
  const TimeNs before = engine_ ? engine_->progressed_ns() : kNoTime;
  sources_.feed(std::move(input), at);
  if (engine_ && engine_->progressed_ns() != before) progress_of_.insert(host);
}

void LiveJob::agent_away(const std::string& host, TimeNs since) {
  if (hosts_.away(host, since) && running()) dirty_ = due.urgent = true;
}

// Hosts whose lines no connected agent reads, by their names in logs.
detect::Unheard LiveJob::unheard(const std::map<std::string, TimeNs>& away) const {
  detect::Unheard out;
  for (const auto& [host, since] : away) out.insert(host);
  for (const auto& [host, agents] : tellers_)
    if (!hosts_.contains(host) &&
        std::all_of(agents.begin(), agents.end(), [&](const std::string& a) { return away.contains(a); }))
      out.insert(host);
  return out;
}

// Whether a connected host has reported progress before. Only then does silence come from the job itself.
bool LiveJob::hears_progress(const std::map<std::string, TimeNs>& away) const {
  if (away.empty() || progress_of_.empty() || is_local()) return true;
  return std::any_of(progress_of_.begin(), progress_of_.end(),
                     [&](const std::string& host) { return !away.contains(host); });
}

void LiveJob::report_away(const std::map<std::string, TimeNs>& away) {
  constexpr size_t kNamed = 8;
  size_t named = 0;
  for (const auto& [host, since] : away)
    if (named++ < kNamed)
      report_.missing.push_back(
          fmt::format("{}'s agent has been away since {} UTC; what it wrote since is unknown", host,
                      format_time(since).substr(11, 8)));
  if (named > kNamed)
    report_.missing.push_back(fmt::format("{} more are away", counted(named - kNamed, "agent")));
}

void LiveJob::remote_ends(bool failed, TimeNs at, TimeNs now) {
  said_end_ = true;
  said_failed_ = said_failed_ || failed;
  end_reported_ns_ = std::max(end_reported_ns_, at);
  due.end_ns = now;
}

void LiveJob::on_agent_report(const std::string& host, TimeNs until, TimeNs now, bool active) {
  hosts_.on_report(host, until, now, active);
  if (!active) return;
  if (summary_.first_ns == kNoTime) summary_.first_ns = until;
  summary_.first_ns = std::min(summary_.first_ns, until);
  summary_.last_ns = std::max(summary_.last_ns, until);
}

TimeNs LiveJob::silent_since() const {
  return hosts_.empty() ? summary_.last_ns : std::max(hosts_.active_ns(), local_ns_);
}

LiveEvent LiveJob::event(LiveEventKind kind, TimeNs now) const {
  LiveEvent out;
  out.kind = kind;
  out.time_ns = now;
  out.job = summary_.id;
  out.run = summary_.run;
  out.known_until_ns = hosts_.empty() ? now : std::max(summary_.last_ns, hosts_.known_until(now));
  return out;
}

std::string LiveJob::finding_json(const Finding& f, uint64_t repeated, TimeNs now) const {
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  JsonWriter w;
  w.object([&] {
    w.field("job", summary_.id);
    w.field("run", summary_.run);
    w.time("time_ns", f.first_ns == kNoTime ? now : f.first_ns);
    w.field("rule", f.rule);
    w.field("title", f.title);
    w.field("category", to_string(f.category));
    w.field("component", to_string(f.component));
    w.field("symptom", to_string(f.symptom));
    w.field("fatal", f.fatal);
    w.field("host", e.host);
    w.field("rank", e.rank);
    w.field("file", e.file);
    w.field("line", e.line);
    w.field("text", e.text);
    w.field("repeated", repeated);
  });
  return w.finish();
}

bool LiveJob::emit_findings(TimeNs now, std::vector<LiveEvent>& out) {
  bool fresh = false;
  for (const Finding& f : sources_.take_findings()) {
    const std::string host = f.evidence.empty() ? "" : f.evidence.front().host.value_or("");
    const std::string key = f.rule + "@" + host;
    const auto known = repeats_.find(key);
    if (known == repeats_.end() && repeats_.size() >= kRepeats) continue;  // the report contains it anyway
    Repeat& repeat = known == repeats_.end() ? repeats_[key] : known->second;
    fresh = fresh || repeat.known_until_ns == kNoTime;
    repeat.last_ns = now;
    if (repeat.known_until_ns != kNoTime && now - repeat.known_until_ns < kRepeatEvery) {
      ++repeat.more;
      continue;
    }
    LiveEvent e = event(LiveEventKind::kFinding, now);
    e.id = id_of(f, host, now);
    if (!host.empty()) add_tellers(host, e.hosts);
    e.json = finding_json(f, repeat.more, now);
    repeat = {now, now, 0};
    out.push_back(std::move(e));
  }
  if (fresh) announcer_.new_finding(now);
  return fresh;
}

// Gives diagnoses ids that are constant for the job, also after restarts. The report numbers diagnoses by
// their order, which changes while the job runs.
void LiveJob::name_diagnoses() {
  std::set<std::string> names;
  for (Diagnosis& d : report_.diagnoses) {
    uint64_t hash = hash64(key_of(d)) + summary_.run;  // each run has its own
    do d.id = fmt::format("d{:08x}", hash++ & 0xffffffff);
    while (!names.insert(d.id).second);
  }
}

// Devices that a numeric diagnosis accuses, by permanent names if known.
std::vector<LiveEvent::Device> LiveJob::corrupting(const Diagnosis& d) const {
  std::vector<LiveEvent::Device> out;
  if (d.detector != to_string(DetectorKind::kNumerics) || d.category != Category::kHardware || !engine_)
    return out;
  for (const Suspect& s : d.hosts) {
    const std::string host = s.host.value_or("");
    const size_t before = out.size();
    for (const uint32_t rank : s.ranks)
      if (auto name = engine_->device_name(rank)) out.push_back({std::move(*name), host});
    if (out.size() > before || host.empty()) continue;
    for (const uint32_t device : s.devices)
      out.push_back({fmt::format("device {} of {}", device, host), host});
    if (s.devices.empty()) out.push_back({host, host});
  }
  return out;
}

// Time of the newest evidence in this diagnosis against the host. It comes from the spool or the lines, so it
// is the same after a restart.
TimeNs LiveJob::accused_ns(const Diagnosis& d, const std::string& host) {
  if (d.rule)
    if (const auto reported = repeats_.find(*d.rule + "@" + host); reported != repeats_.end())
      return reported->second.last_ns;
  TimeNs last = kNoTime;
  for (const Evidence& e : d.evidence)
    if (!e.host || *e.host == host) last = std::max(last, e.time_ns);
  if (last == kNoTime) last = d.time_ns;
  // A log's clock may be ahead of the daemon's: then the read time of the line counts.
  if (last != kNoTime && last <= summary_.last_ns) return last;
  const std::string key = fmt::format("{}@{}@{}", d.id, host, last);
  if (accused_.size() >= kAccused && !accused_.contains(key)) return summary_.last_ns;
  return accused_.try_emplace(key, summary_.last_ns).first->second;
}

std::string LiveJob::accused_json(const Diagnosis& d) {
  JsonWriter w;
  std::set<std::string> hosts;
  w.object([&] {
    for (const Suspect& s : d.hosts)
      if (s.host && hosts.insert(*s.host).second) w.time(*s.host, accused_ns(d, *s.host));
  });
  return w.finish();
}

// The JSON begins with the job's members; the diagnosis's own follow.
LiveEvent LiveJob::diagnosis_event(const Announcement& a, const std::string& accused, TimeNs now) {
  LiveEvent e = event(a.index ? LiveEventKind::kDiagnosis : LiveEventKind::kDiagnosisGone, now);
  e.id = a.id;
  e.publish = a.publish;
  JsonWriter head;
  head.object([&] {
    head.field("job", summary_.id);
    head.field("run", summary_.run);
    head.field("verdict", a.index && a.verdict);
    head.field("settled", a.settled);
    head.field("change", to_string(a.change));
    if (a.replaced_verdict_id.empty()) return head.null("replaces");
    head.member("replaces", [&] {
      head.object([&] {
        head.field("id", a.replaced_verdict_id);
        head.field("title", a.replaced_title);
      });
    });
  });
  const std::string members = head.finish();
  std::string& body = reported_[a.id];
  if (a.index)
    body =
        fmt::format("\"accused_ns\":{},{}", accused, culprit::to_json(report_.diagnoses[*a.index]).substr(1));
  if (body.empty()) {
    JsonWriter id;
    id.object([&] { id.field("id", a.id); });
    body = id.finish().substr(1);
  }
  e.json = fmt::format("{},{}", members.substr(0, members.size() - 1), body);
  if (!a.index) reported_.erase(a.id);
  if (a.publish && a.change == Change::kWithdrawn && (a.verdict || a.index))
    e.sentence = "withdrawn: " + a.title;
  return e;
}

void LiveJob::emit_diagnoses(TimeNs now, bool at_once, std::vector<LiveEvent>& out) {
  std::vector<std::string> accused;
  for (const Diagnosis& d : report_.diagnoses) accused.push_back(accused_json(d));
  for (const Announcement& a : announcer_.update(report_, accused, now, at_once)) {
    LiveEvent e = diagnosis_event(a, a.index ? accused[*a.index] : "", now);
    if (a.index) {
      const Diagnosis& d = report_.diagnoses[*a.index];
      e.devices = corrupting(d);
      e.step = d.iteration;
      if (a.publish && a.verdict)
        e.sentence = (a.change == Change::kRevised ? "revised: " : "") + sentence_of(d);
      for (const Suspect& s : d.hosts)
        if (s.host) add_tellers(*s.host, e.hosts);
    }
    out.push_back(std::move(e));
  }
}

void LiveJob::make_report(TimeNs now, bool hangs, bool at_once, std::vector<LiveEvent>& out) {
  if (!engine_) return;
  const std::map<std::string, TimeNs> away = hosts_.away(now);
  const bool may_hang = hangs && hears_progress(away);
  report_ = engine_->report(may_hang ? known_until(now) : kNoTime, unheard(away));
  report_away(away);
  report_.activity = {};  // only shown by offline readers of files
  sources_.report_broken(report_);
  dirty_ = false;
  name_diagnoses();
  apply_judgements(judgements_, report_);
  emit_diagnoses(now, at_once, out);
  for (comm::StepsWanted& wanted : engine_->drain_requests()) {
    LiveEvent e = event(LiveEventKind::kStepsWanted, now);
    e.hosts = std::move(wanted.hosts);
    e.steps = std::move(wanted.steps);
    out.push_back(std::move(e));
  }
}

// Applies to ended runs too: the API still serves the report.
void LiveJob::judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out) {
  judgements_ = judgements;
  apply_judgements(judgements_, report_);
  emit_diagnoses(now, true, out);
  if (!running()) summary_.verdict = announced_verdict();
}

std::optional<std::string> LiveJob::announced_verdict() const {
  return announcer_.verdict().empty() ? std::nullopt : std::optional(announcer_.verdict());
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
  LiveEvent e = event(LiveEventKind::kJobEnded, now);
  e.json = to_json(summary_);
  e.report = report_json(Charts::kIncluded);
  e.summary = summary_;
  e.last_ns = summary_.last_ns;
  out.push_back(std::move(e));
  if (learned) out.push_back(event(LiveEventKind::kPoolChanged, now));
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
  out.hosts = std::max<uint64_t>(report_.job.hosts, hosts_.size());
  out.ranks = report_.job.ranks;
  out.sources = sources_.size();
  out.lines = engine_->log().lines();
  out.iteration = engine_->iteration();
  out.verdict = announced_verdict();
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
