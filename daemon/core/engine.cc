#include "core/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/detect/comm/findings.h"
#include "core/detect/flight/flight.h"
#include "core/detect/flight/flight_dumps.h"
#include "core/detect/logs/ending.h"
#include "core/detect/logs/lost_numbers.h"
#include "core/detect/stacks/stacks.h"
#include "core/diagnose/code_change.h"
#include "core/diagnose/correlator.h"
#include "core/diagnose/proof.h"
#include "core/diagnose/signs.h"
#include "core/fuse/correlate.h"
#include "core/fuse/hang_state.h"
#include "core/fuse/merge_findings.h"
#include "core/fuse/pass.h"
#include "core/loop_order.h"
#include "core/loop_ranks.h"
#include "core/measured_steps.h"
#include "core/rule_runs.h"
#include "core/rules/block_scanner.h"
#include "core/rules/run.h"
#include "model/headline.h"

namespace culprit::core {

namespace {

constexpr size_t kPluginTroubles = 100;  // limit of plugin problems in a job's report

void add_from_log(const detect::View& view, uint32_t rank, RankPlace& place) {
  const uint32_t unit = view.rank_numbered(rank);
  if (unit == detect::kNowhere) return;
  const detect::Unit& known = view.ranks[unit];
  if (!place.host && !view.by_rank && known.host != detect::kNowhere)
    place.host = view.hosts[known.host].name;
  if (!place.device && known.devices.size() == 1) place.device = known.devices[0];
}

// Reports data that was read but not kept in full: of each source, then of the whole job.
void report_drops(const logs::JobLog& log, const comm::CommTrace& comm, std::vector<Problem>& out) {
  for (SourceId id = 0; id < log.sources().size(); ++id)
    if (const uint64_t n = log.cut_lines_of(id); n > 0)
      out.push_back({log.sources()[id].file, std::nullopt,
                     fmt::format("{} lines are longer than {} bytes: the rest of them was not looked at", n,
                                 limits::kLineBytes)});
  for (std::string& what : log.drops().sentences()) out.push_back({"", std::nullopt, std::move(what)});
  for (std::string& what : comm.drop_sentences()) out.push_back({"", std::nullopt, std::move(what)});
}

// Reports sources whose times are too far apart for one job. Then a good end of one source proves nothing for
// the others, and no answer is valid for all.
void report_several_jobs(const logs::JobLog& log, Report& report) {
  constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;
  constexpr TimeNs kApart = kDay;  // a job that waits for its hosts restarts sooner than this
  constexpr TimeNs kLongest =
      200 * kDay;  // a longer file contains a line of another year, as from an unset clock
  std::vector<std::pair<TimeNs, TimeNs>> spans;
  for (SourceId id = 0; id < log.sources().size(); ++id)
    if (const auto span = log.span_of(id); span.first != kNoTime && span.second - span.first < kLongest)
      spans.push_back(span);
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

}  // namespace

struct Engine::Impl {
  EngineOptions options;
  logs::JobLog log;
  std::vector<Problem> problems;
  RuleRuns rule_runs;
  detect::ProgressWatch progress;
  detect::SaveWatch saves;
  detect::RunEnd outcome;          // of the last report
  std::optional<JobScope> extent;  // of the report under construction
  comm::CommTrace comm;
  comm::HostLoad load;
  comm::Announced announced;
  std::vector<comm::StepsWanted> wanted;  // since the last drain_requests()
  flight::FlightDumps flights;
  stacks::Samples stacks;
  std::optional<stacks::SlowAnswer> slow;  // result of the stacks, by number of dumps
  uint64_t rounds_of = 0;
  numerics::Detector numbers;
  LoopOrder order{{[this](const MetricRow& row) { numbers.add(row); },
                   [this](const LoopEvent& event) { numbers.add(event); }}};
  LoopRanks loop_ranks;
  detect::RankExits exits;
  PluginFindings plugins;
  ras::RasStates ras;
  std::vector<FindingInput> troubles;  // of plugins themselves, the first ones
  size_t plugin_troubles = 0;          // all of them
  std::vector<Finding> urgent;         // plugin findings for the effects of this step
  NonLogRead non_log;
  int64_t first_step = -1, last_step = -1;  // of traces and metrics
  TimeNs rows_ns = kNoTime;                 // of the first metrics
  MeasuredSteps steps;
  struct Speakers {
    std::set<Principal> users;
    bool others = false;  // root, the daemon's user, or not known
  };
  std::map<ReceivedTraceCount::Of, Speakers> speakers;  // of data that is not log text

  explicit Impl(EngineOptions o)
      : options(std::move(o)),
        log(options.job),
        rule_runs(std::move(options.rules), options.watch, options.live),
        comm(&options.job, options.live, options.parallel),
        numbers(layout_of(options.job)) {
    for (const std::string& rule : options.quarantined) rule_runs.quarantine(rule);
    for (const detect::PoolForm& f : options.pool.forms) log.add_pool_form(f.hash, f.text);
  }

  void ingest(SourceOpened& input, TimeNs) { log.open_source(input.info); }
  void ingest(LogInput& input, TimeNs now) {
    CULPRIT_CHECK(input.batch);
    log.add(*input.batch);
    if (options.live) mark_alarms(*input.batch);
    progress.lines(log.iterations().moves(), now);
  }
  void ingest(ProblemSeen& input, TimeNs) { problems.push_back(std::move(input.problem)); }
  void ingest(detect::ProgressSeen& input, TimeNs now) { progress.beat(input, now); }
  void ingest(detect::PhaseSeen& input, TimeNs now) {
    announced.add(input.rank, input.name, input.begins, now);
    progress.phase(input, now);
    saves.phase(input, iteration().value_or(-1), now);
  }
  void ingest(CommInput& input, TimeNs now) {
    comm.add_records(input.host, input.records);
    if (options.live) beat(input.records, now);
  }
  void note_step(int64_t step) {
    first_step = first_step < 0 ? step : std::min(first_step, step);
    last_step = std::max(last_step, step);
  }
  void note_steps(std::span<const CommRecord> records) {
    if (records.empty()) return;
    for (const CommRecord* one : {&records.front(), &records.back()})
      if (one->step != kCommUnknown) note_step(one->step);
  }
  // Records at the head of the inputs, all at once. Returns the number of these inputs.
  size_t ingest_comm(std::span<const Input> inputs) {
    std::vector<comm::HostRecords> blocks;
    for (const Input& input : inputs) {
      const auto* records = std::get_if<CommInput>(&input);
      if (!records) break;
      note_steps(records->records);
      blocks.push_back({&records->host, records->records});
    }
    if (!blocks.empty()) comm.add_records(blocks);
    return blocks.size();
  }
  void ingest(CommCondensed& input, TimeNs now) {
    CULPRIT_CHECK(input.reported && input.streams);
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
      note_step(row.step);
      if (row.time_ns != kNoTime) rows_ns = rows_ns == kNoTime ? row.time_ns : std::min(rows_ns, row.time_ns);
      load.add(row);
      steps.add(row.step, row.time_ns);
      if (!options.live) numbers.add(row);  // rows of files are in the order of steps
    }
    if (options.live) order.add(input.rows, now, input.remote);
  }
  void ingest(EventInput& input, TimeNs now) {
    loop_ranks.add(input.event);
    saves.event(input.event, now);
    options.live ? order.add(input.event, now, input.remote) : numbers.add(input.event);
  }
  void ingest(NonLogRead& input, TimeNs) {
    non_log.bytes += input.bytes;
    non_log.lines += input.lines;
  }
  void ingest(detect::RankExited& input, TimeNs now) { exits.add(input, now); }
  void ingest(ReceivedTraceCount& input, TimeNs) {
    constexpr size_t kUsers = 64;
    Speakers& of = speakers[input.of];
    of.others = of.others || !input.user;
    if (input.user && of.users.size() < kUsers) of.users.insert(*input.user);
  }
  // Marks detector findings whose data came from users alone.
  void name_speakers(std::vector<Finding>& findings) const {
    for (Finding& f : findings) {
      const auto from = f.detector == DetectorKind::kComm       ? speakers.find(ReceivedTraceCount::Of::kComm)
                        : f.detector == DetectorKind::kNumerics ? speakers.find(ReceivedTraceCount::Of::kLoop)
                        : f.detector == DetectorKind::kFlight ? speakers.find(ReceivedTraceCount::Of::kDumps)
                        : f.detector == DetectorKind::kStacks ? speakers.find(ReceivedTraceCount::Of::kStacks)
                                                              : speakers.end();
      if (from == speakers.end() || from->second.others || !f.said_by.uids.empty()) continue;
      f.said_by.uids.assign(from->second.users.begin(), from->second.users.end());
    }
  }
  void name_speakers(fuse::Draft& draft) { name_speakers(draft.analysis.findings); }
  // The detectors' findings, for rules with source `finding`.
  void read_findings(fuse::Draft& draft) {
    std::vector<Finding>& findings = draft.analysis.findings;
    name_speakers(findings);
    const bool well = draft.analysis.outcome.ended_well;
    draft.report.findings = diagnose::seen_findings(findings, well);
    if (rules::RuleRun* const run = rule_runs.in_time(); run && options.steps.shapes)
      diagnose::apply_rules_to_findings(*run, well, findings);
  }
  void ingest(FindingInput& input, TimeNs) {
    if (forgets(input.finding)) return plugins.forget(std::move(input));
    if (is_about_culprit(input.finding)) {
      if (!input.user && ++plugin_troubles <= kPluginTroubles) troubles.push_back(std::move(input));
      return;
    }
    auto found = plugins.add(std::move(input));
    if (found && options.live) urgent.push_back(std::move(*found));
  }
  // Plugin problems while the job ran. They do not hide the job's data.
  void report_troubles(const JobScope& scope, std::vector<Problem>& out) const {
    for (const FindingInput& input : troubles) {
      const TimeNs at = input.finding.time_ns;
      const bool within = scope.first_ns() == kNoTime || at == kNoTime ||
                          (at >= scope.first_ns() && at <= scope.last_ns() + options.hang.after_ns);
      if (within) out.push_back({input.file, input.offset, input.finding.text, About::kCulprit});
    }
    if (plugin_troubles > kPluginTroubles)
      out.push_back({"", std::nullopt,
                     fmt::format("{} of plugins are not listed",
                                 counted(plugin_troubles - kPluginTroubles, "further failure")),
                     About::kCulprit});
    if (plugins.dropped() > 0)
      out.push_back({"", std::nullopt,
                     fmt::format("{} of plugins about further subjects are not kept",
                                 counted(plugins.dropped(), "finding"))});
  }
  // The hosts and the time span, from all data read.
  JobScope scope_of(const detect::View& view) const {
    JobScope scope(view, options.job);
    for (const std::string& host : comm.cluster().hosts()) scope.add_host(host);
    for (const std::string* host : loop_ranks.hosts()) scope.add_host(*host);
    JobSummary other;
    comm::add_summary(comm, other);
    loop_ranks.add_summary(other);
    scope.add_times(other);
    return scope;
  }
  void ingest(ras::RasInput& input, TimeNs) { ras.add(std::move(input)); }
  void ingest(RuleOverran& input, TimeNs) { rule_runs.overrun(input.rule); }
  void ingest(FlightInput& input, TimeNs) { flights.add(std::move(input.dump), problems); }

  void ingest(StackInput& input, TimeNs now) {
    if (input.dump.time_ns == kNoTime) input.dump.time_ns = now;
    stacks.add(input.dump);
  }
  void ingest(StackRefusal& input, TimeNs) { stacks.add_silent(input.rank, std::move(input.reason)); }

  // The location of a rank, from its dump's path, job.toml or its log.
  RankPlace place_of(const detect::View& view, uint32_t rank) const {
    RankPlace place{host_of_rank(options.job, rank), device_of_rank(options.job, rank)};
    const FlightDump* dump = flights.of(rank);
    if (dump && dump->host && !dump->host_guessed) place.host = dump->host;
    if (!place.host) place.host = loop_ranks.host_of(rank);
    add_from_log(view, rank, place);
    if (!place.host && dump) place.host = dump->host;
    return place;
  }

  // Marks the forms of kernel messages and of lines that match a fatal rule.
  void mark_alarms(const logs::LogBatch& batch) {
    const std::vector<uint32_t>& forms = log.last_forms();
    if (log.sources()[batch.source].kind == SourceKind::kKernel)
      for (const uint32_t form : forms) mark_alarm(form);
    const rules::Ruleset* const rules = rule_runs.ruleset();
    for (const logs::LineHit& hit : batch.hits) {
      if (hit.known == logs::Meaning::kNothing) continue;
      const bool fatal = rules && rules->rules()[hit.rule].severity == Severity::kFatal;
      const uint32_t form = batch.lines[hit.line].form;
      if ((fatal || hit.kernel) && form != logs::kNoForm) mark_alarm(forms[form]);
    }
  }
  void mark_alarm(uint32_t form) {
    if (form < log.forms().size()) log.mark_alarm(form);
  }
  // A record's form may differ from that of its line with the fatal rule.
  void mark_alarm_records() {
    const rules::Ruleset* const rules = rule_runs.ruleset();
    std::set<logs::ClusterId> alarms;
    for (const logs::RuleLine& line : log.rule_lines())
      if (line.kernel || (rules && !line.handled && rules->rules()[line.rule].severity == Severity::kFatal))
        alarms.insert(log.miner().resolve(line.cluster));
    for (uint32_t form = 0; form < log.forms().size(); ++form)
      if (alarms.contains(log.forms()[form].cluster)) log.mark_alarm(form);
  }

  // Whether the job progressed after the last operation in its dumps. Then the dumps are from an earlier stop
  // or another run, and prove no hang.
  bool went_on() const {
    const TimeNs last = flights.last_ns();
    const TimeNs moved = options.live ? progress.moved_ns(log) : outcome.last_progress_ns;
    return last != kNoTime && moved != kNoTime && moved > last + options.hang.after_ns;
  }

  std::optional<flight::FlightAnswer> ask_flights(const detect::View& view, Report& report) const {
    if (flights.all().empty() || outcome.ended_well) return std::nullopt;
    if (went_on()) {
      report.problems.push_back({"", std::nullopt,
                                 "the Flight Recorder's dumps are of a stop that is over: the job went on "
                                 "after them"});
      return std::nullopt;
    }
    return flight::analyse_flight(flights.all(), places(view));
  }

  // A job whose watchdogs timed out after its stated end did not end well.
  void judge_end(const detect::View& view, detect::RunEnd& end) const {
    const rules::Ruleset* const rules = rule_runs.ruleset();
    if (rules && end.ended_well) end.ended_well = !fuse::timed_out_at_end(view, *rules, end);
  }

  // Adds the reason why the job stands still, from all sources.
  void add_hang_state(fuse::Draft& draft) {
    const detect::View& view = draft.view;
    detect::Analysis& analysis = draft.analysis;
    Report& report = draft.report;
    const rules::Ruleset* ruleset = rule_runs.ruleset();
    if (!options.steps.shapes || analysis.outcome.ended_well) ruleset = nullptr;
    const PlaceOfRank place = places(view);
    const fuse::HangContext context{view, ruleset, place};
    if (ruleset) fuse::blame_loopback(context, analysis);
    fuse::HangSources sources;
    sources.unproven = std::move(draft.signs.unproven);
    sources.flight = ask_flights(view, report);
    sources.ras = ask_ras(view, analysis, draft.now);
    // Time-outs in the logs show a hang as well.
    const bool timed_out = std::ranges::any_of(analysis.findings, [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.symptom == Symptom::kHang;
    });
    const bool hangs = report.hang || timed_out || (sources.flight && sources.flight->waits) ||
                       (sources.ras && !sources.ras->verdict.findings.empty());
    sources.stacks = ask_stacks(view, hangs, report);
    if (sources.stacks) sources.stack_observations = stacks::observations_of(stacks);
    std::ranges::move(fuse::add_hang_state(context, std::move(sources), analysis, report),
                      std::back_inserter(draft.open));
  }

  // Adds the findings of rules, and stores rule signs that are no findings.
  void add_signs(fuse::Draft& draft) {
    rules::RuleRun* const run = rule_runs.in_time();
    if (!run || !options.steps.shapes) return;
    detect::Analysis& analysis = draft.analysis;
    diagnose::Signs& signs = draft.signs;
    signs = diagnose::find_signs(draft.view, analysis, *run);
    drop_outlived(steps, log.last_ns(), signs.findings, signs.witnesses);
    std::ranges::move(signs.findings, std::back_inserter(analysis.findings));
    analysis.rules = std::move(signs.rules);
    analysis.torn_down = std::move(signs.torn_down);
    std::ranges::move(signs.missing, std::back_inserter(draft.open));
    draft.report.notes = std::move(signs.notes);
    if (signs.notes_cut > 0) draft.report.cut["notes"] = signs.notes_cut;
  }

  // The job's pace by its log lines, else by its metrics. A trace also shows the ranks that others wait for.
  void add_pace(fuse::Draft& draft) {
    const detect::RunEnd& end = draft.analysis.outcome;
    if (!comm.empty() || end.ended_well) return;
    const auto pace = end.slower ? end.slower : steps.slower_pace();
    if (!pace || pace->from_ns == kNoTime) return;
    draft.analysis.findings.push_back(
        pace_finding(*pace, end.slower ? end.last_progress_ns : steps.last_ns()));
  }

  void join(fuse::Draft& draft) {
    // Lines without a time make a hang seem older than the last progress.
    const TimeNs waits = draft.report.hang ? draft.report.hang->since_ns : kNoTime;
    fuse::join_causes(draft.analysis.findings, std::move(draft.signs.witnesses),
                      std::max(waits, draft.analysis.outcome.last_progress_ns));
  }

  // The RAS result for a job that stands still: by its clock, or offline.
  std::optional<ras::RasStates::RasJudgement> ask_ras(const detect::View& view,
                                                      const detect::Analysis& analysis, TimeNs now) const {
    if (ras.empty() || analysis.outcome.ended_well) return std::nullopt;
    if (now != kNoTime && progress.goes_on(log, options.hang, now)) return std::nullopt;
    ras::RasStates::Moment moment{progress.last_move_ns(), now, options.hang.after_ns, {}};
    moment.place = places(view);
    return ras.judge(moment);
  }

  PlaceOfRank places(const detect::View& view) const {
    return [this, &view](uint32_t rank) { return place_of(view, rank); };
  }

  // The hang result of stacks taken since the last progress. A live job is judged only if the clock or other
  // evidence shows a hang.
  std::optional<stacks::StackAnswer> ask_stacks(const detect::View& view, bool hangs, Report& report) {
    if (stacks.empty() || outcome.ended_well || (options.live && !hangs)) return std::nullopt;
    stacks.forget_before(options.live ? progress.moved_ns(log) : outcome.last_progress_ns);
    if (stacks.empty()) {
      report.problems.push_back({"", std::nullopt, "the stacks are older than the job's last progress"});
      return std::nullopt;
    }
    const stacks::GroupLayout layout(options.job);
    const PlaceOfRank place = places(view);
    for (std::string& what : stacks.drop_sentences()) report.problems.push_back({"", std::nullopt, what});
    stacks::StackAnswer answer = stacks::analyse_stacks({stacks, layout, place, hangs});
    // Several rounds show a slow rank; a single round is weaker evidence.
    if (!hangs && !answer.hangs && judge_rounds(view).finding) answer.findings.clear();
    return answer;
  }

  // The result of several rounds of stacks for a job that makes progress. For a live job they accuse no rank
  // alone: another source must show that its steps became slower.
  void add_rounds(fuse::Draft& draft) {
    if (stacks.empty() || outcome.ended_well) return;
    detect::Analysis& analysis = draft.analysis;
    Report& report = draft.report;
    const stacks::SlowAnswer& output = judge_rounds(draft.view);
    if (options.live) report.stacks = output.picture;
    if (!output.finding || report.hang) return;
    const auto is = [&](Symptom symptom) {
      return std::ranges::any_of(analysis.findings, [&](const Finding& f) {
        return f.kind == FindingKind::kFault && f.symptom == symptom;
      });
    };
    if (options.live ? is(Symptom::kSlowdown) : !is(Symptom::kHang))
      analysis.findings.push_back(*output.finding);
  }

  const stacks::SlowAnswer& judge_rounds(const detect::View& view) {
    if (rounds_of != stacks.arrivals() || !slow) {
      rounds_of = stacks.arrivals();
      const stacks::GroupLayout layout(options.job);
      slow = stacks::analyse_rounds({stacks, layout, places(view), false});
    }
    return *slow;
  }

  // Evidence of the job's health. Dumps without an open operation and a quiet RAS prove nothing.
  diagnose::Proof proof(TimeNs now) const {
    diagnose::Proof out{
        outcome.ended_well, log.iterations().moves() > 0, !comm.empty() || !numbers.empty(), {}};
    if (now == kNoTime && !outcome.end_stated) out.cut_short = detect::cut_short(log);
    return out;
  }

  // Counts communication records as progress, as for lines. Records without step numbers prove progress by
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

  void add_comm(fuse::Draft& draft) {
    if (comm.empty()) return;
    detect::Analysis& analysis = draft.analysis;
    Report& report = draft.report;
    const TimeNs now = draft.now;
    // Records that merely end prove no hang in a live job: some ranks are always inside an operation.
    const bool by_clock =
        now != kNoTime && progress.may_stall(options.hang, now) && !progress.excused(log, options.hang, now);
    const comm::Stopped stopped = by_clock         ? comm::Stopped::kByClock
                                  : !options.live  ? comm::Stopped::kRecordsEnd
                                  : !exits.empty() ? comm::Stopped::kRanksEnded
                                                   : comm::Stopped::kNo;
    comm::TraceFindings output = comm::report_findings(comm, stopped, {&load, &announced});
    std::move(output.wanted.begin(), output.wanted.end(), std::back_inserter(wanted));
    std::move(output.findings.begin(), output.findings.end(), std::back_inserter(analysis.findings));
    fuse::join_mismatch(analysis.findings);
    report.irregularities = std::move(output.irregularities);
    report.comm = std::move(output.steps);
    if (output.hang) report.hang = std::move(output.hang);
    draft.open.insert(draft.open.begin(), output.missing.begin(),
                      output.missing.end());  // the trace's come first
    draft.left_out = std::move(output.left_out);
  }

  // Whether a trace or the numbers of a file show that the job trained.
  bool shows_steps() const {
    if (options.live) return false;  // heartbeats show it
    return last_step > first_step;
  }

  void judge_steps(const detect::View& view, detect::RunEnd& of) const {
    of.trained = of.last_iteration >= 0 || progress.beaten() > 0 || shows_steps();
    of.first_step_ns = first_step_ns(view);
  }

  // When the first step was seen, in lines, a trace or numbers.
  TimeNs first_step_ns(const detect::View& view) const {
    TimeNs first = rows_ns;
    const auto add = [&first](TimeNs at) {
      if (at != kNoTime) first = first == kNoTime ? at : std::min(first, at);
    };
    for (const logs::ProgressPoint& p : view.log->iterations().track()) add(p.time_ns);
    if (!comm.empty()) add(comm.first_ns());
    return first;
  }

  // ---- short passes

  static std::span<const fuse::Pass<Impl>> passes();

  // The analysis of the lines, and the outcome according to them. A live job may be of another kind than the
  // pool's jobs; a pool named by a user is always used. The caller chose learned pools of the same kind.
  void read_lines(fuse::Draft& draft) {
    static const detect::Pool kNone;
    const bool fits = !options.live || options.pool.learned || options.pool.resembles(log);
    draft.analysis = detect::analyse(draft.view, fits ? options.pool : kNone, options.steps);
    judge_steps(draft.view, draft.analysis.outcome);
    judge_end(draft.view, draft.analysis.outcome);
    outcome = draft.analysis.outcome;
  }
  void add_stall(fuse::Draft& draft) {
    if (draft.now == kNoTime) return;
    if (auto stall = progress.find_stall(log, options.hang, draft.now)) {
      draft.report.hang = Hang{stall->first_ns, {}, {}};
      draft.analysis.findings.push_back(std::move(*stall));
    }
  }
  void add_plugins(fuse::Draft& draft) {
    extent = scope_of(draft.view);
    std::ranges::move(plugins.findings(draft.view, options.job, *extent),
                      std::back_inserter(draft.analysis.findings));
  }
  void join_operations(fuse::Draft& draft) {
    if (draft.left_out) fuse::join_left_out(std::move(*draft.left_out), draft.analysis.findings);
    draft.left_out.reset();
  }
  void join_stalls(fuse::Draft& draft) { fuse::join_stall(draft.analysis.findings); }
  void leave_out_unheard(fuse::Draft& draft) {
    detect::leave_out(draft.unheard, draft.analysis.findings);
    if (draft.report.hang) detect::leave_out(draft.unheard, *draft.report.hang);
  }
  void order_slowness(fuse::Draft& draft) { fuse::put_slowness_behind(draft.analysis.findings); }
  void correlate(fuse::Draft& draft) {
    diagnose::correlate(draft.view, draft.analysis, options.live, draft.report);
    diagnose::add_code_change(options.job, draft.report);
  }
  // Missing information for a better answer, and unread data.
  void ask(fuse::Draft& draft) {
    Report& report = draft.report;
    const bool found = report.hang || !report.suspects.empty() || !report.diagnoses.empty();
    if (auto ranks = comm.missing(); ranks && found) draft.open.push_back(std::move(*ranks));
    // People take stacks of a job that seems to stand still.
    if (!found && !stacks.empty() && !draft.analysis.outcome.ended_well && draft.open.empty())
      draft.open.emplace_back("whether the job goes on: its stacks are from after its last progress");
    std::ranges::move(draft.open, std::back_inserter(report.missing));
    report.problems.insert(report.problems.end(), problems.begin(), problems.end());
    report_drops(log, comm, report.problems);
    report_troubles(*extent, report.problems);
    report_several_jobs(log, report);
    // Without a fault, the dropped lines decide.
    if (const uint64_t dropped = rule_runs.dropped_faults(log); dropped > 0 && !found)
      report.missing.push_back(
          fmt::format("whether one of {} lines of errors that are not kept ended the job", dropped));
    rule_runs.add_troubles(report.problems);
    if (draft.now == kNoTime || report.job.lines > 0)  // a job that just began has no data yet
      diagnose::request_proof(proof(draft.now), report);
    // Problems arrive in any order, from several threads.
    std::sort(report.problems.begin(), report.problems.end(), [](const Problem& a, const Problem& b) {
      return std::tie(a.file, a.offset, a.what) < std::tie(b.file, b.offset, b.what);
    });
  }

  // The last iteration in lines or heartbeats.
  std::optional<int64_t> iteration() const {
    const int64_t last = std::max(outcome.last_iteration, progress.beaten());
    return last < 0 ? std::nullopt : std::optional(last);
  }

  // A rank whose process ended while it waited in an operation was killed with the others.
  void judge_exits(fuse::Draft& draft) {
    if (exits.empty()) return;
    const detect::View& view = draft.view;
    detect::Analysis& analysis = draft.analysis;
    detect::RankExits first = exits;
    for (const CommRecord& record : comm.open_records())
      if (record.end_ns == 0) first.returned(record.rank);
    JobSummary known;
    comm::add_summary(comm, known);
    const detect::RankExits& judged = first.empty() ? exits : first;
    const auto& groups = comm.cluster().comms();
    const bool one_host = known.hosts == 1 && std::ranges::all_of(groups, [&](const comm::CommInfo& group) {
                            return group.reported_size <= known.ranks;
                          });
    judged.judge({view, analysis.outcome, known.ranks, progress.last_move_ns(), one_host, iteration()},
                 analysis.findings);
  }

  // Adds ranks, hosts and times that the logs lack.
  void add_summary(fuse::Draft& draft) {
    JobSummary& job = draft.report.job;
    comm::add_summary(comm, job);
    loop_ranks.add_summary(job);
    job.ranks = std::max<uint64_t>({job.ranks, flights.all().size(), ras.ranks(), stacks.processes().size()});
    job.bytes += non_log.bytes;
    job.lines += non_log.lines;
  }

  void add_numerics(fuse::Draft& draft) {
    if (!numbers.empty()) add_metrics(draft);
    if (auto lost = detect::find_lost_numbers(draft.view, draft.analysis))
      fuse::join_lost(std::move(*lost), draft.analysis, draft.report);
  }

  void add_metrics(fuse::Draft& draft) {
    numerics::NumericFindings output = numbers.findings();
    std::ranges::move(output.open, std::back_inserter(draft.open));
    for (Finding& finding : output.findings) {
      for (FindingSubject& subject : finding.subjects) {
        if (!subject.rank) continue;
        RankPlace place = place_of(draft.view, *subject.rank);
        if (!subject.host) subject.host = std::move(place.host);
        if (!subject.device) subject.device = place.device;
      }
      draft.analysis.findings.push_back(std::move(finding));
    }
    for (std::string& what : order.problems()) output.problems.push_back(std::move(what));
    for (std::string& what : output.problems) draft.report.problems.push_back({"", {}, std::move(what)});
    draft.report.numerics = std::move(output.faults);
    draft.report.curves = std::move(output.curves);
  }
};

Engine::Engine(EngineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;

std::vector<Effect> Engine::step(std::span<Input> inputs, TimeNs now) {
  while (!inputs.empty()) {
    const size_t comm = impl_->options.live ? 0 : impl_->ingest_comm(inputs);
    if (comm == 0) std::visit([this, now](auto& i) { impl_->ingest(i, now); }, inputs[0]);
    inputs = inputs.subspan(std::max<size_t>(1, comm));
  }
  std::vector<Effect> effects;
  for (Finding& finding : std::exchange(impl_->urgent, {})) effects.emplace_back(std::move(finding));
  for (Finding& finding : impl_->rule_runs.find_new(impl_->log)) effects.emplace_back(std::move(finding));
  return effects;
}

std::vector<RuleFired> Engine::firings() {
  std::vector<RuleFired> out;
  rules::RuleRun* const run = impl_->rule_runs.in_time();
  if (run == nullptr) return out;
  impl_->log.settle();
  run->clear();
  for (const logs::RuleLine* line : diagnose::in_time(impl_->log)) {
    rules::RuleHit hit = diagnose::hit_of(impl_->log, *line);
    if (line->mentioned)
      out.push_back({line->place, std::move(hit), {}, true});
    else if (const auto firing = run->add(hit))
      out.push_back({line->place, std::move(hit), *firing});
  }
  std::stable_sort(out.begin(), out.end(), [](const RuleFired& a, const RuleFired& b) {
    return std::tie(a.place.source, a.place.line, a.hit.rule) <
           std::tie(b.place.source, b.place.line, b.hit.rule);
  });
  return out;
}

std::vector<std::string> Engine::drop_sentences() const {
  std::vector<Problem> problems;
  report_drops(impl_->log, impl_->comm, problems);
  impl_->rule_runs.add_troubles(problems);
  std::vector<std::string> out;
  for (Problem& p : problems) out.push_back(std::move(p.what));
  return out;
}

// Runs in this order. tests/unit/app/offline/passes_test.cc fails if a pass writes outside its row, or reads
// a part before it is written.
std::span<const fuse::Pass<Engine::Impl>> Engine::Impl::passes() {
  using enum fuse::Part;
  using I = Impl;
  static constexpr fuse::Pass<Impl> kPasses[] = {
      {"lines", {}, {kOutcome, kFindings}, &I::read_lines},
      {"clock", {kOutcome}, {kFindings, kHang}, &I::add_stall},
      {"plugins", {kOutcome}, {kFindings}, &I::add_plugins},
      {"rules", {kOutcome, kFindings}, {kFindings, kSigns, kOpen}, &I::add_signs},
      {"records", {kOutcome, kFindings}, {kFindings, kHang, kSigns, kOpen, kCharts}, &I::add_comm},
      {"numbers", {kOutcome, kFindings}, {kFindings, kOpen, kProblems, kCharts}, &I::add_numerics},
      {"operations left out", {kFindings, kSigns}, {kFindings, kSigns}, &I::join_operations},
      {"hang",
       {kOutcome, kFindings, kSigns, kHang},
       {kFindings, kSigns, kHang, kOpen, kProblems},
       &I::add_hang_state},
      {"rounds of stacks", {kOutcome, kFindings, kHang}, {kFindings, kCharts}, &I::add_rounds},
      {"rules on findings", {kOutcome, kFindings}, {kFindings, kCharts}, &I::read_findings},
      {"stall and hang", {kFindings}, {kFindings}, &I::join_stalls},
      {"exits", {kOutcome, kFindings}, {kFindings}, &I::judge_exits},
      {"pace", {kOutcome}, {kFindings}, &I::add_pace},
      {"causes", {kOutcome, kFindings, kSigns, kHang}, {kFindings, kSigns}, &I::join},
      {"agents away", {kFindings, kHang}, {kFindings, kHang}, &I::leave_out_unheard},
      {"slowness behind", {kFindings}, {kFindings}, &I::order_slowness},
      {"speakers", {kFindings}, {kFindings}, &I::name_speakers},
      {"diagnoses", {kOutcome, kFindings, kHang}, {kDiagnoses, kOpen, kJob}, &I::correlate},
      {"summary", {}, {kJob}, &I::add_summary},
      {"open questions", {kOutcome, kHang, kDiagnoses, kJob}, {kOpen, kProblems}, &I::ask},
  };
  return kPasses;
}

Report Engine::report(TimeNs now, const detect::Unheard& unheard) {
  impl_->log.settle();
  impl_->saves.lines(impl_->log, impl_->iteration().value_or(-1));
  const detect::View view = detect::make_view(impl_->log);
  fuse::Draft draft{view, now, unheard};
  for (const fuse::Pass<Impl>& pass : Impl::passes()) {
    ((*impl_).*pass.run)(draft);
    if (impl_->options.passes) impl_->options.passes->after(pass.name, pass.reads, pass.writes, draft);
  }
  conclude(draft.report);
  std::ranges::move(impl_->saves.sentences(), std::back_inserter(draft.report.notes));
  return std::move(draft.report);
}

bool Engine::may_stall(TimeNs now) const { return impl_->progress.may_stall(impl_->options.hang, now); }
uint32_t Engine::last_capture() const { return impl_->stacks.last_capture(); }
TimeNs Engine::progressed_ns() const { return impl_->progress.last_move_ns(); }
bool Engine::ended_well() const { return impl_->outcome.ended_well; }

std::vector<comm::StepsWanted> Engine::drain_requests() { return std::exchange(impl_->wanted, {}); }

std::optional<int64_t> Engine::iteration() const { return impl_->iteration(); }

const detect::SaveWatch& Engine::saves() const { return impl_->saves; }

std::optional<std::string> Engine::device_name(uint32_t rank) const {
  return impl_->loop_ranks.device_of(rank);
}

bool Engine::settle_loop(TimeNs until) { return impl_->order.settle(until); }

void Engine::set_hang(const detect::StallOptions& hang) { impl_->options.hang = hang; }

void Engine::replace_rules(std::shared_ptr<rules::Ruleset> rules) {
  impl_->rule_runs.replace(std::move(rules), impl_->log);
}

std::unique_ptr<logs::LineScanner> Engine::make_scanner() const {
  const rules::Ruleset* const ruleset = impl_->rule_runs.ruleset();
  return ruleset ? std::make_unique<rules::BlockScanner>(*ruleset) : nullptr;
}

void Engine::add_to(detect::Pool& pool) {
  impl_->log.settle();
  if (pool.learned) impl_->mark_alarm_records();
  pool.add(impl_->log);
}

void Engine::use_pool(detect::Pool pool) {
  impl_->options.pool = std::move(pool);
  for (const detect::PoolForm& f : impl_->options.pool.forms) impl_->log.add_pool_form(f.hash, f.text);
}

const logs::JobLog& Engine::log() const { return impl_->log; }

const logs::JobLog& Engine::settled_log() {
  impl_->log.settle();
  return impl_->log;
}

}  // namespace culprit::core
