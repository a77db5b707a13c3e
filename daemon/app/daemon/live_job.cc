#include "app/daemon/live_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

using Json = nlohmann::ordered_json;

// A rule that fires again on the same host is told at most so often, with a count.
constexpr TimeNs kRepeatEvery = 10 * kNsPerSecond;
// Rules and hosts whose findings are counted apart.
constexpr size_t kRepeats = 4096;
// Agents that are remembered of a host that their logs name: several may read one file that they share.
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

Json time_or_null(TimeNs time) { return time == kNoTime ? Json(nullptr) : Json(time); }

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// What makes a diagnosis the same one from report to report.
std::string key_of(const Diagnosis& d) {
  if (d.rule) return "rule:" + *d.rule;
  std::string out = fmt::format("{}:{}", d.detector.value_or(""), word(d.symptom));
  // Of wrong numbers each first step is a fault of its own.
  if (d.detector == "numerics" && d.iteration) out += fmt::format(":{}", *d.iteration);
  return out;
}

// What makes a finding the same one when its bytes are read again.
std::string id_of(const Finding& f, const std::string& host, TimeNs now) {
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  return hex64(hash64(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", f.rule, host, e.file, e.line.value_or(0), e.text,
                                  f.first_ns == kNoTime ? now : f.first_ns)));
}

// "GPU has fallen off the bus on node-3 (95 %)".
std::string sentence_of(const Diagnosis& d) {
  std::string out = d.title;
  for (size_t i = 0; i < d.hosts.size() && i < 3; ++i)
    out += (i == 0 ? " on " : ", ") + d.hosts[i].host.value_or("an unknown host");
  if (d.hosts.size() > 3) out += fmt::format(" and {} more", d.hosts.size() - 3);
  return fmt::format("{} ({:.0f} %); {}", out, 100 * d.confidence, d.remedy);
}

}  // namespace

std::string to_json(const LiveJobSummary& job) {
  Json out;
  out["id"] = job.id;
  out["run"] = job.run;
  out["state"] = word(job.state);
  out["well"] = job.well;
  out["hangs"] = job.hangs;
  out["hosts"] = job.hosts;
  out["ranks"] = job.ranks;
  out["sources"] = job.sources;
  out["lines"] = job.lines;
  out["bytes"] = job.bytes;
  out["first_ns"] = time_or_null(job.first_ns);
  out["last_ns"] = time_or_null(job.last_ns);
  out["iteration"] = or_null(job.iteration);
  out["verdict"] = or_null(job.verdict);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  const bool left = stream.info.kind == OriginKind::kSocket && piece.ends;
  if (summary_.first_ns == kNoTime) summary_.first_ns = now;
  local_ns_ = std::max(local_ns_, now);
  // That the writers of a socket have been gone for a while is told late, and is no sign of life.
  if (!left || !piece.bytes.empty()) summary_.last_ns = std::max(summary_.last_ns, now);
  summary_.bytes += piece.bytes.size();
  dirty_ = true;
  if (piece.gap) sources_.take_gap(stream, piece, now);
  // A dump lies about after its job, and is no word on its end.
  if (stream.info.kind == OriginKind::kDump) return;
  const auto [at, fresh] = streams_.try_emplace(stream.info.id, false);
  if (left) {
    // No word on the job: programs come back, or their processes tell.
    streams_.erase(at);
  } else {
    if (at->second != piece.ends) piece.ends ? ++ended_ : --ended_;
    at->second = piece.ends;
  }
}

void LiveJob::take(const LiveStream& stream, const Piece& piece, TimeNs now) {
  note(stream, piece, now);
  if (stream.info.kind == OriginKind::kFile) sources_.take_file(stream, piece, now);
  if (stream.info.kind == OriginKind::kRing) {
    sources_.take_ring(stream, piece, now);
    if (piece.ends) due.urgent = true;
  }
  if (stream.info.kind == OriginKind::kDump && sources_.take_dump(stream, piece, now)) due.urgent = true;
}

void LiveJob::settle_dumps(TimeNs now) {
  if (sources_.settle_dumps(now)) due.urgent = dirty_ = true;
}

void LiveJob::settle_files(TimeNs now) {
  if (!sources_.settle_files(now).news) return;
  due.urgent = dirty_ = true;
}

void LiveJob::take_trace(const LiveStream& stream, TraceBatch& batch, const Piece& piece, TimeNs now) {
  note(stream, piece, now);
  sources_.take_trace(stream, batch, now);
  said_end_ = said_end_ || batch.ends;
  said_failed_ = said_failed_ || batch.failed;
  said_success_ = said_success_ || batch.succeeded;
}

void LiveJob::take_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now) {
  if (lines.empty()) return;
  dirty_ = true;
  sources_.take_kernel(stream, lines, now);
}

std::optional<SourceId> LiveJob::open_remote(const std::string& host, SourceInfo info, TimeNs at) {
  const std::tuple key(host, info.file, info.kind);
  if (info.host) tells_of(host, *info.host);
  if (const auto known = remote_sources_.find(key); known != remote_sources_.end()) return known->second;
  const auto here = sources_.open_other(std::move(info), at);
  if (here) remote_sources_.emplace(key, *here);
  return here;
}

// A host is called by its logs what no agent need be called.
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

void LiveJob::take_remote(const std::string& host, core::Input input, TimeNs at) {
  if (const auto* lines = std::get_if<core::LogInput>(&input))
    for (const logs::WriterKey& writer : lines->batch->writers) tells_of(host, writer.host);
  dirty_ = true;
  if (std::holds_alternative<core::FlightInput>(input) || std::holds_alternative<detect::RankExited>(input))
    due.urgent = true;
  const TimeNs before = engine_ ? engine_->progressed_ns() : kNoTime;
  sources_.give(std::move(input), at);
  if (engine_ && engine_->progressed_ns() != before) progress_of_.insert(host);
}

void LiveJob::agent_away(const std::string& host, TimeNs since) {
  if (hosts_.away(host, since) && running()) dirty_ = due.urgent = true;
}

// Hosts whose lines no connected agent reads, by their names in the logs.
detect::Unheard LiveJob::unheard(const std::map<std::string, TimeNs>& away) const {
  detect::Unheard out;
  for (const auto& [host, since] : away) out.insert(host);
  for (const auto& [host, agents] : tellers_)
    if (!hosts_.contains(host) &&
        std::all_of(agents.begin(), agents.end(), [&](const std::string& a) { return away.contains(a); }))
      out.insert(host);
  return out;
}

// Whether a connected host has reported progress before: only then is silence the job's own.
bool LiveJob::hears_progress(const std::map<std::string, TimeNs>& away) const {
  if (away.empty() || progress_of_.empty() || is_local()) return true;
  return std::any_of(progress_of_.begin(), progress_of_.end(),
                     [&](const std::string& host) { return !away.contains(host); });
}

void LiveJob::tell_away(const std::map<std::string, TimeNs>& away) {
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
  end_told_ns_ = std::max(end_told_ns_, at);
  due.end_ns = now;
}

void LiveJob::heard(const std::string& host, TimeNs until, TimeNs now, bool active) {
  hosts_.told(host, until, now, active);
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
  out.told_ns = hosts_.empty() ? now : std::max(summary_.last_ns, hosts_.known_until(now));
  return out;
}

std::string LiveJob::finding_json(const Finding& f, uint64_t repeated, TimeNs now) const {
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  Json out;
  out["job"] = summary_.id;
  out["run"] = summary_.run;
  out["time_ns"] = time_or_null(f.first_ns == kNoTime ? now : f.first_ns);
  out["rule"] = f.rule;
  out["title"] = f.title;
  out["category"] = word(f.category);
  out["component"] = word(f.component);
  out["symptom"] = word(f.symptom);
  out["fatal"] = f.fatal;
  out["host"] = or_null(e.host);
  out["rank"] = or_null(e.rank);
  out["file"] = e.file;
  out["line"] = or_null(e.line);
  out["text"] = e.text;
  out["repeated"] = repeated;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool LiveJob::tell_findings(TimeNs now, std::vector<LiveEvent>& out) {
  bool fresh = false;
  for (const Finding& f : sources_.take_findings()) {
    const std::string host = f.evidence.empty() ? "" : f.evidence.front().host.value_or("");
    const std::string key = f.rule + "@" + host;
    const auto known = repeats_.find(key);
    if (known == repeats_.end() && repeats_.size() >= kRepeats) continue;  // the report tells it
    Repeat& repeat = known == repeats_.end() ? repeats_[key] : known->second;
    fresh = fresh || repeat.told_ns == kNoTime;
    repeat.last_ns = now;
    if (repeat.told_ns != kNoTime && now - repeat.told_ns < kRepeatEvery) {
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

// The report numbers its diagnoses by their order, which changes while the job runs: here each has a name of
// its own, the same in all reports of the job, also of those after a restart.
void LiveJob::name_diagnoses() {
  std::set<std::string> names;
  for (Diagnosis& d : report_.diagnoses) {
    uint64_t hash = hash64(key_of(d)) + summary_.run;  // each run has its own
    do d.id = fmt::format("d{:08x}", hash++ & 0xffffffff);
    while (!names.insert(d.id).second);
  }
}

// The devices that a diagnosis of numbers holds responsible: by names that stay theirs, where known.
std::vector<LiveEvent::Device> LiveJob::corrupting(const Diagnosis& d) const {
  std::vector<LiveEvent::Device> out;
  if (d.detector != "numerics" || d.category != Category::kHardware || !engine_) return out;
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

// The time of the newest evidence by which this diagnosis accuses the host. It is taken from the spool or the
// lines, so that it is the same after a restart.
TimeNs LiveJob::accused_ns(const Diagnosis& d, const std::string& host) {
  if (d.rule)
    if (const auto told = repeats_.find(*d.rule + "@" + host); told != repeats_.end())
      return told->second.last_ns;
  TimeNs last = kNoTime;
  for (const Evidence& e : d.evidence)
    if (!e.host || *e.host == host) last = std::max(last, e.time_ns);
  if (last == kNoTime) last = d.time_ns;
  // A log's clock may be ahead of ours: then the time at which the line was read counts.
  if (last != kNoTime && last <= summary_.last_ns) return last;
  const std::string key = fmt::format("{}@{}@{}", d.id, host, last);
  if (accused_.size() >= kAccused && !accused_.contains(key)) return summary_.last_ns;
  return accused_.try_emplace(key, summary_.last_ns).first->second;
}

std::string LiveJob::accused_json(const Diagnosis& d) {
  Json out = Json::object();
  for (const Suspect& s : d.hosts)
    if (s.host) out[to_utf8(*s.host)] = time_or_null(accused_ns(d, *s.host));
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The JSON begins with the job's members; the diagnosis's own follow.
LiveEvent LiveJob::diagnosis_event(const Announcement& a, const std::string& accused, TimeNs now) {
  LiveEvent e = event(a.index ? LiveEventKind::kDiagnosis : LiveEventKind::kDiagnosisGone, now);
  e.id = a.id;
  e.publish = a.publish;
  Json head;
  head["job"] = to_utf8(summary_.id);
  head["run"] = summary_.run;
  head["verdict"] = a.index && a.verdict;
  head["settled"] = a.settled;
  head["change"] = word(a.change);
  head["replaces"] = nullptr;
  if (!a.replaced_verdict_id.empty())
    head["replaces"] = {{"id", a.replaced_verdict_id}, {"title", a.replaced_title}};
  const std::string members = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string& body = told_[a.id];
  if (a.index)
    body =
        fmt::format("\"accused_ns\":{},{}", accused, culprit::to_json(report_.diagnoses[*a.index]).substr(1));
  if (body.empty()) body = "\"id\":" + Json(a.id).dump() + "}";
  e.json = fmt::format("{},{}", members.substr(0, members.size() - 1), body);
  if (!a.index) told_.erase(a.id);
  if (a.publish && a.change == Change::kWithdrawn && (a.verdict || a.index))
    e.sentence = "withdrawn: " + a.title;
  return e;
}

void LiveJob::tell_diagnoses(TimeNs now, bool at_once, std::vector<LiveEvent>& out) {
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
  tell_away(away);
  report_.activity = {};  // for showing by those who read files themselves
  sources_.tell_broken(report_);
  dirty_ = false;
  name_diagnoses();
  apply_judgements(judgements_, report_);
  tell_diagnoses(now, at_once, out);
  for (comm::StepsWanted& wanted : engine_->take_wanted()) {
    LiveEvent e = event(LiveEventKind::kStepsWanted, now);
    e.hosts = std::move(wanted.hosts);
    e.steps = std::move(wanted.steps);
    out.push_back(std::move(e));
  }
}

// Also for a run that is over: the API still serves its report.
void LiveJob::judge(const Judgements& judgements, TimeNs now, std::vector<LiveEvent>& out) {
  judgements_ = judgements;
  apply_judgements(judgements_, report_);
  tell_diagnoses(now, true, out);
  if (!running()) summary_.verdict = announced_verdict();
}

std::optional<std::string> LiveJob::announced_verdict() const {
  return announcer_.verdict().empty() ? std::nullopt : std::optional(announcer_.verdict());
}

bool LiveJob::end(TimeNs now, detect::Pool& pool, std::vector<LiveEvent>& out) {
  sources_.end(now);
  tell_findings(now, out);
  engine_->settle_loop(std::numeric_limits<TimeNs>::max());
  // Whoever ends a job that hangs has not mended it.
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
  // A job whose processes all exited with 0 did not fail, whatever its diagnoses say.
  const bool failed = said_failed_ || (!said_success_ && !report_.diagnoses.empty());
  summary_.state = failed ? JobState::kFailed : JobState::kEnded;
  engine_.reset();
  LiveEvent e = event(LiveEventKind::kJobEnded, now);
  e.json = to_json(summary_);
  e.report = report_json(Charts::kTold);
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

std::vector<StreamId> LiveJob::streams() const {
  std::vector<StreamId> out;
  for (const auto& [stream, ended] : streams_) out.push_back(stream);
  return out;
}

std::map<StreamId, uint64_t> LiveJob::lines_of_streams() const {
  std::map<StreamId, uint64_t> out;
  for (const auto& [stream, ended] : streams_)
    if (const auto source = sources_.source_of(stream))
      if (const uint64_t lines = engine_->log().lines_of(*source); lines > 0) out[stream] = lines;
  return out;
}

}  // namespace culprit::app
