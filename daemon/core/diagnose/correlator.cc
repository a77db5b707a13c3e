#include "core/diagnose/correlator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/logs/ending.h"
#include "core/diagnose/causes.h"
#include "core/diagnose/confidence.h"
#include "core/diagnose/phases.h"
#include "core/diagnose/slower_pace.h"
#include "core/diagnose/speakers.h"
#include "core/diagnose/suspects.h"
#include "core/diagnose/words.h"
#include "core/logs/unwrap.h"
#include "model/restart.h"

namespace culprit::diagnose {
namespace {

using detect::Analysis;
using detect::kNowhere;
using detect::TemplateScore;
using detect::View;

constexpr double kIndicating = 0.5;
constexpr double kConclusive = 0.5;
constexpr double kSure = 0.75;    // score of a single template that carries a diagnosis
constexpr double kFar = 2.0;      // spatial evidence of such a template: seven to one
constexpr TimeNs kLongIll = 5;    // steps; a fatal fault ends a job sooner
constexpr size_t kSamples = 8;    // lines quoted for a diagnosis without a known sign
constexpr double kSurprise = 10;  // -log p: one job in 20,000
// Weight of a host: several certain templates of its own, or one and a well-founded order.
constexpr double kBlamed = 2.5;
// Weight of a host that makes a job suspect; hosts of healthy jobs stay near 0.
constexpr double kSuspicious = 0.4;
constexpr size_t kQuotedBytes = 120;  // of a line in a title
constexpr size_t kFatalLine = 120;    // bytes shown
constexpr uint64_t kLastLines = 3;    // of a source: what a program writes when it ends
constexpr size_t kDiagnoses = 64;  // limit of diagnoses from single findings: later ones explain nothing more
// Number of reasons against a host that later diagnoses repeat. The report's suspects have all reasons; 64
// diagnoses with 32 long reasons each take megabytes in every copy.
constexpr size_t kWithAllReasons = 8, kReasonsRepeated = 4;
constexpr double kSuspectFloor = 0.02;
// Confidence of statistical answers. No labelled real set has enough such answers to measure a share. On logs
// of other sites all wrong answers had 0.7 to 0.82, so none may exceed a specific rule.
constexpr double kUnclear = 0.4, kStatistical = 0.35;
constexpr double kSecond = 0.6;  // factor for a fault that is not the best explanation

// The only host of the job that a runtime reports as lost; empty: none, or several.
std::vector<std::string> lost_host(const std::vector<const Finding*>& faults) {
  std::vector<std::string> out;
  for (const Finding* f : faults)
    for (const std::string& name : f->lost_hosts)
      if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  return out.size() == 1 ? out : std::vector<std::string>();
}

class Correlator {
 public:
  Correlator(const View& view, const Analysis& a, bool live, Report& report)
      : view_(view), log_(*view.log), a_(a), live_(live), report_(report) {}

  void run() {
    summarise();
    hosts_ = blame(view_, a_.findings, a_.torn_down);
    faults_ = order_faults(a_.findings);
    failed_ = !faults_.empty() || is_outlier();
    activity();
    if (!failed_ && !uneasy()) {
      tell_slower_pace();
      add_notices();
      return;
    }
    for (size_t i = 0; i < faults_.size() && i < kDiagnoses; ++i) add_fault(*faults_[i], i == 0);
    if (faults_.size() > kDiagnoses) report_.cut["diagnoses"] = faults_.size() - kDiagnoses;
    if (failed_ && (faults_.empty() || faults_[0]->role == FindingRole::kCascade)) add_statistical();
    add_notices();
    list_suspects();
    list_indicating();
    list_iterations();
    finish();
  }

 private:
  void summarise() {
    JobSummary& job = report_.job;
    job.id = log_.job().id;
    job.hosts = view_.known_hosts;
    job.ranks = view_.ranks.size();
    job.bytes = log_.bytes();
    job.lines = log_.lines();
    job.unplaced_lines = log_.unplaced_lines();
    job.templates = log_.clusters().size();
    job.first_ns = log_.first_ns();
    job.last_ns = log_.last_ns();
    if (!log_.iterations().track().empty()) job.iteration = log_.iterations().last().iteration;
  }

  bool good_end() const { return a_.outcome.ended_well || (a_.outcome.end_stated && faults_.empty()); }

  // Whether the end of the job is unusual without any known sign. Each condition is rare in a job that ran
  // well or was cut off.
  bool is_outlier() const {
    if (good_end()) return false;
    if (fell_silent()) return true;
    const Singled singled = singled_out();
    if (singled.proven >= (a_.has_pool ? 1u : 2u)) return true;
    if (singled.proven + singled.plain >= 2 && ends_abnormally()) return true;
    const double late = late_evidence();
    // One host has nearly all of the weight, and more templates began at the end than chance explains.
    const bool one = !hosts_.empty() && hosts_[0].weight >= kBlamed &&
                     (hosts_.size() < 2 || hosts_[0].weight > 1.5 * hosts_[1].weight);
    const bool compared = a_.has_pool || ends_abnormally();
    if (one && compared && late >= 2 && a_.birth_surprise > 4) return true;
    if (a_.outcome.progress_stopped && late > 0 && (a_.has_pool || troubled())) return true;
    if (a_.has_pool && a_.novel_seen > 3 * a_.novel_expected + 2 && late >= 2) return true;
    if (failures_of_most() >= 2) return true;
    return late >= 2 && a_.birth_surprise > kSurprise && spoken();
  }

  // Templates of failure that most hosts or ranks began to log after the last progress.
  size_t failures_of_most() const {
    size_t n = 0;
    for (const TemplateScore& t : a_.templates)
      n += t.score >= kIndicating && t.late && t.widespread && t.hosts.size() > 1 &&
           detect::words_class(log_.templates()[t.id]) == 2;
    return n;
  }

  // Whether the job hangs, or words of failure appear at the end.
  bool ends_abnormally() const { return a_.outcome.progress_stopped || spoken(); }

  bool fell_silent() const {
    return std::any_of(hosts_.begin(), hosts_.end(), [](const Blame& b) { return b.silent; });
  }

  // Whether the job is suspect, but without enough evidence for a diagnosis.
  bool uneasy() const {
    if (good_end()) return false;
    const bool host = !hosts_.empty() && hosts_[0].weight >= kSuspicious;
    return host || speaks_of_failure() || ends_fatally() || ends_in_trouble() || singled_out().any() ||
           failures_of_most() > 0 || (late_evidence() >= 1 && a_.birth_surprise > 4);
  }

  // Whether templates began together with a slower pace of the job that lasts until its end.
  bool slows_down() const {
    const auto with_it = [](const TemplateScore& t) { return t.with_slowdown && t.indicates >= kSure; };
    return !a_.outcome.ended_well && std::ranges::any_of(a_.templates, with_it);
  }

  // Without a suspect: all hosts are slower, and the logs may not show the cause.
  void tell_slower_pace() {
    auto slow = slowdown_of(view_, a_.outcome);
    if (!slow && !slows_down()) return;
    if (slows_down()) list_indicating();
    if (slow) {
      report_.diagnoses.push_back(std::move(*slow));
      finish();
    }
    const detect::SlowerPace& pace = *a_.outcome.slower;
    report_.missing.push_back(fmt::format(
        "why an iteration takes {} since iteration {} and took {} before (metrics of the hosts at that time)",
        format_duration(pace.after_ns), pace.iteration, format_duration(pace.before_ns)));
  }

  // Whether a job without progress has words of failure.
  bool speaks_of_failure() const {
    if (a_.outcome.last_iteration >= 0) return false;
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && detect::words_class(log_.templates()[t.id]) == 2) return true;
    return false;
  }

  // A line after the last progress whose header has the level fatal. Null: none.
  const logs::TemplateStats* ends_fatally() const {
    if (a_.outcome.last_progress_ns == kNoTime) return nullptr;
    for (const TemplateScore& t : a_.templates) {
      const logs::TemplateStats& stats = log_.templates()[t.id];
      if (stats.level == logs::Level::kFatal && stats.first_ns != kNoTime &&
          stats.first_ns >= a_.outcome.last_progress_ns)
        return &stats;
    }
    return nullptr;
  }

  // The failure report among the last lines of a source without later progress. Null: none.
  const logs::LastTrouble* ends_in_trouble() const {
    if (live_) return nullptr;
    for (SourceId source = 0; source < log_.sources().size(); ++source) {
      const logs::LastTrouble& last = log_.last_trouble_of(source);
      if (last.text.empty() || last.event + kLastLines < log_.events_of(source)) continue;
      const logs::ProgressPoint step = log_.iterations().last();
      const bool progress = !log_.iterations().track().empty();
      if (progress && step.source == source && step.line > last.place.line) continue;
      if (progress && step.time_ns != kNoTime && last.place.time_ns != kNoTime &&
          step.time_ns > last.place.time_ns)
        continue;
      return &last;
    }
    return nullptr;
  }

  // Indicating templates that distinguish the first suspect from its peers beyond chance. `proven`: by words
  // of failure or by the pool. `plain`: the others.
  struct Singled {
    size_t proven = 0, plain = 0;
    bool any() const { return proven + plain > 0; }
  };
  Singled singled_out() const {
    Singled n;
    if (hosts_.empty() || hosts_[0].weight < 1) return n;
    for (const TemplateScore& t : a_.templates) {
      const bool far = t.accuses && t.score >= kSure && t.spatial >= kFar;
      if (far && t.hosts.size() == 1 && t.hosts[0].unit == hosts_[0].unit) ++(proves(t) ? n.proven : n.plain);
    }
    return n;
  }

  bool proves(const TemplateScore& t) const {
    return detect::words_class(log_.templates()[t.id]) == 2 || (a_.has_pool && t.cross_job > 0);
  }

  // Whether a line of the host itself is proof against it.
  bool has_proof(const Blame& host) const {
    return std::any_of(a_.templates.begin(), a_.templates.end(), [&](const TemplateScore& t) {
      return t.score >= kIndicating && t.accuses && !t.widespread && proves(t) &&
             std::any_of(t.hosts.begin(), t.hosts.end(),
                         [&](const detect::UnitCount& c) { return c.unit == host.unit; });
    });
  }

  // Weight of the indicating templates that began when progress ended.
  double late_evidence() const {
    double sum = 0;
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && (t.late || a_.outcome.last_iteration < 0)) sum += t.score;
    return sum;
  }

  // Whether such a template has words of failure: without a pool, novelty alone proves nothing.
  bool spoken() const {
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && t.late && t.words > 2) return true;
    return false;
  }

  // Whether such a template has words of trouble.
  bool troubled() const {
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && t.late && detect::words_class(log_.templates()[t.id]) > 0) return true;
    return false;
  }

  // The stage of a fault: from the iteration, from the end of a job that made progress, or from lines of the
  // start-up. Without progress lines the stage may be unknown.
  std::optional<Stage> stage_at(const Finding* f) const {
    if (log_.events() == 0) return std::nullopt;
    if (a_.outcome.trained && a_.outcome.last_iteration < 0) return Stage::kIterative;
    const int64_t iteration = f ? f->iteration.value_or(-1) : a_.outcome.last_iteration;
    if (iteration >= 0)
      return a_.outcome.stage == Stage::kCheckpoint ? Stage::kCheckpoint : Stage::kIterative;
    // A state from before the job's start exists in each stage of the job.
    const bool is_active = f && f->detector == DetectorKind::kPlugin && f->last_ns == kNoTime;
    const bool timed = f && f->first_ns != kNoTime && !is_active;
    // A fatal fault of a job that trained is not from its start-up: an untimed line has the time of an
    // earlier line. Steps without times cannot be compared with the line either.
    const bool ordered = timed && a_.outcome.last_progress_ns != kNoTime;
    if (a_.outcome.last_iteration >= 0 && (!ordered || f->fatal)) return a_.outcome.stage;
    for (const logs::WriterStats& w : log_.writers())
      if (w.stage && *w.stage == Stage::kInit) return Stage::kInit;
    const bool launching = a_.outcome.last_iteration >= 0 || (f && f->symptom == Symptom::kLaunchFailure);
    return launching ? std::optional(Stage::kLaunch) : std::nullopt;
  }

  std::optional<std::string> host_of(uint32_t writer) const { return log_.writers()[writer].host; }

  void add_fault(const Finding& f, bool best) {
    Diagnosis d;
    if (!f.rule.empty()) d.rule = f.rule;
    if (f.detector == DetectorKind::kPlugin)
      d.detector = "plugin:" + f.plugin;
    else if (f.detector != DetectorKind::kNone)
      d.detector = to_string(f.detector);
    d.found_by = f.found_by;
    d.title = f.title;
    d.category = f.category;
    d.component = f.component;
    d.remedy = f.remedy;
    d.time_ns = f.first_ns;
    d.iteration = f.iteration;
    d.step_share = f.step_share;
    d.stage = stage_at(&f);
    d.symptom = symptom(f);
    d.confidence = best ? confidence_among(f, faults_, detect::exit_was_seen(log_)) : f.confidence * kSecond;
    d.why = f.why;
    d.code = f.code;
    if (f.code)
      d.why.insert(d.why.begin(), fmt::format("raised in {}:{}{}", f.code->file, f.code->line,
                                              f.code->function.empty() ? "" : ", in " + f.code->function));
    d.evidence = f.evidence;
    if (f.lines > f.evidence.size()) report_.cut["evidence"] += f.lines - f.evidence.size();
    for (const Blame& h : hosts_)
      if (std::any_of(f.subjects.begin(), f.subjects.end(),
                      [&](const FindingSubject& s) { return is_of(s, h); }))
        d.hosts.push_back(accused_of(f, h));
    if (report_.diagnoses.size() >= kWithAllReasons)
      for (Suspect& s : d.hosts)
        if (s.why.size() > kReasonsRepeated) s.why.resize(kReasonsRepeated);
    for (const FindingSubject& s : f.subjects)
      if (s.host && s.peer) d.links.push_back({*s.host, *s.peer, f.confidence});
    d.action.kind = f.action;
    // A program fault remains after its host is excluded.
    const bool of_host = f.category != Category::kUser && f.category != Category::kFramework;
    if (of_host && (f.action == ActionKind::kIsolate || f.action == ActionKind::kCheck))
      for (const Suspect& s : d.hosts)
        if (s.host && std::ranges::find(d.action.targets, *s.host) == d.action.targets.end())
          d.action.targets.push_back(*s.host);  // once per host, for any number of its ranks
    cap_claim(f, d);
    d.restart = advice_of(f, d);
    report_.diagnoses.push_back(std::move(d));
  }

  bool progressed() const { return a_.outcome.trained || a_.outcome.last_iteration > 0; }

  // Whether the job may run again after this fault. A consequence alone requires no change and names no host.
  RestartAdvice advice_of(const Finding& f, const Diagnosis& d) const {
    RestartAdvice out;
    const bool progress = progressed() || f.iteration.value_or(0) > 0;
    out.kind = restart_of(f, progress);
    const bool cascade = f.role == FindingRole::kCascade;
    if (cascade && out.kind < Restart::kLater) out.kind = Restart::kUnknown;
    // A program that its own exception ended before any step fails there again, whatever the exception is.
    const bool own_mistake = f.category == Category::kUser && f.ends_process && f.code && !progress;
    const bool specific = !f.general && d.confidence >= kSureRestart;
    out.sure = out.kind != Restart::kUnknown && !cascade && (specific || own_mistake);
    out.why = reason_of(out.kind, progress);
    if (out.kind != Restart::kElsewhere) return out;
    leave_out(f, d, out);
    // The leading line may name nothing, or only the port; another line may name the lost device.
    for (const Finding* other : faults_)
      if (other != &f && other->role == FindingRole::kRoot && is_there(*other, out) &&
          restart_of(*other, progress) == Restart::kElsewhere)
        leave_out(*other, d, out);
    if (out.hosts.empty() && f.category == Category::kHardware) out.hosts = lost_host(faults_);
    return out;
  }

  // Whether the finding names only excluded parties; true for any finding if none is excluded.
  static bool is_there(const Finding& other, const RestartAdvice& out) {
    if (out.hosts.empty()) return true;
    return std::ranges::all_of(other.named_hosts, [&](const std::string& name) {
      return std::ranges::find(out.hosts, name) != out.hosts.end();
    });
  }

  static void leave_out(const Finding& f, const Diagnosis& d, RestartAdvice& out) {
    const auto add = [](std::vector<std::string>& names, const std::string& name) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    for (const Suspect& s : d.hosts)
      if (s.host) add(out.hosts, *s.host);
    for (const std::string& name : f.named_hosts) add(out.hosts, name);
    for (const std::string& name : f.named_devices) add(out.devices, name);
    const bool of_device = f.component == Component::kGpu || f.component == Component::kGpuMemory;
    if (!out.devices.empty() || !of_device) return;
    for (const Suspect& s : d.hosts)
      for (const uint32_t device : s.devices) add(out.devices, fmt::format("device {}", device));
  }

  // Reports notices only without a diagnosis, an iteration or a good end. Machines log such lines all the
  // time, so they accuse no host: a host is named only for inspection.
  void add_notices() {
    if (!report_.diagnoses.empty() || a_.outcome.last_iteration >= 0 || a_.outcome.ended_well) return;
    for (const Finding& f : a_.findings) {
      if (f.kind != FindingKind::kNotice || report_.diagnoses.size() >= kDiagnoses) continue;
      add_fault(f, true);
      Diagnosis& d = report_.diagnoses.back();
      d.confidence = f.confidence;
      for (const FindingSubject& s : f.subjects)
        if (s.host && std::ranges::find(d.action.targets, *s.host) == d.action.targets.end())
          d.action.targets.push_back(*s.host);
    }
  }

  // The suspect without the devices and ranks that only other findings accuse.
  Suspect accused_of(const Finding& f, const Blame& host) const {
    Suspect out = host.suspect;
    keep_named(f, host, &FindingSubject::device, out.devices);
    keep_named(f, host, &FindingSubject::rank, out.ranks);
    return out;
  }

  // A subject without the part covers its whole host.
  void keep_named(const Finding& f, const Blame& host, std::optional<uint32_t> FindingSubject::*part,
                  std::vector<uint32_t>& known) const {
    std::set<uint32_t> named;
    for (const FindingSubject& s : f.subjects) {
      if (!is_of(s, host)) continue;
      if (!(s.*part)) return;
      named.insert(*(s.*part));
    }
    std::erase_if(known, [&](uint32_t one) { return !named.contains(one); });
  }

  // If units are ranks, the ranks of one host are separate units.
  bool is_of(const FindingSubject& subject, const Blame& host) const {
    if (subject.rank && (view_.by_rank || !host.suspect.host))
      return !host.suspect.ranks.empty() && host.suspect.ranks[0] == *subject.rank;
    return subject.host && subject.host == host.suspect.host;
  }

  Symptom symptom(const Finding& f) const {
    if (f.symptom == Symptom::kNumeric || f.symptom == Symptom::kHang) return f.symptom;
    if (f.detector == DetectorKind::kPlugin && f.symptom != Symptom::kOther) return f.symptom;
    if (stage_at(&f) == Stage::kLaunch) return Symptom::kLaunchFailure;
    // A job that trained has completed its start-up, whatever fault ended it.
    const bool started = (f.iteration || stage_at(&f) == Stage::kIterative);
    return started && f.symptom == Symptom::kLaunchFailure ? Symptom::kCrash : f.symptom;
  }

  // Whether a host's first sign clearly precedes the last iteration.
  bool begins_early(const Blame& host) const {
    return host.onset_ns != kNoTime && a_.outcome.last_progress_ns != kNoTime &&
           a_.outcome.last_progress_ns - host.onset_ns > kLongIll * a_.outcome.step_ns;
  }

  // Adds a line of each of the best templates: the host's own first, by time.
  void add_samples(const Blame* host, Diagnosis& d) const {
    std::vector<Evidence> own, others;
    for (const TemplateScore& t : a_.templates) {
      if (t.score < kIndicating || own.size() + others.size() >= kSamples) break;
      const logs::TemplateStats& stats = log_.templates()[t.id];
      const logs::LogSample* chosen = stats.samples.empty() ? nullptr : &stats.samples[0];
      for (const logs::LogSample& s : stats.samples)
        if (host && view_.host_of_writer[s.place.writer] == host->unit) chosen = &s;
      if (!chosen) continue;
      const bool its = host && view_.host_of_writer[chosen->place.writer] == host->unit;
      (its ? own : others).push_back(detect::evidence_at(log_, chosen->place, chosen->text));
    }
    const auto earlier = [](const Evidence& a, const Evidence& b) { return a.time_ns < b.time_ns; };
    std::stable_sort(own.begin(), own.end(), earlier);
    std::stable_sort(others.begin(), others.end(), earlier);
    d.evidence = std::move(own);
    d.evidence.insert(d.evidence.end(), others.begin(), others.end());
  }

  // The component that most of a host's own indicating templates name.
  Component component_of(const Blame& host) const {
    std::vector<std::string> texts;
    for (const TemplateScore& t : a_.templates) {
      if (t.score < kIndicating) break;
      if (t.accuses && t.hosts.size() == 1 && t.hosts[0].unit == host.unit)
        texts.push_back(log_.miner().text(t.id));
    }
    return component_by_words(texts);
  }

  // The usual category of a component. A host that falls silent completely lost its power, kernel or network.
  // Without a named component the category is unknown.
  static Category category_of(Component component, bool silent_host) {
    switch (component) {
      case Component::kUnknown:
        return silent_host ? Category::kHardware : Category::kUnknown;
      case Component::kStorage:
      case Component::kDriver:
        return Category::kPlatform;
      case Component::kHostMemory:
        return Category::kUser;
      default:
        return Category::kHardware;
    }
  }

  // Silence and lines of failure are evidence by themselves and by comparison with peers; plain lines only by
  // comparison.
  double confidence_against(const Blame& host) const {
    if (!host.silent && !has_proof(host)) return kConclusive;
    return kConclusive + kStatistical * host.suspect.score;
  }

  void add_statistical() {
    if (hosts_.empty() && late_evidence() <= 0) return;
    const Blame* top = hosts_.empty() ? nullptr : &hosts_[0];
    const bool clear =
        top && top->suspect.score >= 0.5 && (hosts_.size() < 2 || top->weight > 1.3 * hosts_[1].weight);
    const bool silent = top && top->silent;
    if (!clear && !faults_.empty()) return;
    Diagnosis d;
    d.detector = to_string(silent        ? DetectorKind::kSilence
                           : clear       ? DetectorKind::kSpatial
                           : a_.has_pool ? DetectorKind::kCrossJob
                                         : DetectorKind::kTemporal);
    d.symptom = a_.outcome.progress_stopped || silent ? Symptom::kHang : Symptom::kCrash;
    if (clear && !silent && begins_early(*top))
      d.symptom = Symptom::kSlowdown;  // the host had signs long before the job ended
    d.title = silent        ? fmt::format("{} fell silent before its peers", top->name)
              : clear       ? fmt::format("{} alone logged unusual lines before the job stopped", top->name)
              : a_.has_pool ? "The job stopped with messages that were never seen in healthy runs"
                            : "The job stopped with messages that it had not logged before";
    if (clear) {
      d.hosts.push_back(top->suspect);
      d.why = top->suspect.why;
      d.action.kind = ActionKind::kCheck;
      if (d.hosts[0].host) d.action.targets.push_back(*d.hosts[0].host);
      d.component = component_of(*top);
      d.category = category_of(d.component, silent && !view_.by_rank);
      d.remedy =
          d.category == Category::kHardware
              ? "Run the vendor's diagnostics on this host before the job is restarted on it."
              : "Read the lines that only this one logged: nothing in them names a part of the machine.";
    } else {
      d.remedy = "Read the indicating lines; with logs of healthy jobs (--healthy) more can be said.";
    }
    d.time_ns = clear && top->onset_ns != kNoTime ? top->onset_ns : a_.outcome.last_progress_ns;
    if (a_.outcome.last_iteration >= 0)
      d.iteration = clear && top->iteration ? *top->iteration : a_.outcome.last_iteration;
    d.stage = stage_at(nullptr);
    if (a_.outcome.progress_stopped)
      d.why.push_back(fmt::format("no iteration was finished in the last {}, one takes {}",
                                  format_duration(a_.outcome.last_ns - a_.outcome.last_progress_ns),
                                  format_duration(a_.outcome.step_ns)));
    if (d.why.empty())
      d.why.push_back(fmt::format("{} began when the iterations ended",
                                  counted(static_cast<uint64_t>(late_evidence() + 0.5), "message")));
    add_samples(clear ? top : nullptr, d);
    if (clear && !silent && !d.evidence.empty() && d.evidence[0].host == top->suspect.host) {
      d.why.insert(d.why.begin(), d.title);
      d.title = fmt::format("{}: {}, on no other {}", top->name,
                            shorten(logs::words_of(d.evidence[0].text), kQuotedBytes),
                            view_.by_rank ? "rank" : "host");
    }
    d.confidence = clear ? confidence_against(*top) : kUnclear;
    // A host that went silent at once is powered off or disconnected.
    d.restart.kind = silent && d.category == Category::kHardware ? Restart::kElsewhere : Restart::kUnknown;
    d.restart.why = reason_of(d.restart.kind, progressed());
    if (d.restart.kind == Restart::kElsewhere && d.hosts[0].host) d.restart.hosts.push_back(*d.hosts[0].host);
    report_.diagnoses.push_back(std::move(d));
  }

  void list_iterations() {
    for (const Finding& f : a_.findings) {
      if (f.kind != FindingKind::kIteration || !f.iteration) continue;
      IterationScore out{*f.iteration, f.confidence, {}};
      for (const FindingSubject& s : f.subjects)
        if (s.host && (out.hosts.empty() || out.hosts.back() != *s.host)) out.hosts.push_back(*s.host);
      report_.iterations.push_back(std::move(out));
    }
    std::stable_sort(
        report_.iterations.begin(), report_.iterations.end(),
        [](const IterationScore& x, const IterationScore& y) { return x.iteration < y.iteration; });
  }

  void list_suspects() {
    if (!faults_.empty() && faults_[0]->role == FindingRole::kRoot && faults_[0]->by_no_device) return;
    for (const Blame& h : hosts_)
      if (h.suspect.score >= kSuspectFloor) report_.suspects.push_back(h.suspect);
  }

  std::vector<std::string> why_of(const TemplateScore& t) const {
    std::vector<std::string> why;
    if (const auto it = a_.rules.find(t.id); it != a_.rules.end())
      for (const std::string& id : it->second) why.push_back("rule:" + id);
    if (t.novel || t.cross_job > 0) why.emplace_back("cross-job");
    if (t.spatial > 0 || (!t.widespread && t.hosts.size() == 1)) why.emplace_back("spatial");
    if (t.temporal > 0 || why.empty()) why.emplace_back("temporal");
    return why;
  }

  void list_indicating() {
    for (const TemplateScore& t : a_.templates) {
      if (t.indicates < kIndicating) continue;
      const logs::TemplateStats& stats = log_.templates()[t.id];
      if (stats.shape.heading || stats.shape.kind == logs::ShapeKind::kRootCause)
        continue;  // the lines below the heading indicate the failure
      Indicating out;
      out.template_text = log_.miner().text(t.id);
      out.score = t.indicates;
      out.count = stats.count;
      out.why = why_of(t);
      out.first_ns = t.first_ns;
      if (!stats.samples.empty()) out.sample = stats.samples[0].text;
      for (const logs::LogPlace& p : stats.places)
        out.where.push_back({host_of(p.writer), log_.sources()[p.source].file, p.line});
      report_.indicating.push_back(std::move(out));
    }
    std::ranges::stable_sort(report_.indicating, std::greater(), &Indicating::score);
  }

  void finish() {
    std::stable_sort(report_.diagnoses.begin(), report_.diagnoses.end(),
                     [](const Diagnosis& x, const Diagnosis& y) { return x.confidence > y.confidence; });
    for (size_t i = 0; i < report_.diagnoses.size(); ++i) report_.diagnoses[i].id = fmt::format("d{}", i + 1);
    if (!report_.diagnoses.empty() && report_.diagnoses[0].confidence >= kConclusive) {
      report_.verdict = 0;
    } else {
      if (const logs::TemplateStats* last = ends_fatally(); last && !last->samples.empty())
        report_.missing.push_back("whether a line of level fatal ended the job: " +
                                  shorten(last->samples[0].text, kFatalLine));
      else if (const logs::LastTrouble* trouble = good_end() ? nullptr : ends_in_trouble())
        report_.missing.push_back("whether the last lines show the end of the job: " +
                                  shorten(logs::words_of(trouble->text), kFatalLine));
      if (!a_.has_pool)
        report_.missing.emplace_back("logs of successful jobs of the same kind (--healthy DIR)");
      if (view_.known_hosts < 2)
        report_.missing.emplace_back(
            "which host wrote which line (job.toml or --host-pattern), to compare hosts");
      if (report_.missing.empty())
        report_.missing.emplace_back(
            "kernel and driver logs of the hosts around the time at which progress ended");
    }
  }

  void activity() {
    Activity& out = report_.activity;
    for (const logs::ProgressPoint& p : log_.iterations().track())
      if (p.time_ns != kNoTime) out.progress.emplace_back(p.time_ns, p.iteration);
    while (out.progress.size() > 400) {
      size_t retained = 0;
      for (size_t i = 0; i < out.progress.size(); i += 2) out.progress[retained++] = out.progress[i];
      out.progress.resize(retained);
    }
    if (log_.first_ns() == kNoTime) return;
    out.phases = phases_of(log_, a_.outcome, report_.hang ? report_.hang->since_ns : kNoTime);
    constexpr TimeNs kBins = 96;
    out.first_ns = log_.first_ns();
    out.bin_ns = std::max<TimeNs>(1, (log_.last_ns() - log_.first_ns()) / kBins + 1);
    for (const detect::Unit& h : view_.hosts) {
      HostActivity row{h.name, std::vector<uint32_t>(kBins, 0), std::vector<uint32_t>(kBins, 0)};
      for (uint32_t w : h.writers) {
        const logs::ActivityBins& bins = log_.activity()[w];
        for (size_t i = 0; i < bins.counts.size(); ++i) {
          const TimeNs at = bins.origin_ns + static_cast<TimeNs>(i) * bins.width_ns + bins.width_ns / 2;
          const TimeNs bin = std::clamp<TimeNs>((at - out.first_ns) / out.bin_ns, 0, kBins - 1);
          row.lines[static_cast<size_t>(bin)] += bins.counts[i];
        }
      }
      out.hosts.push_back(std::move(row));
    }
    mark_indicating(out, kBins);
  }

  void mark_indicating(Activity& out, TimeNs bins) {
    for (const TemplateScore& t : a_.templates) {
      if (t.indicates < kIndicating || !failed_) continue;
      for (const logs::LogPlace& p : log_.templates()[t.id].places) {
        const uint32_t host = view_.host_of_writer[p.writer];
        if (host == kNowhere || p.time_ns == kNoTime) continue;
        const TimeNs bin = std::clamp<TimeNs>((p.time_ns - out.first_ns) / out.bin_ns, 0, bins - 1);
        ++out.hosts[host].indicating[static_cast<size_t>(bin)];
      }
    }
  }

  const View& view_;
  const logs::JobLog& log_;
  const Analysis& a_;
  const bool live_;
  Report& report_;
  std::vector<Blame> hosts_;            // best first
  std::vector<const Finding*> faults_;  // best first
  bool failed_ = false;
};

}  // namespace

void correlate(const View& view, const Analysis& analysis, bool live, Report& report) {
  Correlator(view, analysis, live, report).run();
}

}  // namespace culprit::diagnose
