#include "core/diagnose/correlator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/text.h"
#include "core/diagnose/signs.h"
#include "core/diagnose/words.h"

namespace culprit::diagnose {
namespace {

using detect::Analysis;
using detect::HostScore;
using detect::kNowhere;
using detect::TemplateScore;
using detect::View;

constexpr double kIndicating = 0.5;
constexpr double kConclusive = 0.5;
constexpr double kSure = 0.75;    // of a single template that must carry a diagnosis
constexpr double kFar = 2.0;      // spatial evidence of such a one: seven to one
constexpr TimeNs kLongIll = 5;    // steps: a fault that kills does so sooner
constexpr size_t kSamples = 8;    // lines quoted for a diagnosis without a known sign
constexpr double kSurprise = 10;  // -log p: one job in 20,000
constexpr double kBlamed = 2.5;  // a host's weight: several certain templates of its own, or one and an order
constexpr double kSuspicious =
    0.4;                          // a host's weight from which all is not well; healthy jobs stay at nought
constexpr size_t kEvidence = 20;  // lines of a sign: who reads on has the indicating ones
constexpr size_t kSigns = 64;     // beyond them a sign is an echo
constexpr double kSuspectFloor = 0.02;

class Correlator {
 public:
  Correlator(const View& view, const Analysis& a, const detect::Steps& steps, Report& report)
      : view_(view), log_(*view.log), a_(a), steps_(steps), report_(report) {}

  void run() {
    summarise();
    if (steps_.shapes) signs_ = find_signs(view_, a_);
    failed_ = !signs_.empty() || stands_out();
    activity();
    if (!failed_ && !uneasy()) return;
    for (size_t i = 0; i < signs_.size() && i < kSigns; ++i) add_sign(signs_[i], i == 0);
    if (signs_.size() > kSigns) report_.cut["diagnoses"] = signs_.size() - kSigns;
    if (failed_ && (signs_.empty() || signs_[0].cascade)) add_statistical();
    list_suspects();
    list_indicating();
    report_.iterations = a_.iterations;
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
  }

  // Whether the end of the job is out of the ordinary without any known sign. Each of these alone is rare in
  // a job that ran well or was merely cut off.
  bool stands_out() const {
    if (a_.fate.ended_well) return false;
    if (!a_.silent.empty() && !a_.hosts.empty()) return true;
    if (singled_out() >= (a_.has_pool ? 1u : 2u)) return true;
    const double late = late_evidence();
    // One host bears nearly all of the blame, and more began at the end than chance brings.
    const bool one = !a_.hosts.empty() && a_.hosts[0].weight >= kBlamed &&
                     (a_.hosts.size() < 2 || a_.hosts[0].weight > 1.5 * a_.hosts[1].weight);
    if (one && late >= 2 && a_.birth_surprise > 4) return true;
    if (a_.fate.progress_stopped && late > 0) return true;
    if (a_.has_pool && a_.novel_seen > 3 * a_.novel_expected + 2 && late >= 2) return true;
    return late >= 2 && a_.birth_surprise > kSurprise && spoken();
  }

  // Too much to say that all is well, too little for a diagnosis.
  bool uneasy() const {
    if (a_.fate.ended_well) return false;
    const bool host = !a_.hosts.empty() && a_.hosts[0].weight >= kSuspicious;
    return host || speaks_of_failure() || singled_out() > 0 ||
           (late_evidence() >= 1 && a_.birth_surprise > 4);
  }

  // Whether a job that never made progress tells of failure.
  bool speaks_of_failure() const {
    if (a_.fate.last_iteration >= 0) return false;
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && detect::words_class(log_.templates()[t.id]) == 2) return true;
    return false;
  }

  // Indicating templates by which the first suspect differs from its peers beyond chance.
  size_t singled_out() const {
    if (a_.hosts.empty() || a_.hosts[0].weight < 1) return 0;
    size_t n = 0;
    for (const TemplateScore& t : a_.templates)
      n +=
          t.score >= kSure && t.spatial >= kFar && t.hosts.size() == 1 && t.hosts[0].unit == a_.hosts[0].host;
    return n;
  }

  // Indicating templates that began when progress ended.
  double late_evidence() const {
    double sum = 0;
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && (t.late || a_.fate.last_progress_ns == kNoTime)) sum += t.score;
    return sum;
  }

  // Whether one of them uses words of failure: without a pool, novelty alone proves nothing.
  bool spoken() const {
    for (const TemplateScore& t : a_.templates)
      if (t.score >= kIndicating && t.late && t.words > 2) return true;
    return false;
  }

  std::optional<Stage> stage_at(int64_t iteration) const {
    if (iteration >= 0) return a_.fate.stage == Stage::kCheckpoint ? Stage::kCheckpoint : Stage::kIterative;
    bool init = false;
    for (const logs::WriterStats& w : log_.writers()) init = init || (w.stage && *w.stage == Stage::kInit);
    return init ? Stage::kInit : Stage::kLaunch;
  }

  std::optional<std::string> host_of(uint32_t writer) const { return log_.writers()[writer].host; }

  Evidence evidence(const logs::LogPlace& place, std::string_view text) const {
    Evidence e;
    e.host = host_of(place.writer);
    e.file = log_.sources()[place.source].file;
    e.line = place.line;
    e.text = std::string(text);
    e.time_ns = place.time_ns;
    e.rank = log_.writers()[place.writer].rank;
    return e;
  }

  Suspect suspect(const HostScore& h) const {
    Suspect s;
    if (view_.by_rank) {
      s.ranks = view_.hosts[h.host].ranks;
      if (view_.known_hosts == 1) s.host = log_.writers()[view_.hosts[h.host].writers[0]].host;
    } else {
      s.host = view_.hosts[h.host].name;
      s.ranks = h.ranks;
    }
    s.score = h.score;
    for (uint32_t r : s.ranks)
      for (uint32_t w : view_.hosts[h.host].writers)
        if (log_.writers()[w].rank == r && log_.writers()[w].device &&
            std::find(s.devices.begin(), s.devices.end(), *log_.writers()[w].device) == s.devices.end())
          s.devices.push_back(*log_.writers()[w].device);
    s.why = h.why;
    return s;
  }

  // A program's fault or the cluster's sits on no host, however many of them show it.
  static bool sits_on_host(const Sign& sign) {
    return sign.of_host && sign.component != Component::kPlatform && sign.component != Component::kUserCode &&
           sign.component != Component::kNumeric;
  }

  void add_sign(const Sign& sign, bool best) {
    Diagnosis d;
    const bool few = !sign.score->widespread && !sign.score->hosts.empty();
    d.detector = sign.score->novel ? "cross-job" : few ? "spatial" : "temporal";
    d.title = sign.title;
    d.category = sign.category;
    d.component = sign.component;
    d.remedy = sign.remedy;
    const logs::FaultLine& first = *sign.lines[0];
    d.time_ns = first.place.time_ns;
    const int64_t iteration = log_.iterations().iteration_at(d.time_ns, first.place.source, first.place.line);
    if (iteration >= 0) d.iteration = iteration;
    d.stage = stage_at(iteration);
    d.symptom = symptom(sign, iteration);
    d.confidence = sign.cascade ? 0.5 : sign.fatal ? 0.95 : 0.85;
    if (!best) d.confidence *= 0.6;
    const size_t hosts = sign.score->hosts.size();
    const std::string told =
        hosts ? counted(hosts, "host") : counted(log_.templates()[sign.score->id].count, "line");
    d.why.push_back(fmt::format("{}: {} told it", sign.name, told));
    if (sign.score->novel) d.why.emplace_back("no successful job of the pool has such a line");
    if (sign.score->late) d.why.emplace_back("it began when the iterations ended");
    for (const logs::FaultLine* line : sign.lines)
      if (d.evidence.size() < kEvidence) d.evidence.push_back(evidence(line->place, line->text));
    const uint64_t lines = log_.templates()[sign.score->id].count;
    if (lines > d.evidence.size()) report_.cut["evidence"] += lines - d.evidence.size();
    if (sits_on_host(sign) && !sign.score->widespread) add_hosts(sign, d);
    d.action.kind = sign.action;
    if (sign.action == ActionKind::kIsolate || sign.action == ActionKind::kCheck)
      for (const Suspect& s : d.hosts)
        if (s.host) d.action.targets.push_back(*s.host);
    report_.diagnoses.push_back(std::move(d));
  }

  void add_hosts(const Sign& sign, Diagnosis& d) {
    for (const HostScore& h : a_.hosts)
      for (const detect::UnitCount& c : sign.score->hosts)
        if (c.unit == h.host) d.hosts.push_back(suspect(h));
  }

  Symptom symptom(const Sign& sign, int64_t iteration) const {
    if (sign.symptom == Symptom::kNumeric || sign.symptom == Symptom::kHang) return sign.symptom;
    if (iteration < 0 && stage_at(iteration) == Stage::kLaunch) return Symptom::kLaunchFailure;
    return sign.symptom;
  }

  // Whether a host's first sign came well before the last iteration.
  bool begins_early(const HostScore& host) const {
    return host.onset_ns != kNoTime && a_.fate.last_progress_ns != kNoTime &&
           a_.fate.last_progress_ns - host.onset_ns > kLongIll * a_.fate.step_ns;
  }

  // A line of each of the best templates: those of the host itself first, in time.
  void add_samples(const HostScore* host, Diagnosis& d) const {
    std::vector<Evidence> own, others;
    for (const TemplateScore& t : a_.templates) {
      if (t.score < kIndicating || own.size() + others.size() >= kSamples) break;
      const logs::TemplateStats& stats = log_.templates()[t.id];
      const logs::LogSample* chosen = stats.samples.empty() ? nullptr : &stats.samples[0];
      for (const logs::LogSample& s : stats.samples)
        if (host && view_.host_of_writer[s.place.writer] == host->host) chosen = &s;
      if (!chosen) continue;
      const bool its = host && view_.host_of_writer[chosen->place.writer] == host->host;
      (its ? own : others).push_back(evidence(chosen->place, chosen->text));
    }
    const auto earlier = [](const Evidence& a, const Evidence& b) { return a.time_ns < b.time_ns; };
    std::stable_sort(own.begin(), own.end(), earlier);
    std::stable_sort(others.begin(), others.end(), earlier);
    d.evidence = std::move(own);
    d.evidence.insert(d.evidence.end(), others.begin(), others.end());
  }

  // The component that most of a host's own indicating templates speak of.
  Component component_of(const HostScore& host) const {
    std::vector<std::string> texts;
    for (const TemplateScore& t : a_.templates) {
      if (t.score < kIndicating) break;
      if (t.hosts.size() == 1 && t.hosts[0].unit == host.host) texts.push_back(log_.miner().text(t.id));
    }
    return component_by_words(texts);
  }

  void add_statistical() {
    if (a_.hosts.empty() && late_evidence() <= 0) return;
    const HostScore* top = a_.hosts.empty() ? nullptr : &a_.hosts[0];
    const bool clear =
        top && top->score >= 0.5 && (a_.hosts.size() < 2 || top->weight > 1.3 * a_.hosts[1].weight);
    const bool silent = top && !a_.silent.empty() && a_.silent[0].host == top->host;
    if (!clear && !signs_.empty()) return;
    Diagnosis d;
    d.detector = silent ? "silence" : clear ? "spatial" : a_.has_pool ? "cross-job" : "temporal";
    d.category = clear ? Category::kHardware : Category::kUnknown;
    d.symptom = a_.fate.progress_stopped || silent ? Symptom::kHang : Symptom::kCrash;
    if (clear && !silent && begins_early(*top))
      d.symptom = Symptom::kSlowdown;  // ill for long before it ended
    d.title = silent ? fmt::format("{} fell silent before its peers", view_.hosts[top->host].name)
              : clear
                  ? fmt::format("{} alone showed signs before the job stopped", view_.hosts[top->host].name)
                  : "The job stopped with messages that a healthy one does not have";
    if (clear) {
      d.hosts.push_back(suspect(*top));
      d.why = top->why;
      d.action.kind = ActionKind::kCheck;
      if (d.hosts[0].host) d.action.targets.push_back(*d.hosts[0].host);
      d.component = component_of(*top);
      d.remedy = "Run the vendor's diagnostics on this host before the job is restarted on it.";
    } else {
      d.remedy = "Read the indicating lines; with logs of healthy jobs (--healthy) more can be said.";
    }
    d.time_ns = clear && top->onset_ns != kNoTime ? top->onset_ns : a_.fate.last_progress_ns;
    const int64_t iteration = log_.iterations().iteration_at(d.time_ns, 0, 0);
    if (a_.fate.last_iteration >= 0) d.iteration = iteration >= 0 ? iteration : a_.fate.last_iteration;
    d.stage = stage_at(a_.fate.last_iteration);
    if (a_.fate.progress_stopped)
      d.why.push_back(fmt::format("no iteration was finished in the last {}, one takes {}",
                                  format_duration(a_.fate.last_ns - a_.fate.last_progress_ns),
                                  format_duration(a_.fate.step_ns)));
    if (d.why.empty())
      d.why.push_back(fmt::format("{} began when the iterations ended",
                                  counted(static_cast<uint64_t>(late_evidence() + 0.5), "message")));
    add_samples(clear ? top : nullptr, d);
    d.confidence = clear ? 0.5 + 0.4 * top->score : 0.4;
    if (!signs_.empty()) d.confidence = std::min(d.confidence, 0.9);
    report_.diagnoses.push_back(std::move(d));
  }

  void list_suspects() {
    const bool nobody =
        !signs_.empty() && !signs_[0].cascade && (!sits_on_host(signs_[0]) || signs_[0].score->widespread);
    if (nobody) return;
    for (const HostScore& h : a_.hosts)
      if (h.score >= kSuspectFloor) report_.suspects.push_back(suspect(h));
  }

  std::vector<std::string> why_of(const TemplateScore& t) const {
    std::vector<std::string> why;
    if (t.novel || t.cross_job > 0) why.emplace_back("cross-job");
    if (t.spatial > 0 || (!t.widespread && t.hosts.size() == 1)) why.emplace_back("spatial");
    if (t.temporal > 0 || why.empty()) why.emplace_back("temporal");
    return why;
  }

  void list_indicating() {
    for (const TemplateScore& t : a_.templates) {
      if (t.score < kIndicating) break;
      const logs::TemplateStats& stats = log_.templates()[t.id];
      Indicating out;
      out.template_text = log_.miner().text(t.id);
      out.score = t.score;
      out.count = stats.count;
      out.why = why_of(t);
      out.first_ns = t.first_ns;
      if (!stats.samples.empty()) out.sample = stats.samples[0].text;
      for (const logs::LogPlace& p : stats.places)
        out.where.push_back({host_of(p.writer), log_.sources()[p.source].file, p.line});
      report_.indicating.push_back(std::move(out));
    }
  }

  void finish() {
    std::stable_sort(report_.diagnoses.begin(), report_.diagnoses.end(),
                     [](const Diagnosis& x, const Diagnosis& y) { return x.confidence > y.confidence; });
    for (size_t i = 0; i < report_.diagnoses.size(); ++i) report_.diagnoses[i].id = fmt::format("d{}", i + 1);
    if (!report_.diagnoses.empty() && report_.diagnoses[0].confidence >= kConclusive) {
      report_.verdict = 0;
    } else {
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
      size_t kept = 0;
      for (size_t i = 0; i < out.progress.size(); i += 2) out.progress[kept++] = out.progress[i];
      out.progress.resize(kept);
    }
    if (log_.first_ns() == kNoTime) return;
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
      if (t.score < kIndicating || !failed_) break;
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
  const detect::Steps& steps_;
  Report& report_;
  std::vector<Sign> signs_;
  bool failed_ = false;
};

}  // namespace

void correlate(const View& view, const Analysis& analysis, const detect::Steps& steps, Report& report) {
  Correlator(view, analysis, steps, report).run();
}

}  // namespace culprit::diagnose
