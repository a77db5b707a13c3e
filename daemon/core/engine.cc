#include "core/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "core/detect/comm/findings.h"
#include "core/detect/flight/flight.h"
#include "core/detect/logs/lost_numbers.h"
#include "core/diagnose/correlator.h"
#include "core/diagnose/proof.h"
#include "core/diagnose/signs.h"
#include "core/loop_order.h"
#include "core/loop_ranks.h"
#include "core/rules/block_scanner.h"
#include "core/rules/run.h"

namespace culprit::core {

struct Engine::Impl {
  EngineOptions options;
  logs::JobLog log;
  std::vector<Problem> problems;
  size_t reported = 0;                        // number of hits already checked for effects
  std::optional<rules::RuleRun> live, whole;  // in order of arrival, and of time
  detect::ProgressWatch progress;
  detect::Fate fate;  // of the last report
  comm::CommTrace comm;
  comm::HostLoad load;
  comm::Announced announced;
  std::vector<comm::StepsWanted> wanted;  // since the last drain_requests()
  std::vector<FlightDump> flights;
  std::map<uint32_t, size_t> flight_of;  // by rank: index into flights
  size_t flight_ops = 0;
  numerics::Detector numbers;
  LoopOrder order{{[this](const MetricRow& row) { numbers.add(row); },
                   [this](const LoopEvent& event) { numbers.add(event); }}};
  LoopRanks loop_ranks;
  detect::RankExits exits;
  NonLogRead non_log;

  explicit Impl(EngineOptions o)
      : options(std::move(o)),
        log(options.job),
        comm(&options.job, options.live, options.parallel),
        numbers(layout_of(options.job)) {
    if (options.rules) {
      if (options.live) live.emplace(options.rules, options.watch);
      whole.emplace(options.rules, options.watch);
    }
    for (const std::string& rule : options.quarantined)
      for (auto* run : {&live, &whole})
        if (*run) (*run)->quarantine(rule);
    for (const detect::PoolForm& f : options.pool.forms) log.add_pool_form(f.hash, f.text);
  }

  void ingest(SourceOpened& input, TimeNs) { log.open_source(input.info); }
  void ingest(LogInput& input, TimeNs now) {
    log.add(*input.batch);
    progress.lines(log.iterations().moves(), now);
  }
  void ingest(ProblemSeen& input, TimeNs) { problems.push_back(std::move(input.problem)); }
  void ingest(detect::ProgressSeen& input, TimeNs now) { progress.beat(input, now); }
  void ingest(detect::PhaseSeen& input, TimeNs now) {
    announced.add(input.rank, input.name, input.begins, now);
    progress.phase(input, now);
  }
  void ingest(CommInput& input, TimeNs now) {
    comm.add_records(input.host, input.records);
    if (options.live) beat(input.records, now);
  }
  void ingest(CommCondensed& input, TimeNs now) {
    comm.add_summaries(input.host, *input.reported, *input.streams);
    for (const comm::RankVector& v : input.reported->vectors)
      if (options.live && v.streams < input.streams->size())
        progress.beat({v.step, (*input.streams)[v.streams].rank}, now);
  }
  void ingest(MetricInput& input, TimeNs now) {
    for (MetricRow row : input.rows) {
      std::optional<std::string> placed;
      if (row.host.empty() && (placed = host_of_rank(options.job, row.rank))) row.host = *placed;
      loop_ranks.add(row);
      load.add(row);
      if (!options.live) numbers.add(row);  // rows of files are in the order of steps
    }
    if (options.live) order.add(input.rows, now, input.remote);
  }
  void ingest(EventInput& input, TimeNs now) {
    loop_ranks.add(input.event);
    options.live ? order.add(input.event, now, input.remote) : numbers.add(input.event);
  }
  void ingest(NonLogRead& input, TimeNs) {
    non_log.bytes += input.bytes;
    non_log.lines += input.lines;
  }
  void ingest(detect::RankExited& input, TimeNs now) { exits.add(input, now); }
  void ingest(RuleOverran& input, TimeNs) {
    for (auto* run : {&live, &whole})
      if (*run) (*run)->overrun(input.rule);
  }

  void ingest(FlightInput& input, TimeNs) {
    FlightDump& dump = input.dump;
    const uint32_t rank = dump.rank;
    const auto known = flight_of.find(rank);
    const size_t before = known == flight_of.end() ? 0 : flights[known->second].ops.size();
    const auto pass_over = [&](const FlightDump& d, std::string what) {
      problems.push_back({d.file, std::nullopt, "passed over: " + std::move(what)});
    };
    if (flight_ops - before + dump.ops.size() > limits::kFlightOps)
      return pass_over(dump, "the dumps of other ranks fill the memory");
    const auto found_twice = [&](const FlightDump& a, const FlightDump& b) {
      return a.host_guessed && b.host_guessed && a.host != b.host && a.file == b.file &&
             latest(a) == latest(b);
    };
    if (known == flight_of.end()) {
      flight_of[rank] = flights.size();
      flights.push_back(std::move(dump));
    } else {
      FlightDump& old = flights[known->second];
      const bool shared = found_twice(old, dump);
      if (latest(dump) >= latest(old)) std::swap(old, dump);
      // The folder is shared by several hosts, so its path does not prove the rank's host.
      if (shared) old.host.reset();
      if (dump.file != old.file) pass_over(dump, fmt::format("rank {} left a later dump too", rank));
    }
    flight_ops += flights[flight_of[rank]].ops.size() - before;
  }

  // Copied files lose their times; the operations keep theirs.
  static std::pair<TimeNs, TimeNs> latest(const FlightDump& dump) {
    TimeNs last = kNoTime;
    for (const FlightOp& op : dump.ops) last = std::max(last, op.created_ns);
    return {last, dump.written_ns};
  }

  // The location of a rank, from its dump's path, job.toml or its log.
  flight::RankPlace place_of(const detect::View& view, uint32_t rank) const {
    flight::RankPlace place{host_of_rank(options.job, rank), device_of_rank(options.job, rank)};
    const auto at = flight_of.find(rank);
    const FlightDump* dump = at == flight_of.end() ? nullptr : &flights[at->second];
    if (dump && dump->host && !dump->host_guessed) place.host = dump->host;
    if (!place.host) place.host = loop_ranks.host_of(rank);
    add_from_log(view, rank, place);
    if (!place.host && dump) place.host = dump->host;
    return place;
  }

  static void add_from_log(const detect::View& view, uint32_t rank, flight::RankPlace& place) {
    const uint32_t unit = view.rank_numbered(rank);
    if (unit == detect::kNowhere) return;
    const detect::Unit& known = view.ranks[unit];
    if (!place.host && !view.by_rank && known.host != detect::kNowhere)
      place.host = view.hosts[known.host].name;
    if (!place.device && known.devices.size() == 1) place.device = known.devices[0];
  }

  // Whether the job progressed after the last operation in its dumps. Then the dumps are from an earlier stop
  // or another run, and prove no hang.
  bool went_on() const {
    if (!options.live) return false;
    TimeNs last = kNoTime;
    for (const FlightDump& dump : flights) last = std::max(last, latest(dump).first);
    return last != kNoTime && progress.moved_ns(log) > last + options.hang.after_ns;
  }

  // The clock detects a stop of progress. If another detector found the waiting ranks, both findings are the
  // same hang.
  static void join_stall(std::vector<Finding>& findings) {
    const auto hangs = [](const Finding& f, DetectorKind detector) {
      return f.kind == FindingKind::kFault && f.symptom == Symptom::kHang && f.detector == detector;
    };
    const auto stall = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) {
      return f.rule.empty() && hangs(f, DetectorKind::kSilence);
    });
    const auto known = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& f) { return hangs(f, DetectorKind::kComm); });
    if (stall == findings.end() || known == findings.end()) return;
    if (!known->iteration) known->iteration = stall->iteration;
    std::move(stall->why.begin(), stall->why.end(), std::back_inserter(known->why));
    std::move(stall->evidence.begin(), stall->evidence.end(), std::back_inserter(known->evidence));
    known->lines += stall->lines;
    findings.erase(stall);
  }

  // A crash, a hang or wrong numbers outrank a slow rank, whatever its confidence.
  static void put_slowness_behind(std::vector<Finding>& findings) {
    const auto is_worse = [](const Finding& f) {
      const bool fault = f.kind == FindingKind::kFault && f.role == FindingRole::kRoot;
      return fault && f.symptom != Symptom::kSlowdown && f.symptom != Symptom::kOther &&
             (f.fatal || f.confidence >= 0.5);
    };
    double worst = 0;
    for (const Finding& f : findings)
      if (is_worse(f)) worst = std::max(worst, f.confidence);
    if (worst <= 0) return;
    for (Finding& f : findings) {
      if (f.kind != FindingKind::kFault || f.detector != DetectorKind::kComm ||
          f.symptom != Symptom::kSlowdown)
        continue;
      f.general = true;
      f.confidence = std::min(f.confidence, worst);
    }
  }

  // Adds the findings of dumps, merged with a hang that the clock detected.
  std::vector<std::string> add_flights(const detect::View& view, detect::Analysis& analysis, Report& report) {
    if (went_on()) {
      report.problems.push_back({"", std::nullopt,
                                 "the Flight Recorder's dumps are of a stop that is over: the job went on "
                                 "after them"});
      return {};
    }
    const flight::PlaceOfRank place = [&](uint32_t rank) { return place_of(view, rank); };
    flight::FlightAnswer answer = flight::analyse_flight(flights, place);
    std::move(answer.findings.begin(), answer.findings.end(), std::back_inserter(analysis.findings));
    std::move(answer.problems.begin(), answer.problems.end(), std::back_inserter(report.problems));
    if (answer.hang) {
      if (report.hang && report.hang->since_ns != kNoTime) answer.hang->since_ns = report.hang->since_ns;
      report.hang = std::move(answer.hang);
    }
    return std::move(answer.missing);
  }

  // Counts communication records as progress, as lines are. Records without step numbers prove progress by
  // their arrival.
  void beat(std::span<const CommRecord> records, TimeNs now) {
    for (size_t i = 0; i < records.size();) {
      detect::ProgressSeen seen{-1, records[i].rank};
      for (; i < records.size() && records[i].rank == seen.rank; ++i) {
        exits.returned(records[i].rank);
        if (records[i].op == CommOp::kJoin) continue;
        if (records[i].step == kCommUnknown)
          progress.moves(now);
        else
          seen.step = std::max(seen.step, static_cast<int64_t>(records[i].step));
      }
      if (seen.step >= 0) progress.beat(seen, now);
    }
  }

  // Reports data that was read but not kept in full: of each source, then of the whole job.
  void report_drops(std::vector<Problem>& out) const {
    for (SourceId id = 0; id < log.sources().size(); ++id)
      if (const uint64_t n = log.cut_lines_of(id); n > 0)
        out.push_back({log.sources()[id].file, std::nullopt,
                       fmt::format("{} lines are longer than {} bytes: the rest of them was not looked at", n,
                                   limits::kLineBytes)});
    for (std::string& what : log.drops().sentences()) out.push_back({"", std::nullopt, std::move(what)});
    for (std::string& what : comm.drop_sentences()) out.push_back({"", std::nullopt, std::move(what)});
  }

  // Open questions of the trace, and a rank that may have left out an operation.
  struct CommBeside {
    std::vector<std::string> missing;
    std::optional<comm::RankLeftOut> left_out;
  };
  CommBeside add_comm(detect::Analysis& analysis, Report& report, TimeNs now) {
    if (comm.empty()) return {};
    // Records that only end prove no hang in a live job: some ranks are always inside an operation.
    const bool by_clock = now != kNoTime && progress.may_stall(options.hang, now);
    const comm::Stopped stopped = by_clock        ? comm::Stopped::kByClock
                                  : !options.live ? comm::Stopped::kRecordsEnd
                                                  : comm::Stopped::kNo;
    comm::TraceFindings said = comm::report_findings(comm, stopped, {&load, &announced});
    std::move(said.wanted.begin(), said.wanted.end(), std::back_inserter(wanted));
    std::move(said.findings.begin(), said.findings.end(), std::back_inserter(analysis.findings));
    report.irregularities = std::move(said.irregularities);
    report.comm = std::move(said.steps);
    if (said.hang) report.hang = std::move(said.hang);
    return {std::move(said.missing), std::move(said.left_out)};
  }

  // Joins two findings: replicas that differ since a rank left out a reduction. The program is at fault, not
  // a device.
  static void join_left_out(comm::RankLeftOut said, std::vector<Finding>& findings) {
    constexpr int64_t kNear = 1;  // steps: the numbers of a step may be logged in the next
    Finding& fault = said.finding;
    const auto follows = [&](const Finding& f) {
      if (f.detector != DetectorKind::kNumerics || !f.iteration ||
          std::abs(*f.iteration - *fault.iteration) > kNear)
        return false;
      return std::any_of(f.subjects.begin(), f.subjects.end(),
                         [&](const FindingSubject& s) { return s.rank == fault.subjects[0].rank; });
    };
    for (const Finding& f : findings) {
      if (!follows(f)) continue;
      if (!said.stopped) fault.symptom = Symptom::kNumeric;
      if (fault.first_ns == kNoTime) fault.first_ns = fault.last_ns = f.first_ns;
      fault.why.push_back(f.title);
      fault.why.insert(fault.why.end(), f.why.begin(), f.why.end());
    }
    const bool agreed = std::erase_if(findings, follows) > 0;
    if (agreed || said.stopped) findings.push_back(std::move(fault));
  }

  // The last iteration in lines or heartbeats.
  std::optional<int64_t> iteration() const {
    const int64_t last = std::max(fate.last_iteration, progress.beaten());
    return last < 0 ? std::nullopt : std::optional(last);
  }

  // A rank whose process ended while it waited in an operation was killed with the others.
  void judge_exits(const detect::View& view, detect::Analysis& analysis) const {
    if (exits.empty()) return;
    detect::RankExits first = exits;
    for (const CommRecord& record : comm.standing())
      if (record.end_ns == 0) first.returned(record.rank);
    JobSummary known;
    comm::add_summary(comm, known);
    const detect::RankExits& judged = first.empty() ? exits : first;
    const auto& groups = comm.cluster().comms();
    const bool one_host = known.hosts == 1 && std::ranges::all_of(groups, [&](const comm::CommInfo& group) {
                            return group.reported_size <= known.ranks;
                          });
    judged.judge({view, analysis.fate, known.ranks, progress.last_move_ns(), one_host, iteration()},
                 analysis.findings);
  }

  void add_numerics(const detect::View& view, detect::Analysis& analysis, Report& report) {
    if (!numbers.empty()) add_metrics(view, analysis, report);
    if (auto lost = detect::find_lost_numbers(view, analysis)) join_lost(std::move(*lost), analysis, report);
  }

  void add_metrics(const detect::View& view, detect::Analysis& analysis, Report& report) {
    numerics::NumericFindings said = numbers.findings();
    for (Finding& finding : said.findings) {
      for (FindingSubject& subject : finding.subjects) {
        if (!subject.rank) continue;
        flight::RankPlace place = place_of(view, *subject.rank);
        if (!subject.host) subject.host = std::move(place.host);
        if (!subject.device) subject.device = place.device;
      }
      analysis.findings.push_back(std::move(finding));
    }
    for (std::string& what : order.problems()) said.problems.push_back(std::move(what));
    for (std::string& what : said.problems) report.problems.push_back({"", std::nullopt, std::move(what)});
    report.numerics = std::move(said.faults);
    report.curves = std::move(said.curves);
  }

  // Adds lost numbers of the logs. If metrics or a rule report them too, it is one fault.
  static void join_lost(detect::LostNumbers lost, detect::Analysis& analysis, Report& report) {
    const auto is_numeric = [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.symptom == Symptom::kNumeric;
    };
    auto& all = analysis.findings;
    const auto metric = std::find_if(all.begin(), all.end(), [&](const Finding& f) {
      return is_numeric(f) && f.rule.empty() && f.detector == DetectorKind::kNumerics;
    });
    if (metric != all.end()) {
      std::move(lost.finding.evidence.begin(), lost.finding.evidence.end(),
                std::back_inserter(metric->evidence));
      metric->lines += lost.finding.lines;
      return;
    }
    Finding& finding = lost.finding;
    for (Finding& f : all) {
      if (!is_numeric(f) || f.rule.empty()) continue;
      if (finding.rule.empty()) finding.rule = f.rule;
      finding.fatal |= f.fatal;
      finding.confidence = std::max(finding.confidence, f.confidence);
      std::move(f.why.begin(), f.why.end(), std::back_inserter(finding.why));
      std::move(f.evidence.begin(), f.evidence.end(), std::back_inserter(finding.evidence));
      finding.lines += f.lines;
      finding.last_ns = std::max(finding.last_ns, f.last_ns);
    }
    std::erase_if(all, [&](const Finding& f) { return is_numeric(f) && !f.rule.empty(); });
    report.numerics.push_back(std::move(lost.fault));
    all.push_back(std::move(finding));
  }

  // Reports sources whose times are too far apart for one job. A good end of one source then proves nothing
  // for the others, and no answer holds for all.
  void report_several_jobs(Report& report) const {
    constexpr TimeNs kApart = 24 * 3600 * kNsPerSecond;  // a job that waits for its hosts restarts sooner
    std::vector<std::pair<TimeNs, TimeNs>> spans;
    for (SourceId id = 0; id < log.sources().size(); ++id)
      if (const auto span = log.span_of(id); span.first != kNoTime) spans.push_back(span);
    std::sort(spans.begin(), spans.end());
    size_t jobs = spans.empty() ? 0 : 1;
    TimeNs last = spans.empty() ? 0 : spans[0].second, covered = 0;
    for (const auto& [first, end] : spans) {
      covered = std::max(covered, end - first);
      if (first - last > std::max(kApart, 2 * covered)) ++jobs;
      last = std::max(last, end);
    }
    if (jobs > 1 && report.diagnoses.empty())
      report.missing.push_back(
          fmt::format("which logs belong together: they fall into {} times far apart, like those of several "
                      "jobs; diagnose one at a time",
                      jobs));
  }

  void report_troubles(std::vector<Problem>& out) const {
    std::map<std::string, Problem> by_rule;
    for (const auto* run : {&live, &whole}) {
      if (!*run) continue;
      for (const rules::RuleTrouble& t : (*run)->troubles()) {
        const auto index = (*run)->ruleset().find(t.rule);
        by_rule[t.rule] = {index ? (*run)->ruleset().rules()[*index].place.file : "", std::nullopt,
                           fmt::format("{} ({} errors, {} overruns{})", t.what, t.errors, t.overruns,
                                       t.quarantined ? ": not asked any more" : "")};
      }
    }
    for (auto& [rule, problem] : by_rule) out.push_back(std::move(problem));
    if (whole && whole->dropped() > 0)
      out.push_back({"", std::nullopt,
                     fmt::format("{} hits found no room in the windows of their rules", whole->dropped())});
  }
};

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

std::vector<Effect> Engine::step(std::span<Input> inputs, TimeNs now) {
  for (Input& input : inputs) std::visit([this, now](auto& i) { impl_->ingest(i, now); }, input);
  std::vector<Effect> effects;
  if (!impl_->live) return effects;
  const auto& lines = impl_->log.rule_lines();
  for (; impl_->reported < lines.size(); ++impl_->reported) {
    const logs::RuleLine& line = lines[impl_->reported];
    const rules::Rule& rule = impl_->live->ruleset().rules()[line.rule];
    if (!impl_->live->add(diagnose::hit_of(impl_->log, line)) || rule.severity < Severity::kError ||
        line.handled)
      continue;
    effects.emplace_back(diagnose::finding_of(impl_->log, line, rule));
  }
  return effects;
}

std::vector<RuleFired> Engine::firings() {
  std::vector<RuleFired> out;
  if (!impl_->whole) return out;
  impl_->log.settle();
  rules::RuleRun& run = *impl_->whole;
  run.clear();
  for (const logs::RuleLine* line : diagnose::in_time(impl_->log)) {
    rules::RuleHit hit = diagnose::hit_of(impl_->log, *line);
    if (const auto firing = run.add(hit)) out.push_back({line->place, std::move(hit), *firing});
  }
  std::stable_sort(out.begin(), out.end(), [](const RuleFired& a, const RuleFired& b) {
    return std::tie(a.place.source, a.place.line, a.hit.rule) <
           std::tie(b.place.source, b.place.line, b.hit.rule);
  });
  return out;
}

std::vector<std::string> Engine::drop_sentences() const {
  std::vector<Problem> problems;
  impl_->report_drops(problems);
  impl_->report_troubles(problems);
  std::vector<std::string> out;
  for (Problem& p : problems) out.push_back(std::move(p.what));
  return out;
}

Report Engine::report(TimeNs now, const detect::Unheard& unheard) {
  Report report;
  impl_->log.settle();
  const detect::View view = detect::make_view(impl_->log);
  // A pool that the daemon learned may have other kinds of jobs; a pool that a user named is always used.
  static const detect::Pool kNone;
  const bool fits = !impl_->options.live || impl_->options.pool.resembles(impl_->log);
  detect::Analysis analysis = detect::analyse(view, fits ? impl_->options.pool : kNone, impl_->options.steps);
  analysis.fate.trained = analysis.fate.last_iteration >= 0 || impl_->progress.beaten() > 0;
  impl_->fate = analysis.fate;
  if (now != kNoTime) {
    if (auto stall = impl_->progress.find_stall(impl_->log, impl_->options.hang, now)) {
      report.hang = Hang{stall->first_ns, {}, {}};
      analysis.findings.push_back(std::move(*stall));
    }
  }
  std::vector<std::string> pending;
  if (impl_->options.steps.shapes && impl_->whole) {
    diagnose::Signs signs = diagnose::find_signs(view, analysis, *impl_->whole);
    std::move(signs.findings.begin(), signs.findings.end(), std::back_inserter(analysis.findings));
    analysis.rules = std::move(signs.rules);
    pending = std::move(signs.missing);
  }
  auto [missing, left_out] = impl_->add_comm(analysis, report, now);
  std::ranges::move(pending, std::back_inserter(missing));
  impl_->add_numerics(view, analysis, report);
  if (left_out) Impl::join_left_out(std::move(*left_out), analysis.findings);
  if (!impl_->flights.empty())
    std::ranges::move(impl_->add_flights(view, analysis, report), std::back_inserter(missing));
  Impl::join_stall(analysis.findings);
  impl_->judge_exits(view, analysis);
  detect::leave_out(unheard, analysis.findings);
  if (report.hang) detect::leave_out(unheard, *report.hang);
  Impl::put_slowness_behind(analysis.findings);
  diagnose::correlate(view, analysis, report);
  comm::add_summary(impl_->comm, report.job);
  impl_->loop_ranks.add_summary(report.job);
  report.job.ranks = std::max<uint64_t>(report.job.ranks, impl_->flights.size());
  report.job.bytes += impl_->non_log.bytes;
  report.job.lines += impl_->non_log.lines;
  const bool found = report.hang || !report.suspects.empty() || !report.diagnoses.empty();
  if (auto ranks = impl_->comm.missing(); ranks && found) missing.push_back(std::move(*ranks));
  std::move(missing.begin(), missing.end(), std::back_inserter(report.missing));
  report.problems.insert(report.problems.end(), impl_->problems.begin(), impl_->problems.end());
  impl_->report_drops(report.problems);
  impl_->report_several_jobs(report);
  impl_->report_troubles(report.problems);
  const bool traces = !impl_->comm.empty() || !impl_->numbers.empty() || !impl_->flights.empty();
  if (now == kNoTime || report.job.lines > 0)  // a job that just began has no data yet
    diagnose::request_proof({analysis.fate.ended_well, impl_->log.iterations().moves() > 0, traces}, report);
  // Problems arrive in any order, from several threads.
  std::sort(report.problems.begin(), report.problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.offset, a.what) < std::tie(b.file, b.offset, b.what);
  });
  return report;
}

bool Engine::may_stall(TimeNs now) const { return impl_->progress.may_stall(impl_->options.hang, now); }
TimeNs Engine::progressed_ns() const { return impl_->progress.last_move_ns(); }
bool Engine::ended_well() const { return impl_->fate.ended_well; }

std::vector<comm::StepsWanted> Engine::drain_requests() { return std::exchange(impl_->wanted, {}); }

std::optional<int64_t> Engine::iteration() const { return impl_->iteration(); }

std::optional<std::string> Engine::device_name(uint32_t rank) const {
  return impl_->loop_ranks.device_of(rank);
}

bool Engine::settle_loop(TimeNs until) { return impl_->order.settle(until); }

void Engine::set_hang(const detect::StallOptions& hang) { impl_->options.hang = hang; }

void Engine::replace_rules(std::shared_ptr<rules::Ruleset> rules) {
  Impl& s = *impl_;
  std::vector<uint32_t> to(s.options.rules ? s.options.rules->rules().size() : 0, logs::JobLog::kNoRule);
  for (uint32_t i = 0; i < to.size(); ++i) {
    const rules::Rule& old = s.options.rules->rules()[i];
    const auto index = rules ? rules->find(old.id) : std::nullopt;
    if (index && rules->rules()[*index].text_hash == old.text_hash) to[i] = *index;
  }
  const auto& lines = s.log.rule_lines();
  s.reported = static_cast<size_t>(
      std::count_if(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(s.reported),
                    [&](const logs::RuleLine& line) { return to[line.rule] != logs::JobLog::kNoRule; }));
  s.log.renumber_rules(to);
  for (auto* run : {&s.live, &s.whole}) {
    if (run == &s.live && !s.options.live) continue;
    if (!rules)
      run->reset();
    else if (*run)
      (*run)->replace(rules);
    else
      run->emplace(rules);
  }
  s.options.rules = std::move(rules);
}

std::unique_ptr<logs::LineScanner> Engine::make_scanner() const {
  if (!impl_->options.rules) return nullptr;
  return std::make_unique<rules::BlockScanner>(*impl_->options.rules);
}

void Engine::add_to(detect::Pool& pool) {
  impl_->log.settle();
  pool.add(impl_->log);
}

const logs::JobLog& Engine::log() const { return impl_->log; }

const logs::JobLog& Engine::settled_log() {
  impl_->log.settle();
  return impl_->log;
}

}  // namespace culprit::core
