// Evidence by template: cross-job, temporal, words, known shapes.
//
// Each term is a log likelihood ratio, the failure's templates against the harmless ones, and each is calibrated on
// what is known to be harmless: the pool's jobs, and this job's own templates from before the end.
//   words      LOGS.md: of the indicating templates 54.8 % are errors, 23.1 % warnings, 22.1 % info and debug; against
//              the shares among the harmless templates that are as rare. In a job full of harmless alarms an alarm
//              says little.
//   cross-job  of T templates a healthy job brings m that the pool lacks: those that one pool job alone has, by job
//              (the leave-one-out estimate of Good and Turing), counted among those as alarming and as frequent
//   temporal   a harmless template begins anywhere in the job, one of the failure near its end: K began in the window
//              since progress ended, where the job's own rate of births lets expect E
// The prior: a failed job has some ten indicating templates among several hundred.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kPrior = -3.5;                                 // log(10 / 330)
constexpr std::array<double, 3> kIndicating = {0.221, 0.231, 0.548};  // LOGS.md, by words class
constexpr std::array<double, 3> kHarmless = {8.7, 1.0, 0.3};    // of ten templates of a healthy run (real-logs)
constexpr double kNovelSure = 0.95;      // 5 % of real faults repeat a line that healthy jobs have
constexpr double kKnown = -3.0;          // log of that 5 %
constexpr double kCustom = -2.0;         // beside it, where all successful jobs have the line
constexpr double kTermMax = 5.0;         // no single sight makes certain
constexpr double kSmooth = 0.5;          // of what no pool job shows, two more jobs might show one
constexpr double kSingleJob = 0.05;      // real siblings differ in some 5 % of their plain templates
constexpr double kClearEnd = 3;          // births beyond what chance brings that make an end clear
constexpr double kBeforeEnd = -2.0;      // then a seventh of the failure's templates began before it
constexpr double kLateMin = -1.5;        // a fifth of the faults announce themselves early
constexpr double kNever = -6.0;          // advice, progress, words of a planned end
constexpr double kShape = 2.0;           // a known kind of fault, beside what its words say
constexpr uint64_t kRare = 3;            // lines: what is seen once or twice is another kind than what is always seen
// Known, but more often on one host than on any of the pool: as a difference of 2 sqrt(n) (spread 1).
constexpr double kFrequentFrom = 4.0, kFrequentMax = 4.0;

double clamp(double x, double low, double high) { return std::min(high, std::max(low, x)); }

// What one host wrote most of it.
uint64_t most_of(const logs::TemplateStats& t, const std::vector<UnitCount>& hosts) {
  uint64_t most = hosts.empty() ? t.count : 0;
  for (const UnitCount& c : hosts) most = std::max(most, c.count);
  return most;
}

bool says_nothing(const logs::TemplateStats& t) {
  const bool plain = t.shape.kind == logs::ShapeKind::kPlain;
  return t.shape.advice || (t.shape.well && t.shape.words < 2) || (t.progress && plain && t.shape.words < 2);
}

double shape_term(const logs::TemplateStats& t) {
  switch (t.shape.kind) {
    case logs::ShapeKind::kFault:
    case logs::ShapeKind::kRootCause: return kShape;
    case logs::ShapeKind::kException:
    case logs::ShapeKind::kTraceback: return kShape / 2;
    default: return 0;
  }
}

class Scorer {
 public:
  Scorer(const View& view, const Pool& pool, const Steps& steps, Analysis& a)
      : view_(view), log_(*view.log), pool_(pool), steps_(steps), a_(a) {}

  void run() {
    find_window();
    find_known();
    for (logs::ClusterId id : log_.clusters())
      if (!log_.templates()[id].places.empty()) begin(id);
    calibrate();
    for (TemplateScore& s : a_.templates) finish(s);
  }

 private:
  // The window in which the failure's own lines begin: from the last finished iteration on.
  void find_window() {
    from_ = a_.fate.last_progress_ns;
    if (from_ == kNoTime || log_.first_ns() == kNoTime) {
      from_ = kNoTime;
      return;
    }
    from_ = std::max(log_.first_ns(), from_ - a_.fate.step_ns);
    length_ = static_cast<double>(std::max<TimeNs>(1, log_.last_ns() - from_));
    before_ = static_cast<double>(std::max<TimeNs>(1, from_ - log_.first_ns()));
  }

  void find_known() {
    known_.resize(log_.templates().size());
    known_most_.resize(log_.templates().size());
    for (const logs::JobLog::FormStats& form : log_.forms()) {
      const auto at = std::lower_bound(pool_.forms.begin(), pool_.forms.end(), form.hash,
                                       [](const PoolForm& f, uint64_t h) { return f.hash < h; });
      if (at == pool_.forms.end() || at->hash != form.hash) continue;
      const PoolForm*& best = known_[form.cluster];
      if (!best || at->jobs > best->jobs) best = &*at;
      known_most_[form.cluster] += at->host_max;
    }
    for (const PoolForm* f : known_) {
      if (!f) continue;
      ++known_count_;
      // One job alone: what it wrote once, another one writes otherwise (Good and Toulmin).
      const bool single = pool_.jobs > 1 ? f->jobs == 1 : f->words == 0 || f->host_max == 1;
      if (single) singles_[f->words].push_back(f->host_max);
    }
    for (auto& list : singles_) std::sort(list.begin(), list.end());
  }

  // New templates as alarming, of which one host writes at least n lines, that a healthy job brings.
  double expected_novel(uint32_t words, uint64_t n) const {
    const auto& list = singles_[words];
    const auto above = static_cast<double>(list.end() - std::lower_bound(list.begin(), list.end(), n));
    return pool_.jobs == 1 && words == 0 ? kSingleJob * above : above / pool_.jobs;
  }

  void begin(logs::ClusterId id) {
    const logs::TemplateStats& t = log_.templates()[id];
    TemplateScore s;
    s.id = id;
    s.hosts = count_by(t, view_.host_of_writer);
    s.first_ns = t.untimed ? kNoTime : t.first_ns;
    const logs::LogPlace& place = t.places.front();
    s.iteration = log_.iterations().iteration_at(s.first_ns, place.source, place.line);
    s.known = steps_.cross_job ? known_[id] : nullptr;
    s.novel = pool_.jobs > 0 && !known_[id];
    s.widespread = is_widespread(t, s);
    s.late = s.first_ns != kNoTime && from_ != kNoTime && s.first_ns >= from_;
    a_.novel_seen += s.novel;
    a_.templates.push_back(std::move(s));
  }

  bool is_widespread(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (view_.hosts.size() >= 2) return s.hosts.size() * 2 > view_.hosts.size();
    if (view_.ranks.size() >= 2) return count_by(t, view_.rank_of_writer).size() * 2 > view_.ranks.size();
    return true;
  }

  // Shares of the words classes among this job's harmless templates, and how many began at the end.
  void calibrate() {
    double half = 0;
    for (auto& shares : shares_) shares = kHarmless;
    for (const TemplateScore& s : a_.templates) {
      const logs::TemplateStats& t = log_.templates()[s.id];
      if (says_nothing(t)) continue;
      const bool fresh = !s.known;  // what the pool has is no surprise whenever it begins
      if (s.late) births_ += fresh;
      else ++shares_[t.count <= kRare][words_class(t)];
      half += fresh && !s.late && s.first_ns != kNoTime && s.first_ns >= from_ - half_of();
    }
    if (from_ != kNoTime) {
      // By time or by lines, whichever lets expect fewer: while a job waits it writes little that is new.
      const double by_time = length_ / (before_ / 2);
      const double by_lines = lines_between(from_, log_.last_ns()) / std::max(1.0, lines_between(from_ - half_of(), from_));
      expected_births_ = (half + kSmooth) * std::min(by_time, by_lines);
    }
    a_.novel_expected = pool_.jobs ? expected_novel(0, 1) + expected_novel(1, 1) + expected_novel(2, 1) : 0;
    const double now = births_, expected = std::max(expected_births_, 1e-3);
    a_.birth_surprise = now > expected ? now * std::log(now / expected) - (now - expected) : 0;  // Chernoff, Poisson
  }
  double lines_between(TimeNs from, TimeNs to) const {
    double sum = 0;
    for (const logs::ActivityBins& bins : log_.activity()) sum += bins.between(from, to);
    return sum;
  }
  TimeNs half_of() const { return (from_ - log_.first_ns()) / 2; }

  double words_term(const logs::TemplateStats& t, uint32_t words) const {
    const auto& shares = shares_[t.count <= kRare];
    const double all = shares[0] + shares[1] + shares[2];
    return std::log(kIndicating[words] * all / shares[words]);
  }

  void cross_job(const logs::TemplateStats& t, TemplateScore& s, uint32_t words) const {
    const uint64_t most = most_of(t, s.hosts);
    if (!s.known) {
      const double share = (expected_novel(words, most) + kSmooth) / (known_count_ + 1);
      // Words and novelty are told together: what is rare among the harmless is alarms as a rule.
      s.cross_job = clamp(std::log(kNovelSure * kIndicating[words] / share), -1, kTermMax);
      s.words = 0;
      return;
    }
    const double excess =
        2 * std::sqrt(static_cast<double>(most)) - 2 * std::sqrt(static_cast<double>(known_most_[s.id]));
    const double share = static_cast<double>(s.known->jobs) / pool_.jobs;
    s.cross_job = excess > kFrequentFrom ? std::min(kFrequentMax, excess / 2) : kKnown + kCustom * share;
  }

  double temporal(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (s.late) {
      const double surplus = std::max(0.0, births_ - expected_births_);
      const double odds = (surplus + kSmooth) / (expected_births_ + kSmooth);
      return clamp(std::log(odds) + 1, 0, kTermMax);
    }
    const double closeness = std::log(0.3 / age(t, s));
    if (births_ - expected_births_ >= kClearEnd && s.first_ns != kNoTime) return clamp(closeness + kBeforeEnd, kBeforeEnd - 1, 1);
    return clamp(closeness, kLateMin, kTermMax / 2);
  }

  // How far from the end it began, as a share of the job.
  double age(const logs::TemplateStats& t, const TemplateScore& s) const {
    const TimeNs end = from_;  // without iterations lines tell more than time: a launch is quick, then it waits
    if (end != kNoTime && s.first_ns != kNoTime && log_.first_ns() < end) {
      const double length = static_cast<double>(end - log_.first_ns());
      const double step = std::max(static_cast<double>(a_.fate.step_ns), length / 100);
      return (std::max(0.0, static_cast<double>(end - s.first_ns)) + step) / length;
    }
    const logs::LogPlace& place = t.places.front();
    const double lines = static_cast<double>(std::max<uint64_t>(1, log_.lines_of(place.source)));
    return (lines - static_cast<double>(place.line) + 1 + lines / 100) / lines;
  }

  // A template that stands on few hosts by its role (the first rank prints the loss): the pool knows it so, or it
  // did so from the beginning of the job.
  bool is_role(const TemplateScore& s) const {
    const double hosts = static_cast<double>(view_.hosts.size());
    if (s.known) return s.known->hosts_share * hosts < 1.5 + 0.1 * hosts && s.cross_job < 0;
    const TimeNs first = log_.first_ns(), last = log_.last_ns();
    return first == kNoTime || s.first_ns == kNoTime || s.first_ns - first < (last - first) / 5;
  }

  void finish(TemplateScore& s) const {
    const logs::TemplateStats& t = log_.templates()[s.id];
    const uint32_t words = words_class(t);
    s.words = words_term(t, words);
    if (pool_.jobs > 0 && steps_.cross_job) cross_job(t, s, words);
    if (steps_.temporal) s.temporal = temporal(t, s);
    if (steps_.shapes && !t.shape.advice) s.shape = shape_term(t);
    if (says_nothing(t)) s.words = kNever;
    s.role = is_role(s);
  }

  const View& view_;
  const logs::JobLog& log_;
  const Pool& pool_;
  const Steps& steps_;
  Analysis& a_;
  std::vector<const PoolForm*> known_;  // by cluster: the form with the most jobs
  std::vector<uint64_t> known_most_;    // by cluster: what its forms make together at the most on one host
  double known_count_ = 0;
  std::array<std::vector<uint64_t>, 3> singles_;  // by words: host_max of what one pool job alone has
  std::array<std::array<double, 3>, 2> shares_{};  // [rare][words]
  TimeNs from_ = kNoTime;
  double length_ = 0, before_ = 0, births_ = 0, expected_births_ = 0;
};

}  // namespace

const TemplateScore* Analysis::of(logs::ClusterId id) const {
  for (const TemplateScore& t : templates)
    if (t.id == id) return &t;
  return nullptr;
}

void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& a) {
  a.has_pool = pool.jobs > 0 && steps.cross_job;
  Scorer(view, pool, steps, a).run();
}

Analysis analyse(const View& view, const Pool& pool, const Steps& steps) {
  Analysis a;
  a.fate = find_fate(view);
  score_templates(view, pool, steps, a);
  if (steps.spatial) add_spatial(view, pool, a);
  if (steps.temporal) find_odd_iterations(view, a);
  for (TemplateScore& s : a.templates) {
    const double logit = kPrior + s.cross_job + s.temporal + s.words + s.shape + s.spatial;
    s.score = 1 / (1 + std::exp(-logit));
  }
  std::stable_sort(a.templates.begin(), a.templates.end(), [](const TemplateScore& x, const TemplateScore& y) {
    return x.score > y.score || (x.score == y.score && x.first_ns < y.first_ns);
  });
  if (steps.silence) find_silent(view, a);
  score_hosts(view, steps, a);
  return a;
}

}  // namespace culprit::detect
