#include "core/diagnose/signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/logs/ending.h"
#include "core/diagnose/accused.h"
#include "core/diagnose/confidence.h"
#include "core/diagnose/own_process.h"
#include "core/diagnose/quiet_rank.h"
#include "core/diagnose/speakers.h"
#include "core/diagnose/subject.h"
#include "core/diagnose/uncaught.h"
#include "core/diagnose/went_on.h"
#include "core/diagnose/whose.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kEvidence = 20;  // quoted lines of a sign
constexpr size_t kNotes = 5;
constexpr size_t kAbsent = 64;        // hosts that a sign names and that wrote nothing
constexpr size_t kNotices = 64;       // subjects of rules that say `notice`
constexpr double kNotice = 0.4;       // below a verdict
constexpr double kFatalWeight = 1.0;  // against its host: as much as a certain template without a rule
// Ranks whose wait timed out are torn down within this time, together with their devices.
constexpr TimeNs kTearDown = 60 * kNsPerSecond;
// A dying process with its launcher and peers writes at most this many events after the line.
constexpr uint64_t kLastEvents = 400;
constexpr uint64_t kLastOfRank =
    60;                         // as above for a single process: its other threads and its exit handlers
constexpr TimeNs kRunning = 2;  // steps after the last progress in which a job may still be running
constexpr TimeNs kStartUp = 600 * kNsPerSecond;  // a job starts up within minutes
constexpr int64_t kTrained = 50;                 // iterations; progress bars of loading shards count fewer
// Iterations after the line: all ranks meet in each, so at most one was already running.
constexpr int64_t kSurvived = 2;
constexpr int64_t kSurvivedDeath = 10;

// The lines of one rule, before they become a finding.
struct Sign {
  const rules::Rule* rule = nullptr;
  Finding finding;
  std::vector<const logs::RuleLine*> lines;  // by time
  const logs::RuleLine* last = nullptr;
  uint64_t count = 0;
  std::set<uint32_t> hosts;                       // units of view.hosts, if known
  std::set<std::pair<uint32_t, uint32_t>> ranks;  // named by the lines: host, global rank
  std::set<std::string> absent;                   // hosts that the lines name and that wrote nothing
  std::set<std::string> typed_on;                 // hosts of the shells whose commands wrote the lines
  bool novel = false, known = false,
       late = false;       // properties of its templates, from the pool and from times
  bool alone = true;       // proves a failure without any other sign
  bool of_others = false;  // about processes that are not known to be the job's
  bool aside = false;      // all lines are aside: see OwnProcesses::is_aside

  void add_subject(const About& about) {
    if (about.host != detect::kNowhere) hosts.insert(about.host);
    if (about.rank) ranks.emplace(about.host, *about.rank);
    if (!about.absent.empty() && absent.size() < kAbsent) absent.insert(about.absent);
  }
};

// Whether a line needs support from another sign. A kernel also reports processes that are not the job's, and
// a failing program reports itself. An echo in the kernel's log has a cause elsewhere.
bool needs_company(const rules::Rule& rule, const logs::RuleLine& line) {
  return line.kernel && (rule.category == Category::kUser || rule.role == rules::Role::kCascade);
}

// Whether the line precedes the first iteration of a job that then trained for long: a failed step of the
// launch that the job survived.
bool precedes_training(const detect::View& view, const logs::RuleLine& line) {
  const logs::Iterations& iterations = view.log->iterations();
  // A device fault that the kernel reports stops the device's ranks at once.
  const int64_t enough = line.kernel ? kSurvivedDeath : kTrained;
  if (iterations.track().empty() || iterations.span() < enough) return false;
  const logs::ProgressPoint& first = iterations.track().front();
  if (line.place.source == first.source) return line.place.line < first.line;
  return line.own_time && line.place.time_ns != kNoTime && first.time_ns != kNoTime &&
         line.place.time_ns < first.time_ns;
}

// Whether a job that continues long after such a line has survived the fault. True for an exception, and for
// an error of the program if no other line reports a failure. A hardware report proves nothing about the
// process that wrote it.
bool outlived(const Finding& f, const logs::RuleLine& line, bool reported) {
  const bool of_program = f.role == FindingRole::kRoot && !line.kernel && f.category != Category::kHardware;
  return line.exception || (!reported && of_program);
}

// The number of later events from the process of the line. One process may write several files, and several
// processes one file.
uint64_t events_after(const logs::JobLog& log, const logs::RuleLine& line) {
  const uint64_t of_writer = log.writers()[line.place.writer].events - line.writer_event;
  return std::min(of_writer, log.events_of(line.place.source) - line.source_event);
}

uint64_t last_words(const logs::JobLog& log, const logs::RuleLine& line) {
  return log.writers()[line.place.writer].rank ? kLastOfRank : kLastEvents;
}

// Whether the job's iterations continue after the line in the same file.
bool trains_below(const logs::JobLog& log, const logs::LogPlace& place) {
  int64_t above = -1, below = -1;
  for (const logs::ProgressPoint& p : log.iterations().track())
    if (p.source == place.source) (p.line > place.line ? below : above) = p.iteration;
  return (below >= 0 && below - above > kSurvived) || log.steps_below(place);
}

// Whether few events and no iteration follow in the same file.
bool is_at_end(const logs::JobLog& log, const logs::RuleLine& line) {
  return events_after(log, line) <= last_words(log, line) && !trains_below(log, line.place);
}

// Whether a process ended with this line: an uncaught exception among the last records of its file. If the
// line has no time, later times in other files do not disprove the end.
bool is_death(const logs::JobLog& log, const logs::RuleLine& line) {
  return line.death && !line.own_time && is_at_end(log, line);
}

// Whether the last lines of a process include an untimed watchdog time-out. The line has the time of an
// earlier line, and is not before the progress in other files.
bool is_undated_end(const logs::JobLog& log, const Finding& f, const logs::RuleLine& line) {
  return f.symptom == Symptom::kHang && !line.own_time && !line.kernel && is_at_end(log, line);
}

// Whether a sign of the kernel is undecided. Such trouble does not stop a job by itself, and the job still
// makes progress at the end of its log. Only later lines can show whether the trouble matters. A job that
// ended has a later line of failure, or a silent host.
bool is_pending(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  const detect::RunEnd& outcome = a.outcome;
  if (sign.finding.fatal || outcome.last_progress_ns == kNoTime || outcome.step_ns <= 0) return false;
  if (outcome.last_ns - outcome.last_progress_ns >= kRunning * outcome.step_ns) return false;
  if (!std::ranges::all_of(sign.lines, [](const logs::RuleLine* line) { return line->kernel; })) return false;
  const auto is_silence = [](const Finding& f) { return f.detector == DetectorKind::kSilence; };
  if (std::ranges::any_of(a.findings, is_silence)) return false;
  const TimeNs first = sign.lines.front()->place.time_ns;
  std::set<logs::ClusterId> own;
  for (const logs::RuleLine* line : sign.lines) own.insert(view.log->miner().resolve(line->cluster));
  return std::ranges::none_of(a.templates, [&](const detect::TemplateScore& t) {
    const bool fails = detect::words_class(view.log->templates()[t.id]) == 2;
    return fails && t.late && t.first_ns > first && !own.contains(t.id);
  });
}

// Whether a kernel wrote the line long before the first step of a job that then trained.
bool precedes_job(const detect::RunEnd& outcome, const logs::RuleLine& line) {
  if (!line.kernel || !line.own_time || !outcome.trained || outcome.first_step_ns == kNoTime) return false;
  return line.place.time_ns != kNoTime && line.place.time_ns + kStartUp < outcome.first_step_ns;
}

// Whether the job continued normally after the sign's last line. `reported`: other lines report that a
// process of the job failed.
bool survived(const detect::View& view, const detect::Analysis& a, const Sign& sign, bool reported) {
  const Finding& f = sign.finding;
  if (f.symptom == Symptom::kNumeric) return false;
  const logs::JobLog& log = *view.log;
  const logs::RuleLine& last = *sign.last;
  if (std::ranges::any_of(sign.lines, [&](const logs::RuleLine* line) { return is_death(log, *line); }))
    return false;
  if (is_undated_end(log, f, last)) return false;
  const int64_t at = log.iterations().iteration_at(last.place.time_ns, last.place.source, last.place.line);
  // An untimed line has the time of the line before, which may be old. If other lines report a failure and no
  // successful job has such a line, that time proves nothing.
  const bool dated = last.own_time || !reported || !sign.novel;
  // Other ranks' buffers contain some steps from after the launcher saw the process end.
  const bool ends = f.symptom == Symptom::kCrash && f.category != Category::kHardware && !last.exception &&
                    (f.fatal || sign.rule->says == rules::Says::kFailure);
  const int64_t enough = ends ? kSurvivedDeath : kSurvived;
  if (at >= 0 && dated && a.outcome.last_iteration - at >= enough) return true;
  if (log.steps_below(last.place)) return true;  // started again from an earlier step
  // One line of broken hardware suffices. Another fault at an unknown time stopped nothing if the job made
  // progress until the end of its log.
  const bool to_the_end = a.outcome.last_progress_ns != kNoTime && a.outcome.step_ns > 0 &&
                          a.outcome.last_ns - a.outcome.last_progress_ns < kRunning * a.outcome.step_ns;
  if (at < 0 && to_the_end && !reported && !(f.fatal && f.category == Category::kHardware)) return true;
  if (precedes_training(view, last) || precedes_job(a.outcome, last)) return true;
  if (!outlived(f, last, reported)) return false;
  const bool few = view.log->writers()[last.place.writer].rank || (!last.exception && !f.fatal);
  return events_after(log, last) > (few ? kLastOfRank : kLastEvents);
}

void recount(const detect::View& view, Sign& sign) {
  sign.count = sign.lines.size();
  sign.hosts.clear();
  sign.ranks.clear();
  sign.absent.clear();
  for (const logs::RuleLine* line : sign.lines) sign.add_subject(accused_by(view, *sign.rule, *line));
}

// Removes a rule's lines after which the job continued: they have another cause.
void drop_survived(const detect::View& view, const detect::Analysis& a, Sign& sign) {
  const auto resumed = [&](const logs::RuleLine* line) {
    const int64_t at =
        view.log->iterations().iteration_at(line->place.time_ns, line->place.source, line->place.line);
    return line->own_time && at >= 0 && a.outcome.last_iteration - at >= kSurvived;
  };
  if (sign.finding.symptom == Symptom::kNumeric) return;
  if (std::ranges::all_of(sign.lines, resumed)) return;  // broken hardware at the end of the job
  const size_t before = sign.lines.size();
  std::erase_if(sign.lines, resumed);
  if (sign.lines.size() != before) recount(view, sign);
}

// Removes the lines of a state that ended too soon to have an effect.
void drop_recovered(const detect::View& view, const rules::RuleRun& run, Sign& sign) {
  if (!sign.rule->recovery) return;
  const size_t before = sign.lines.size();
  std::erase_if(sign.lines, [&](const auto* line) { return run.recovered(hit_of(*view.log, *line)); });
  if (sign.lines.size() != before) recount(view, sign);
}

// If ranks share a file, the launcher's failure list below the only exception gives its rank.
void name_by_launcher(const logs::JobLog& log, const Whose& whose, Sign& sign) {
  const logs::RuleLine& line = *sign.lines.front();
  if (sign.lines.size() != 1 || sign.finding.role != FindingRole::kRoot || !sign.ranks.empty()) return;
  if (!line.exception || log.writers()[line.place.writer].rank) return;
  const auto rank = whose.first_to_fail(line);
  if (!rank) return;
  sign.finding.title += fmt::format(", rank {}", *rank);
  sign.finding.why.push_back(fmt::format("rank {} is the first that the launcher saw fail", *rank));
  sign.ranks.emplace(detect::kNowhere, *rank);
}

// Whether the sign counts even if a learned pool contains its lines.
bool is_alarm(const Sign& sign) {
  return sign.finding.fatal ||
         std::ranges::any_of(sign.lines, [](const logs::RuleLine* line) { return line->kernel; });
}

// Whether the kernel of a host reports broken hardware at the job's end and no line from this host states a
// good end. What a rank of another host states proves nothing for this one.
bool breaks_at_end(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  const Finding& f = sign.finding;
  if (!f.fatal || f.category != Category::kHardware) return false;
  const logs::JobLog& log = *view.log;
  return std::ranges::any_of(sign.lines, [&](const logs::RuleLine* line) {
    if (!line->kernel || !line->own_time || line->place.time_ns == kNoTime) return false;
    const int64_t at =
        log.iterations().iteration_at(line->place.time_ns, line->place.source, line->place.line);
    const bool at_the_end = a.outcome.last_progress_ns == kNoTime ||
                            line->place.time_ns <= a.outcome.last_progress_ns + kTearDown;
    return at_the_end && at >= 0 && a.outcome.last_iteration - at <= kSurvived &&
           !detect::states_end_on(log, line->place.writer);
  });
}

bool is_harmless(const detect::View& view, const detect::Analysis& a, const Sign& sign, bool reported) {
  if (a.outcome.ended_well) return !breaks_at_end(view, a, sign);
  if (a.has_pool && !sign.novel && sign.known && !(a.learned_pool && is_alarm(sign))) return true;
  return survived(view, a, sign, reported);
}

// "on 1 host (node-7)", "in 3 lines".
std::string matched_on(const detect::View& view, const Sign& sign) {
  if (sign.hosts.empty()) return "in " + counted(sign.count, "line");
  const std::string on = "on " + counted(sign.hosts.size(), view.by_rank ? "rank" : "host");
  return sign.hosts.size() > 1 ? on : fmt::format("{} ({})", on, view.hosts[*sign.hosts.begin()].name);
}

// Adds the units that a sign accuses, which share the strength `known`, and the ranks in its lines.
void add_subjects(const detect::View& view, Sign& sign, double known) {
  Finding& f = sign.finding;
  const double share =
      known / static_cast<double>(std::max<size_t>(1, sign.hosts.size() + sign.absent.size()));
  for (const uint32_t host : sign.hosts)
    f.subjects.push_back(finding_about(view, host, DetectorKind::kNone, share).subjects[0]);
  for (const std::string& name : sign.absent) {
    FindingSubject& subject = f.subjects.emplace_back();
    subject.host = name;
    subject.strength = share;
  }
  for (const auto& [host, rank] : sign.ranks) {
    FindingSubject subject;
    subject.rank = rank;
    if (host != detect::kNowhere)
      subject.host = view.hosts[host].name;
    else if (sign.hosts.empty() && sign.absent.empty())
      subject.strength = known / static_cast<double>(sign.ranks.size());
    f.subjects.push_back(std::move(subject));
  }
}

// The step in the writer's own file. Lines of other files compare by time only, which may be whole seconds.
int64_t iteration_of(const logs::JobLog& log, const logs::RuleLine& line) {
  const auto at = [&](TimeNs time) {
    return log.iterations().iteration_at(time, line.place.source, line.place.line);
  };
  const int64_t own = log.iterations().iteration_of(line.own_step);
  const TimeNs time = line.place.time_ns;
  // After a restart the number is that of the later run, which is lower.
  if (const int64_t again = log.step_since_restart(line.place); again >= 0 && again < at(time))
    return own >= 0 ? std::min(own, again) : again;
  // A writer with rare reports has an old step.
  if (own >= 0 && (time == kNoTime || own >= at(time - kNsPerSecond))) return own;
  return at(time);
}

// Names the users and hosts whose lines are no proof, such as a scheduler's own log.
void name_speakers(const detect::View& view, Sign& sign) {
  Finding& f = sign.finding;
  f.said_by.uids = users_of(*view.log, sign.lines);
  f.as_kernel = std::ranges::all_of(sign.lines, [](const logs::RuleLine* line) { return line->kernel; });
  if (f.said_by.uids.empty() && f.category == Category::kPlatform) return;
  std::vector<uint32_t> accused(sign.hosts.begin(), sign.hosts.end());
  if (!sign.absent.empty()) accused.push_back(detect::kNowhere);
  f.said_by.hosts = hearsay_of(view, sign.lines, accused);
}

// Completes the finding from all lines of the rule: writers, times, novelty.
Finding complete(const detect::View& view, Sign sign) {
  const logs::JobLog& log = *view.log;
  Finding& f = sign.finding;
  for (const logs::RuleLine* line : sign.lines)
    if (f.evidence.size() < kEvidence) f.evidence.push_back(detect::evidence_of(log, *line));
  f.lines = sign.count;
  f.ends_process = std::ranges::any_of(sign.lines, [](const logs::RuleLine* line) { return line->death; });
  name_speakers(view, sign);
  f.first_ns = sign.lines.front()->place.time_ns;
  f.dated = sign.lines.front()->own_time;
  f.last_ns = sign.last->place.time_ns;
  const int64_t iteration = iteration_of(log, *sign.lines.front());
  if (iteration >= 0) f.iteration = iteration;
  const bool widespread = view.hosts.size() > 1 && sign.hosts.size() * 2 > view.hosts.size();
  // Hardware may fail on many hosts at once. Any other fault that most hosts report accuses none of them.
  f.by_no_device = f.by_no_device || (widespread && sign.rule->blame != rules::Blame::kHost);
  // The template's score already counts any line against a host; this strength is for the additional
  // knowledge of the rule.
  const double known = f.role == FindingRole::kCascade ? 0 : f.fatal ? kFatalWeight : kFatalWeight / 2;
  name_left_out(
      view, {sign.rule, sign.lines, {sign.hosts.begin(), sign.hosts.end()}, sign.absent, sign.typed_on}, f);
  if (!f.by_no_device) add_subjects(view, sign, known);
  f.why.push_back(sign.rule->id.empty()
                      ? fmt::format("the program did not catch the exception, {}", matched_on(view, sign))
                      : fmt::format("matched rule {} {}", sign.rule->id, matched_on(view, sign)));
  if (sign.novel) f.why.emplace_back("never seen in the healthy runs of the pool");
  if (f.role == FindingRole::kCascade)
    f.why.emplace_back("it is a consequence: these logs do not show what failed first");
  if (sign.late) f.why.emplace_back("it began when the iterations ended");
  return std::move(sign.finding);
}

// A kernel's report of a program counts in full if the program reports the same. Its host may differ:
// launchers report processes of other hosts.
void corroborate(Sign& sign, const std::vector<Sign>& all) {
  if (sign.alone || sign.finding.role == FindingRole::kCascade) return;
  const bool supported = std::any_of(all.begin(), all.end(), [&](const Sign& other) {
    return other.alone && other.finding.component == sign.finding.component;
  });
  if (!supported) return;
  sign.finding.general = sign.rule->gives_way();
  sign.finding.confidence = confidence_of_rule(sign.finding);
}

}  // namespace

Finding describe(const rules::Rule& rule, const logs::RuleLine& line) {
  Finding f;
  f.kind = FindingKind::kFault;
  f.rule = rule.id;
  f.ends = rule.ends;
  f.observes = rule.observes;
  f.title = headline(rule, line);
  f.category = rule.category;
  f.component = rule.component;
  f.symptom = rule.symptom;
  f.action = rule.action;
  f.remedy = rule.remedy;
  f.restart = rule.restart;
  f.restart_after_steps = rule.restart_after_steps;
  f.role = rule.role == rules::Role::kCascade ? FindingRole::kCascade : FindingRole::kRoot;
  f.fatal = rule.severity == Severity::kFatal;
  f.general = rule.gives_way();
  f.by_no_device = rule.blame == rules::Blame::kJob;
  f.confidence = confidence_of_rule(f);
  return f;
}

std::vector<const logs::RuleLine*> in_time(const logs::JobLog& log) {
  std::vector<const logs::RuleLine*> out;
  for (const logs::RuleLine& line : log.rule_lines()) out.push_back(&line);
  std::stable_sort(out.begin(), out.end(), [](const logs::RuleLine* x, const logs::RuleLine* y) {
    return x->place.time_ns < y->place.time_ns;
  });
  return out;
}

rules::RuleHit hit_of(const logs::JobLog& log, const logs::RuleLine& line) {
  const logs::WriterStats& writer = log.writers()[line.place.writer];
  rules::RuleHit hit;
  hit.rule = line.rule;
  hit.time_ns = line.place.time_ns;
  hit.source = line.event    ? rules::TextSource::kEvent
               : line.kernel ? rules::TextSource::kKernel
                             : rules::TextSource::kLog;
  hit.text = line.text;
  hit.holes = line.holes;
  hit.host = writer.host.value_or(writer.key.host);
  hit.rank = writer.rank;
  hit.device = writer.device;
  if (!hit.rank && !writer.key.task && writer.key.rank != logs::kNoRank) hit.rank = writer.key.rank;
  if (!hit.device && writer.key.local != logs::kNoRank) hit.device = writer.key.local;
  hit.step = log.iterations().iteration_at(line.place.time_ns, line.place.source, line.place.line);
  return hit;
}

Finding finding_of(const logs::JobLog& log, const logs::RuleLine& line, const rules::Rule& rule) {
  Finding f = describe(rule, line);
  f.first_ns = f.last_ns = line.place.time_ns;
  f.lines = 1;
  f.evidence.push_back(detect::evidence_of(log, line));
  f.as_kernel = line.kernel;
  const logs::RuleLine* const lines[] = {&line};
  f.said_by.uids = users_of(log, lines);
  cap_claim(f);
  return f;
}

namespace {

struct Hit {
  const rules::Rule& rule;
  const logs::RuleLine& line;
  bool of_others = false;          // of a process that is not known to be the job's
  bool aside = false;              // see OwnProcesses::is_aside
  std::string_view typed_on = {};  // host of the shell whose command wrote the line
};

void add_line(const detect::View& view, const detect::Analysis& a, const Hit& hit, Sign& sign) {
  const auto& [rule, line, of_others, aside, typed_on] = hit;
  if (!sign.rule) {
    sign.rule = &rule;
    sign.finding = describe(rule, line);
    if (rule.id.empty()) describe_uncaught(line.text, sign.finding);
    sign.finding.code = line.code;
    sign.of_others = of_others;
    sign.aside = aside;
    sign.alone = !of_others && (!needs_company(rule, line) || a.outcome.last_iteration < 0);
    sign.finding.general = sign.finding.general || !sign.alone;
    sign.finding.confidence = confidence_of_rule(sign.finding);
  }
  ++sign.count;
  sign.aside = sign.aside && aside;
  sign.last = &line;
  sign.lines.push_back(&line);
  if (!typed_on.empty()) sign.typed_on.emplace(typed_on);
  sign.add_subject(accused_by(view, rule, line));
  if (const detect::TemplateScore* score = a.of(view.log->miner().resolve(line.cluster))) {
    sign.novel = sign.novel || score->novel;
    sign.late = sign.late || score->late;
    sign.known = sign.known || score->cross_job < 0;
  }
}

// Whether a line of the rule may explain measurements: it is about a part of the machine, or about a planned
// change.
bool may_witness(const rules::Rule& rule) {
  if (rule.role == rules::Role::kCascade) return false;
  if (rule.severity == Severity::kInfo)
    return rule.component == Component::kUserConfig && rule.action == ActionKind::kNone;
  return rule.category == Category::kHardware || rule.category == Category::kPlatform;
}

Finding witness(const detect::View& view, Sign sign) {
  Finding f = complete(view, std::move(sign));
  f.kind = FindingKind::kSupport;
  f.fatal = false;
  for (FindingSubject& s : f.subjects) s.strength = 0;
  return f;
}

Finding notice(const detect::View& view, Sign sign) {
  Finding f = complete(view, std::move(sign));
  f.kind = FindingKind::kNotice;
  f.fatal = false;
  f.general = true;
  f.confidence = kNotice;
  f.why.emplace_back("no job ends of it");
  return f;
}

// Whether the sign is an exception of the program that no specific rule knows.
bool is_catch_all(const Sign& sign) { return sign.finding.general && sign.lines[0]->exception; }

// Describes the failure of a process that the job survived, as a note.
std::optional<std::string> note_of(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  const auto ended = [](const logs::RuleLine* line) { return line->death; };
  if (a.outcome.ended_well || !std::ranges::any_of(sign.lines, ended)) return std::nullopt;
  const int64_t at = iteration_of(*view.log, *sign.lines.front());
  return fmt::format("the job went on after a failure{}: {}",
                     at >= 0 ? fmt::format(" at iteration {}", at) : std::string(), sign.finding.title);
}

std::string after_the_end(const Sign& sign) {
  return (is_catch_all(sign) ? "whether it matters after the planned end: " : "after the planned end: ") +
         sign.finding.title;
}

// Whether the sign is only the end of a process after the planned end, by an unknown exception or a signal.
// It may be a tear-down fault.
bool is_after_the_end(const detect::View& view, const detect::Analysis& a, const Sign& sign) {
  const Finding& f = sign.finding;
  const bool by_signal = f.general && f.symptom == Symptom::kCrash && f.role == FindingRole::kRoot &&
                         sign.rule->says == rules::Says::kFailure;
  return a.outcome.end_stated && (by_signal || is_catch_all(sign)) &&
         detect::states_end(*view.log, &sign.lines.front()->place);
}

// If only one process raised an exception of its kind, exceptions of several processes about a peer ("peer 3
// closed the connection") are consequences.
void lead_with_the_one(const detect::View& view, std::vector<Sign>& signs) {
  const auto writers = [](const Sign& sign) {
    std::set<uint32_t> out;
    for (const logs::RuleLine* line : sign.lines) out.insert(line->place.writer);
    return out.size();
  };
  const auto of_peer = [&](const Sign& sign) {
    const logs::ClusterId cluster = view.log->miner().resolve(sign.lines[0]->cluster);
    return view.log->templates()[cluster].shape.of_others;
  };
  const bool one = std::ranges::any_of(
      signs, [&](const Sign& sign) { return is_catch_all(sign) && writers(sign) == 1 && !of_peer(sign); });
  if (!one) return;
  for (Sign& sign : signs)
    if (is_catch_all(sign) && writers(sign) > 1 && of_peer(sign)) {
      sign.finding.role = FindingRole::kCascade;
      sign.finding.confidence = confidence_of_rule(sign.finding);
    }
}

// Per host, the time at which its ranks had timed out waiting and were torn down.
std::map<uint32_t, TimeNs> torn_down(const detect::View& view, const std::vector<Sign>& signs) {
  std::map<uint32_t, TimeNs> out;
  for (const Sign& sign : signs) {
    const Finding& f = sign.finding;
    if (f.role != FindingRole::kCascade || f.symptom != Symptom::kHang || !f.fatal) continue;
    for (const logs::RuleLine* line : sign.lines) {
      const uint32_t host = view.host_of_writer[line->place.writer];
      if (host == detect::kNowhere || line->kernel || !line->own_time || line->place.time_ns == kNoTime)
        continue;
      const TimeNs end = line->place.time_ns + kTearDown;
      const auto [at, fresh] = out.emplace(host, end);
      if (!fresh) at->second = std::min(at->second, end);
    }
  }
  return out;
}

// Machine reports after the tear-down of the host's ranks do not explain their wait: such signs become
// cascades. Returns the tear-down times. A clock in another time zone differs by at least half an hour.
std::map<uint32_t, TimeNs> follow_the_end(const detect::View& view, std::vector<Sign>& signs) {
  std::map<uint32_t, TimeNs> ends = torn_down(view, signs);
  constexpr TimeNs kZone = 25 * 60 * kNsPerSecond;
  const auto is_late = [&](const logs::RuleLine* line) {
    const auto end = ends.find(view.host_of_writer[line->place.writer]);
    if (!line->kernel || line->place.time_ns == kNoTime || end == ends.end()) return false;
    return line->place.time_ns >= end->second && line->place.time_ns < end->second + kZone;
  };
  for (Sign& sign : signs) {
    if (!std::ranges::all_of(sign.lines, is_late)) continue;
    sign.finding.role = FindingRole::kCascade;
    sign.finding.confidence = confidence_of_rule(sign.finding);
  }
  return ends;
}

constexpr std::string_view kOfOthers = "of another process";  // no kind of exception

// Removes and returns the signs for which `is` holds. Evaluates all signs before removing any.
template <class Is>
std::vector<Sign> take_if(std::vector<Sign>& signs, const Is& is) {
  std::vector<bool> marked;
  for (const Sign& sign : signs) marked.push_back(is(sign));
  std::vector<Sign> taken, retained;
  for (size_t i = 0; i < signs.size(); ++i) (marked[i] ? taken : retained).push_back(std::move(signs[i]));
  signs = std::move(retained);
  return taken;
}

// If other lines show the failure, the end of a process that may not be the job's is not the cause.
void set_apart(const detect::View& view, std::vector<Sign>& signs, std::vector<Finding>& witnesses) {
  for (Sign& sign : take_if(signs, [](const Sign& one) { return one.of_others; }))
    witnesses.push_back(witness(view, std::move(sign)));
}

// Whether the sign is a program mistake, proved by an exception with its place in the program.
bool is_own_mistake(const Sign& sign) {
  const auto raised = [](const logs::RuleLine* line) {
    return line->death && line->code && line->service == logs::Service::kNone;
  };
  return sign.finding.category == Category::kUser && std::ranges::any_of(sign.lines, raised);
}

// Reports of services, disks and networks do not explain a program's own mistake, unless the job itself
// reports trouble with such a part.
void set_aside(const detect::View& view, std::vector<Sign>& signs, std::vector<Finding>& witnesses) {
  if (std::ranges::none_of(signs, is_own_mistake)) return;
  const auto reported = [&](const Sign& sign) {
    return std::ranges::any_of(signs, [&](const Sign& other) {
      const Component own = other.finding.component, part = sign.finding.component;
      return !other.aside && (own == part || (own == Component::kNcclComm && part == Component::kNetwork));
    });
  };
  for (Sign& sign : take_if(signs, [&](const Sign& one) { return one.aside && !reported(one); }))
    witnesses.push_back(witness(view, std::move(sign)));
}

// Whether an exception of the program ended a process after all lines of the sign.
bool is_ended_by(const Sign& sign, const Sign& mistake) {
  const Finding& f = mistake.finding;
  if (f.category != Category::kUser || f.role != FindingRole::kRoot) return false;
  if (std::ranges::none_of(mistake.lines, ends_by_exception)) return false;
  const TimeNs end = mistake.last->place.time_ns, line = sign.last->place.time_ns;
  return end == kNoTime || line == kNoTime || line <= end;
}

// A fault that stopped no process does not explain a later mistake of the program: it is often a data sample,
// a plan or an earlier run. Wrong numbers are an exception: the job continues with them.
std::vector<Sign> take_survived(const detect::View& view, std::vector<Sign>& signs) {
  const bool levels = has_levels(*view.log);
  const auto went_on = [&](const logs::RuleLine* line) { return went_on_after(*view.log, *line, levels); };
  return take_if(signs, [&](const Sign& one) {
    return one.finding.symptom != Symptom::kNumeric && std::ranges::all_of(one.lines, went_on) &&
           std::ranges::any_of(signs, [&](const Sign& other) { return is_ended_by(one, other); });
  });
}

// By time, then by line, then by rule.
std::tuple<TimeNs, uint32_t, uint64_t, uint8_t> place_of(const Sign& sign) {
  const logs::RuleLine& first = *sign.lines.front();
  return {first.place.time_ns, first.place.source, first.place.line, first.order};
}

// The ranks that report trouble, and the lines about a peer.
RankReports reports_by_rank(const logs::JobLog& log, const std::vector<Sign>& signs) {
  RankReports out;
  for (const Sign& sign : signs) {
    const Finding& f = sign.finding;
    const bool of_peer = f.role == FindingRole::kCascade && f.category == Category::kUnknown;
    const TimeNs at = sign.lines.front()->place.time_ns;
    if (f.role == FindingRole::kRoot && at != kNoTime)
      out.first_cause_ns = out.first_cause_ns == kNoTime ? at : std::min(out.first_cause_ns, at);
    for (const logs::RuleLine* line : sign.lines) {
      if (const auto rank = log.writers()[line->place.writer].rank) out.any.insert(*rank);
      if (!of_peer) continue;
      if (out.of_peers.empty()) out.symptom = f.symptom;
      out.of_peers.push_back(line);
    }
  }
  return out;
}

// The signs of the rules' lines, in order of time.
struct Gathered {
  std::map<std::pair<uint32_t, std::string_view>, Sign> by_rule;  // by rule and kind of exception
  std::map<uint32_t, Sign> weak;                                  // of rules below an error
  std::map<std::pair<uint32_t, std::string>, Sign> notices;       // by rule and holes
};

Gathered gather(const detect::View& view, const detect::Analysis& a, rules::RuleRun& run, Signs& signs) {
  const logs::JobLog& log = *view.log;
  OwnProcesses own(log, run.ruleset());
  const ShellHosts shells(log, run.ruleset());
  Gathered out;
  for (const logs::RuleLine* line : in_time(log)) {
    if (line->mentioned || !run.add(hit_of(log, *line))) continue;
    const rules::Rule& rule = run.ruleset().rules()[line->rule];
    std::vector<std::string>& ids = signs.rules[log.miner().resolve(line->cluster)];
    if (std::find(ids.begin(), ids.end(), rule.id) == ids.end()) ids.push_back(rule.id);
    if (rule.says == rules::Says::kNotice) {
      std::pair key(line->rule, fmt::format("{}", fmt::join(line->holes, "\n")));
      // Beyond the limit, all subjects of a rule share one notice.
      if (out.notices.size() >= kNotices && !out.notices.contains(key)) key.second.clear();
      add_line(view, a, {rule, *line}, out.notices[std::move(key)]);
    }
    if (rule.severity < Severity::kError && may_witness(rule))
      add_line(view, a, {rule, *line}, out.weak[line->rule]);
    if (rule.severity < Severity::kError || rule.says == rules::Says::kNotice || line->handled) continue;
    const OwnProcesses::Kin kin =
        line->kernel && view.is_stranger(line->place.writer) ? OwnProcesses::Kin::kOther : own.of(*line);
    const bool by_kind = rule.general() && line->exception, of_others = kin != OwnProcesses::Kin::kOwn;
    const std::string_view part = of_others ? kOfOthers : by_kind ? exception_kind(line->text) : "";
    Sign& sign = kin == OwnProcesses::Kin::kOther ? out.weak[line->rule] : out.by_rule[{line->rule, part}];
    add_line(view, a, {rule, *line, of_others, own.is_aside(*line), shells.at(line->place)}, sign);
  }
  for (const logs::RuleLine& line : log.uncaught())
    if (is_at_end(log, line) && !is_planned_exit(line.text))
      add_line(view, a, {rule_of_uncaught(), line}, out.by_rule[{line.rule, exception_kind(line.text)}]);
  for (auto& [key, sign] : out.by_rule) drop_recovered(view, run, sign);
  std::erase_if(out.by_rule, [](const auto& entry) { return entry.second.lines.empty(); });
  return out;
}

}  // namespace

Signs find_signs(const detect::View& view, const detect::Analysis& a, rules::RuleRun& run) {
  const logs::JobLog& log = *view.log;
  run.clear();
  const Whose whose(log, run.ruleset());
  Signs out;
  auto [by_rule, weak, notices] = gather(view, a, run, out);
  for (auto& [key, sign] : notices) out.findings.push_back(notice(view, std::move(sign)));
  bool alone = false;
  const bool reported = std::ranges::any_of(by_rule, [&](const auto& entry) {
    const Sign& sign = entry.second;
    return sign.finding.role == FindingRole::kCascade && sign.alone && !is_harmless(view, a, sign, false);
  });
  std::vector<Sign> retained;
  const auto add_witness = [&](Sign sign) { out.witnesses.push_back(witness(view, std::move(sign))); };
  const auto add_note = [&](std::string note) {
    if (out.notes.size() < kNotes)
      out.notes.push_back(std::move(note));
    else
      ++out.notes_cut;
  };
  for (auto& [rule, sign] : weak) add_witness(std::move(sign));
  for (auto& [key, sign] : by_rule) {
    if (is_harmless(view, a, sign, reported)) {
      if (auto note = note_of(view, a, sign)) add_note(std::move(*note));
      if (may_witness(*sign.rule)) add_witness(std::move(sign));
      continue;
    }
    if (!reported && is_after_the_end(view, a, sign)) {
      if (is_catch_all(sign))
        out.missing.push_back(after_the_end(sign));
      else
        add_note(after_the_end(sign));
      continue;
    }
    if (!reported && is_pending(view, a, sign)) {
      if (may_witness(*sign.rule)) add_witness(sign);
      std::string open = fmt::format("whether the job goes on: {}", sign.finding.title);
      out.unproven.push_back({complete(view, std::move(sign)), std::move(open)});
      continue;
    }
    drop_survived(view, a, sign);
    name_by_launcher(log, whose, sign);
    alone = alone || sign.alone;
    retained.push_back(std::move(sign));
  }
  if (alone) set_apart(view, retained, out.witnesses);
  set_aside(view, retained, out.witnesses);
  for (const Sign& sign : take_survived(view, retained))
    add_note(fmt::format("the process went on after it: {}", sign.finding.title));
  for (Sign& sign : retained) corroborate(sign, retained);
  out.torn_down = follow_the_end(view, retained);
  lead_with_the_one(view, retained);
  std::ranges::stable_sort(retained, {}, place_of);
  if (!alone)
    for (Sign& sign : std::exchange(retained, {}))
      if (sign.finding.role == FindingRole::kRoot)
        out.unproven.push_back({complete(view, std::move(sign)), {}});
  auto quiet = find_quiet_rank(view, reports_by_rank(log, retained));
  for (Sign& sign : retained) out.findings.push_back(complete(view, std::move(sign)));
  if (quiet) out.findings.push_back(std::move(*quiet));
  return out;
}

}  // namespace culprit::diagnose
